.PHONY: build test unit lint clients kills proof bench microbench

build: ; go build -o bin/barnabas ./cmd/barnabas
test: ; test/run
unit: ; go test -race ./...
lint: ; test/run format
clients: ; test/run clients
kills: ; test/run kills
proof: ; test/proof
# make bench; make bench SCENARIO=p1k,c1k ROUNDS=5 ARGS='-json FILE'; make bench SCENARIO=all
bench: ; go run ./bench $(if $(SCENARIO),-scenario $(SCENARIO)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(ARGS)
# the micro-benchmarks beside those of the commit before; make microbench COMMIT=…
microbench: ; test/microbench $(COMMIT)
