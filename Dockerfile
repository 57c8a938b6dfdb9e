# An image with nothing but the program: no shell, not root. The environment names of Apache Kafka's image work
# (KAFKA_..., CLUSTER_ID), the data lies where its does, and without any settings a broker starts on port 9092.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/barnabas ./cmd/barnabas && mkdir -p /out/data /out/tmp

FROM scratch
COPY --from=build /out/barnabas /usr/bin/barnabas
COPY --from=build --chown=1000:1000 /out/data /var/lib/kafka/data
COPY --from=build --chown=1000:1000 /out/tmp /tmp
USER 1000:1000
VOLUME /var/lib/kafka/data
EXPOSE 9092 9644
# The port of http.listener stays what it is by default, unless KAFKA_HTTP_LISTENER says otherwise to both.
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s CMD ["/usr/bin/barnabas", "health"]
ENTRYPOINT ["/usr/bin/barnabas"]
# Defaults, not ENV: a variable would beat a mounted server.properties ("docker run IMAGE start FILE").
CMD ["start", "--default", "listeners=PLAINTEXT://:9092", "--default", "advertised.listeners=PLAINTEXT://localhost:9092", \
     "--default", "log.dirs=/var/lib/kafka/data", "--default", "http.listener=0.0.0.0:9644"]
