# Stages of test/proof that want three brokers as processes on a real ZooKeeper. To be sourced by test/proof.

# cluster_of_three NAME [ARGS...]: a cluster whose topics have three replicas; sets BOOTSTRAP
cluster_of_three() {
  store_ready "$1" || return
  start_cluster "$work/$1" 3 --override default.replication.factor=3 --override group.initial.rebalance.delay.ms=0 "${@:2}" ||
    { bad "start of a cluster for $1"; return 1; }
}

stage_kgo() {
  say "kgo"
  cluster_of_three kgo --override min.insync.replicas=2 || return
  check "franz-go's suite, three replicas on three processes" kgo 3
  stop_cluster
}

# Kafka's tools of 3.9 and 4.4, against three brokers of Kafka 3.9 and against three of ours
stage_tools_cluster() {
  say "tools, on clusters"
  local what="the comparison of tools on clusters"
  java_ready "$what" && store_ready "$what" && peer_ready "$what" kafka-3.9 || return
  local settings=(default.replication.factor=3 num.partitions=3 offsets.topic.num.partitions=3 offsets.topic.replication.factor=3
    auto.leader.rebalance.enable=false group.initial.rebalance.delay.ms=0 offsets.retention.check.interval.ms=86400000) id version
  # shellcheck disable=SC2046
  start_cluster "$work/tools-cluster" 3 $(printf -- '--override %s ' "${settings[@]}") || { bad "start of our brokers"; return; }
  for id in 1 2 3; do
    peer kafka-3.9 "proof-tools-$id" "$((port + id))" "$ZOOKEEPER/kafka" @heap=320m "broker.id=$id" "${settings[@]}" || return
  done
  for version in ${TOOLS:-kafka-3.9 kafka-4.4}; do
    test/peers/peers bin "$version" "$work/$version"
    check "the tools of $version" go run ./test/tools-compare -commands test/tools-compare/testdata/cluster -run "${SCRIPTS:-}" \
      -side "java/kafka,$work/$version/bin,127.0.0.1:$((port + 1)),$(test/peers/peers dir proof-tools-1)/data" \
      -side "java/barnabas,$work/$version/bin,${BOOTSTRAP%%,*},$work/tools-cluster/1/data"
  done
  end_peers
  stop_cluster
}

stage_clients_cluster() {
  say "clients, on a cluster"
  cluster_of_three clients --override min.insync.replicas=2 || return
  REPLICAS=3 every_client
  stop_cluster
}

# spark_beside TOPIC READY STOP: Spark says much on standard error, of which only the end is of use, and only of a failure
spark_beside() {
  TOPIC=$1 READY=$2 STOP=$3 CLIENT_TIMEOUT=400 test/clients/run spark-beside 2>"$work/spark.log" || { tail -n 40 "$work/spark.log"; return 1; }
}

# Batches that read all of a topic while others write it and a stream follows it.
stage_beside() {
  say "batches beside a stream"
  java_ready "batches beside a stream" && kcat_ready "batches beside a stream" && cluster_of_three beside --override min.insync.replicas=2 || return
  "$BARNABAS" topic create beside --partitions 6 -b "$BOOTSTRAP" >/dev/null || bad "topic"
  local stop=$work/beside.stop writer
  {
    numbers "$stop" | kcat -b "$BOOTSTRAP" -P -t beside -X enable.idempotence=true -X acks=all >"$work/kcat.log" 2>&1
    status=$?
    touch "$stop.done"
    exit $status
  } &
  writer=$!
  (
    until [ -e "$stop.ready" ] || [ -e "$stop.done" ]; do sleep 0.2; done
    sleep "${BESIDE:-30}"
    touch "$stop"
  ) &
  check "Spark's batches and its stream" spark_beside beside "$stop.ready" "$stop.done"
  touch "$stop"
  check "kcat, idempotent, sees no error" wait "$writer"
  check "kcat's records, each once" exactly beside "$(cat "$stop.last")"
  stop_cluster
}
