# The stage of test/proof with a real Kafka 3.9 as one of three brokers. To be sourced by test/proof.
#
# Brokers 1 and 2 are ours, broker 3 is Kafka's. Of "led" Kafka is the preferred leader of every partition, of
# "followed" it is never: whoever is killed follows one and leads the other.

# the_controller: its id, as brokers say
the_controller() { kcat -b "$BOOTSTRAP" -L 2>/dev/null | sed -n 's/^ *broker \([0-9]*\) at .*(controller)$/\1/p'; }

# await TEXT COMMAND...: until a command prints just this text
await() {
  local want=$1 got
  shift
  for _ in $(seq 600); do
    got=$("$@")
    [ "$got" = "$want" ] && return
    sleep 0.1
  done
  echo "after a minute '$*' still says '$got', not '$want'"
  return 1
}

registered() { kcat -b "$BOOTSTRAP" -L 2>/dev/null | sed -n 's/^ *broker \([0-9]*\) at .*/\1/p' | sort | paste -s -d ' '; }

# leads ID: how many partitions of "led" it leads
leads() { "$work/ours/kafka-topics.sh" --bootstrap-server "$BOOTSTRAP" --describe --topic led 2>/dev/null | grep -c "Leader: $1"; }

# kill_broker ID: kill -9, and its session has ended
kill_broker() {
  if [ "$1" = 3 ]; then test/peers/peers kill proof-mixed; else test/brokers kill "$work/mixed" "$1"; fi || return 1
  await "$(seq 3 | grep -v "$1" | paste -s -d ' ')" registered
}

# revive ID: it is back, whole, and leads what it should
revive() {
  if [ "$1" = 3 ]; then test/peers/peers restart proof-mixed >/dev/null; else test/brokers start "$work/mixed" "$1"; fi || return 1
  await_whole && await 3 leads 3
}

kafka_killed() { kill_broker 3 && revive 3; }

# under_kafka: Kafka's broker is the controller, since ours are away for a moment
under_kafka() {
  test/brokers stop "$work/mixed" 1 2 && await 3 the_controller && test/brokers start "$work/mixed" 1 2 &&
    await_whole && await 3 leads 3
}

ours_killed() { # ID: one of ours, while Kafka is the controller
  await 3 the_controller && kill_broker "$1" && revive "$1" && await 3 the_controller
}

# same_logs: the segments of a partition are the same bytes on all three
same_logs() {
  local partition sums theirs
  theirs=$(test/peers/peers dir proof-mixed)/data
  for partition in led-{0,1,2} followed-{0,1,2}; do
    sums=$(for dir in "$work"/mixed/{1,2}/data "$theirs"; do cat "$dir/$partition"/*.log | sha256sum; done | sort -u | wc -l)
    [ "$sums" = 1 ] || { echo "$partition differs"; return 1; }
    [ -n "$(find "$theirs/$partition" -name '*.log' -size +0)" ] || { echo "$partition is empty"; return 1; }
  done
}

# read_back: everything acknowledged is there, in its place, and no error was seen
read_back() {
  local topic status=0 i=0
  kill -TERM "${background[@]}"
  wait "${background[@]}"
  background=()
  await_whole || return 1
  for topic in led followed; do
    verifiable_consumer "$topic" "$work/$topic.consumer"
    await yes consumed_all "$topic" || status=1
    kill -TERM "${background[0]}" && wait "${background[0]}"
    background=()
    echo "$topic:"
    go run ./test/verifiable -producer "$work/$topic.producer" -consumer "$work/$topic.consumer" || status=1
  done
  return $status
}

consumed_all() { # TOPIC
  [ "$(grep -c record_data "$work/$1.consumer")" -ge "$(grep -c producer_send_success "$work/$1.producer")" ] && echo yes
}

stage_mixed() {
  say "mixed"
  local what="a cluster with Apache Kafka"
  java_ready "$what" && peer_ready "$what" kafka-3.9 && kcat_ready "$what" && store_ready "$what" || return
  local settings=(default.replication.factor=3 min.insync.replicas=2 zookeeper.session.timeout.ms=6000 offsets.topic.num.partitions=4
    offsets.topic.replication.factor=3 leader.imbalance.check.interval.seconds=2 replica.lag.time.max.ms=10000)
  # shellcheck disable=SC2046
  start_cluster "$work/mixed" 2 $(printf -- '--override %s ' "${settings[@]}") || { bad "start of a cluster"; return; }
  peer kafka-3.9 proof-mixed "$port" "$ZOOKEEPER/mixed" @heap=320m broker.id=3 "${settings[@]}" || return
  BOOTSTRAP=$BOOTSTRAP,127.0.0.1:$port
  "$BARNABAS" link "$work/ours" >/dev/null
  "$work/ours/kafka-topics.sh" --bootstrap-server "$BOOTSTRAP" --create --topic led --replica-assignment 3:1:2,3:2:1,3:1:2 >/dev/null &&
    "$work/ours/kafka-topics.sh" --bootstrap-server "$BOOTSTRAP" --create --topic followed --replica-assignment 1:2:3,2:1:3,1:3:2 >/dev/null ||
    { bad "topics"; return; }
  background=()
  THROUGHPUT=500 verifiable_producer led "$work/led.producer"
  THROUGHPUT=500 verifiable_producer followed "$work/followed.producer"
  await yes begun "$work/led.producer" "$work/followed.producer" && await_whole || bad "start of the producers"
  local round
  for round in $(seq "${MIXED:-3}"); do check "$round: kill -9 of Kafka under our controller" kafka_killed; done
  check "Kafka's broker becomes the controller" under_kafka
  for round in $(seq "${MIXED:-3}"); do check "$round: kill -9 of ours under Kafka's controller" ours_killed $((round % 2 + 1)); done
  check "kill -9 of Kafka, the controller" kafka_killed
  check "what VerifiableProducer wrote" read_back
  test/peers/peers stop proof-mixed
  stop_cluster
  check "the same bytes in all three logs" same_logs
  end_peers
}
