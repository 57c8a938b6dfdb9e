# The stage of test/proof that restarts brokers one after the other under load. To be sourced by test/proof.

# numbers FILE: 1, 2, 3 and so on, some hundred a second, until FILE exists; the last one is in FILE.last
numbers() {
  local n=0
  until [ -e "$1" ]; do
    for _ in $(seq 20); do echo $((n += 1)); done
    sleep 0.05
  done
  echo "$n" >"$1.last"
}

# await_whole: until every partition has all its replicas in sync
await_whole() {
  local out
  for _ in $(seq 600); do
    out=$("$work/ours/kafka-topics.sh" --bootstrap-server "$BOOTSTRAP" --describe --under-replicated-partitions 2>&1) && [ -z "$out" ] && return
    sleep 0.1
  done
  echo "not in sync after a minute:"
  echo "$out"
  return 1
}

# verifiable_producer TOPIC FILE: Kafka's, idempotent, until it gets SIGTERM; prints into FILE
verifiable_producer() {
  printf '%s\n' acks=all enable.idempotence=true retries=2147483647 >"$work/producer.properties"
  test/peers/peers tool kafka-4.4 kafka-verifiable-producer --bootstrap-server "$BOOTSTRAP" --topic "$1" --acks -1 \
    --throughput "${THROUGHPUT:-1000}" --command-config "$work/producer.properties" >"$2" 2>"$2.err" &
  background+=($!)
}

# verifiable_consumer TOPIC FILE: Kafka's, a member of a group
verifiable_consumer() {
  test/peers/peers tool kafka-4.4 kafka-verifiable-consumer --bootstrap-server "$BOOTSTRAP" --topic "$1" \
    --group-id "$1-readers" --reset-policy earliest --group-protocol classic --verbose >"$2" 2>"$2.err" &
  background+=($!)
}

# begun FILE...: yes where each of these has said that a record was written or read
begun() {
  local file
  for file; do grep -q 'producer_send_success\|record_data' "$file" || return; done
  echo yes
}

# end_verifiable PRODUCER CONSUMER: ends both, and the consumer only when it has read what the producer wrote
end_verifiable() {
  local acked read
  kill -TERM "${background[0]}" && wait "${background[0]}"
  acked=$(grep -c producer_send_success "$1")
  for _ in $(seq 300); do
    read=$(grep -c record_data "$2")
    [ "$read" -ge "$acked" ] && break
    sleep 0.2
  done
  kill -TERM "${background[1]}" && wait "${background[1]}"
  background=()
  go run ./test/verifiable -producer "$1" -consumer "$2"
}

# exactly TOPIC COUNT: whether a topic has the numbers 1 to COUNT, each once
exactly() {
  kcat -b "$BOOTSTRAP" -C -t "$1" -o beginning -e -q -f '%s\n' | sort -n | cmp - <(seq "$2")
}

# roll: every broker stopped with SIGTERM and started again, one after the other
roll() {
  local id
  for id in 1 2 3; do
    test/brokers stop "$1" "$id" && test/brokers start "$1" "$id" && await_whole || return 1
  done
}

stage_rolling() {
  say "rolling restart"
  java_ready "a rolling restart" && kcat_ready "a rolling restart" && cluster_of_three rolling --override min.insync.replicas=2 --override num.partitions=6 || return
  local topic client=()
  background=()
  "$BARNABAS" link "$work/ours" >/dev/null
  for topic in verified by-kcat by-franz-go; do "$BARNABAS" topic create "$topic" -b "$BOOTSTRAP" >/dev/null || bad "topic $topic"; done
  verifiable_producer verified "$work/producer.json"
  verifiable_consumer verified "$work/consumer.json"
  # kcat ends by itself where it has lost all its connections, and librdkafka connects again only to brokers that it
  # wants something from, up to ten seconds later. All three are restarted in less.
  numbers "$work/by-kcat" | kcat -b "$BOOTSTRAP" -P -t by-kcat -X enable.idempotence=true -X acks=all \
    -X reconnect.backoff.max.ms=300 -X enable.sparse.connections=false >"$work/kcat.log" 2>&1 &
  client+=($!)
  numbers "$work/by-franz-go" | "$BARNABAS" produce by-franz-go -b "$BOOTSTRAP" >"$work/franz.log" 2>&1 &
  client+=($!)
  await yes begun "$work/producer.json" "$work/consumer.json" || bad "start of VerifiableProducer and VerifiableConsumer"
  for _ in $(seq "${ROLLS:-3}"); do check "a round of restarts" roll "$work/rolling"; done
  touch "$work/by-kcat" "$work/by-franz-go"
  check "kcat, idempotent, sees no error" wait "${client[0]}"
  check "franz-go, idempotent, sees no error" wait "${client[1]}"
  check "kcat's records, each once" exactly by-kcat "$(cat "$work/by-kcat.last")"
  check "franz-go's records, each once" exactly by-franz-go "$(cat "$work/by-franz-go.last")"
  check "VerifiableProducer and VerifiableConsumer" end_verifiable "$work/producer.json" "$work/consumer.json"
  stop_cluster
}
