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
ENV KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092 \
    KAFKA_LOG_DIRS=/var/lib/kafka/data \
    KAFKA_HTTP_LISTENER=0.0.0.0:9644
VOLUME /var/lib/kafka/data
EXPOSE 9092 9644
HEALTHCHECK --interval=5s --timeout=3s CMD ["/usr/bin/barnabas", "cluster", "health", "-b", "localhost:9092"]
ENTRYPOINT ["/usr/bin/barnabas"]
CMD ["start"]
