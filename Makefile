.PHONY: build test unit lint clients kills proof

build: ; go build -o bin/barnabas ./cmd/barnabas
test: ; test/run
unit: ; go test -race ./...
lint: ; test/run format
clients: ; test/run clients
kills: ; test/run kills
proof: ; test/proof
