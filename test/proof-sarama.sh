# The stage of test/proof that runs Sarama's functional suite. To be sourced by test/proof.

# The tests that are left out, as one regular expression; test/sarama/skip.txt says why.
sarama_skip=$(sed -n 's/^\([^# ][^ ]*\) .*/\1/p' test/sarama/skip.txt | paste -s -d '|')

# toxiproxy: between clients and the brokers, on the ports that the suite wants
start_toxiproxy() {
  go -C test/sarama build -o "$work/toxiproxy" github.com/Shopify/toxiproxy/v2/cmd/server || return 1
  for id in 1 2 3 4 5; do
    printf '{"name":"kafka%d","listen":"127.0.0.1:2909%d","upstream":"127.0.0.1:%d","enabled":true}\n' $id $id $((port + 20 + id))
  done | paste -s -d , | sed 's/.*/[&]/' >"$work/toxiproxy.json"
  "$work/toxiproxy" -config "$work/toxiproxy.json" >"$work/toxiproxy.log" 2>&1 &
  broker_pids+=($!)
}

# sarama: the suite against the cluster, with the settings of its own docker-compose.yml. Each time is a process of its
# own, which makes the topics anew.
sarama() {
  local log=$work/sarama.log status=0 dir
  dir=$(go -C test/sarama list -f '{{.Dir}}' github.com/IBM/sarama) &&
    go -C test/sarama test -c -tags functional -o "$work/sarama.test" github.com/IBM/sarama || return 1
  export SARAMA_CLUSTER=$work/sarama SARAMA_TOOLS=$work/java KAFKA_VERSION=4.3.1
  for _ in $(seq "${SARAMA_COUNT:-1}"); do
    (cd "$dir" && PATH=$root/test/sarama:$PATH "$work/sarama.test" -test.v -test.timeout 15m -test.run "${SARAMA_RUN:-}" \
      -test.skip "$sarama_skip" </dev/null) >>"$log" 2>&1 || status=1
  done
  [ "$status" -eq 0 ] || grep -v '^ *=== \|^ *--- PASS' "$log" | tail -n 100
  grep '^ *--- SKIP' "$log"
  echo "Sarama's suite: $(grep -c '^ *--- PASS' "$log") tests passed, $(grep -c '^ *--- SKIP' "$log") skipped, $(grep -c '^ *--- FAIL' "$log") failed"
  return "$status"
}

stage_sarama() {
  say "sarama"
  java_ready "Sarama's suite" && store_ready "Sarama's suite" || return
  test/peers/peers bin kafka-4.4 "$work/java" && start_toxiproxy || { bad "what Sarama's suite needs"; return; }
  start_cluster "$work/sarama" 5 --override default.replication.factor=2 --override offsets.topic.replication.factor=2 \
    --override 'broker.rack={id}' --override replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector \
    --override auto.create.topics.enable=false --override group.initial.rebalance.delay.ms=0 \
    --override listener.security.protocol.map=INTERNAL:PLAINTEXT,LOCAL:PLAINTEXT --override inter.broker.listener.name=INTERNAL \
    --override "listeners=INTERNAL://127.0.0.1:$((port / 10 + 1)){id},LOCAL://127.0.0.1:$((port / 10 + 2)){id}" \
    --override "advertised.listeners=INTERNAL://127.0.0.1:$((port / 10 + 1)){id},LOCAL://localhost:2909{id}" ||
    { bad "start of five brokers"; return; }
  check "Sarama's functional suite" sarama
  stop_cluster
  stop_broker
}
