# The stage "files" of test/proof: partition directories that Barnabas wrote, read by Apache Kafka.
#
# A broker takes over a directory that Kafka 3.9 wrote (all codecs, compacted, idempotent and transactional
# data), writes more into it, and ends. Then
#
#   kafka-dump-log   walks every record of every segment, and every entry of every index
#   Kafka 3.9        starts on a copy of the partition directories; ZooKeeper has the topics under their own ids;
#                    its start is a clean one, so it uses our indexes and producer snapshots
#   Kafka 4.4        does so without the marker of a clean end, so it reads all segments and makes indexes anew
#
# and both must serve the same records at the same offsets, read_committed and read_uncommitted, as we did.

# served ADDRESS DIR: every record of every topic, a file a topic and isolation level
served() {
  local topic flag
  led "$1" || return 1
  mkdir -p "$2"
  for topic in $(topics_of "$1"); do
    for flag in "" --read-uncommitted; do
      "$BARNABAS" consume "$topic" -b "$1" --exit -o json $flag >"$2/$topic$flag.unsorted" || return 1
      sort "$2/$topic$flag.unsorted" >"$2/$topic$flag.jsonl" && rm "$2/$topic$flag.unsorted"
    done
  done
}

# led ADDRESS: waits until a broker has the topics that ours had, with leaders
led() {
  local i
  for i in $(seq 120); do
    [ "$(topics_of "$1" | wc -l)" -ge "$(find "$work/ours" -name '*[^d].jsonl' 2>/dev/null | wc -l)" ] &&
      ! "$BARNABAS" topic describe $(topics_of "$1") -b "$1" -o json | grep -q '"leader":-1' && return
    sleep 0.5
  done
  echo "not all topics of $1 have leaders"
  return 1
}

topics_of() { "$BARNABAS" topic list -b "$1" -o json | grep -o '"name":"[^"]*"' | cut -d '"' -f 4 | grep -v '^__'; }

# write_more: what our own producer writes beside and into what Kafka wrote
write_more() {
  local codec
  "$BARNABAS" topic create more-compacted --partitions 2 --config cleanup.policy=compact --config segment.bytes=1048576 \
    --config min.cleanable.dirty.ratio=0.01 >/dev/null || return 1
  seq 60000 | awk '{printf "k%d:a value of some length, the %d-th of all, and the last of its key if none comes behind it\n", $1 % 100, $1}' |
    "$BARNABAS" produce more-compacted --key-separator : >/dev/null || return 1
  for codec in none gzip snappy lz4 zstd; do
    "$BARNABAS" topic create "more-$codec" --partitions 3 --config segment.bytes=1048576 >/dev/null &&
      "$BARNABAS" perf produce "more-$codec" -n 30000 -z "$codec" >/dev/null &&
      echo "behind what Kafka wrote" | "$BARNABAS" produce "codec-$codec" -z "$codec" >/dev/null || return 1
  done
  for topic in txn-a idempotent rolled rolled-txn append-time compact.gzip records-deleted; do
    printf 'k:behind what Kafka wrote\n' | "$BARNABAS" produce "$topic" --key-separator : >/dev/null || return 1
  done
}

# compacted DIR: waits until the cleaner has been over a topic
compacted() {
  local i
  for i in $(seq 60); do
    [ "$(cat "$1"/more-compacted-*/*.log | wc -c)" -lt 4000000 ] && return
    sleep 1
  done
  echo "more-compacted was not compacted"
  return 1
}

# partitions DIR: the folders of partitions in it
partitions() { (cd "$1" && ls -d -- *-[0-9]* | grep -v '^__transaction_state\|-delete$\|-stray$'); }

# written_by_us DIR: makes the directory, and leaves what we served in $work/ours
written_by_us() {
  mkdir -p "$1.golden"
  tar -xzf internal/logdir/testdata/golden/3.9.2.tar.gz -C "$1.golden" 3.9.2-zk/clean/data &&
    mv "$1.golden/3.9.2-zk/clean/data" "$1" && gunzip -c internal/adopt/testdata/3.9.2-tree.jsonl.gz >"$work/tree.jsonl" &&
    "$BARNABAS" adopt "$1" --zookeeper-tree "$work/tree.jsonl" --yes >/dev/null || return 1
  start_broker "$1" --override log.cleaner.backoff.ms=500 --override log.retention.ms=-1 || return 1
  export BARNABAS_BOOTSTRAP_SERVER=$BOOTSTRAP
  write_more && compacted "$1" && served "$BOOTSTRAP" "$work/ours" || return 1
  unset BARNABAS_BOOTSTRAP_SERVER
  stop_broker
}

# dumped DIR: kafka-dump-log over everything
dumped() {
  local logs indexes
  logs=$(find "$1" -name '*.log' -size +0 | sort | paste -sd ,)
  indexes=$(find "$1" \( -name '*.index' -o -name '*.timeindex' -o -name '*.txnindex' -o -name '*.snapshot' \) -size +0 | sort | paste -sd ,)
  test/peers/peers tool kafka-4.4 kafka-dump-log --deep-iteration --files "$logs" >"$work/dump" 2>&1 || { tail -n 5 "$work/dump"; return 1; }
  test/peers/peers tool kafka-4.4 kafka-dump-log --index-sanity-check --files "$indexes" >"$work/dump-indexes" 2>&1 || { tail -n 5 "$work/dump-indexes"; return 1; }
  if grep -i 'isvalid: false\|mismatch\|invalid bytes\|failed\|exception' "$work/dump" "$work/dump-indexes"; then return 1; fi
  # Offsets are missing where a topic is compacted, and nowhere else. (The tool of 4.4 misses -1 everywhere.)
  if awk '/^Non-consecutive/ {file = $NF} /is followed by/ && $1 >= 0 && file !~ /compact/ {print file, $0}' "$work/dump" | grep .; then return 1; fi
  echo "kafka-dump-log: $(grep -c ^Dumping "$work/dump") segments with $(grep -c '^| offset' "$work/dump") records, $(grep -c ^Dumping "$work/dump-indexes") indexes and snapshots"
}

# same_records WHAT: holds what a broker served to what we did
same_records() {
  diff -rq "$work/ours" "$work/$1" || return 1
  echo "$1: $(find "$work/$1" -name '*.jsonl' | wc -l) readings of $(cat "$work/$1"/*uncommitted.jsonl | wc -l) records are the same"
}

# into_zookeeper DIR: zookeeper-shell's commands that make the topics under the ids of partition.metadata
into_zookeeper() {
  local topic id list part
  for topic in $(partitions "$1" | sed 's/-[0-9]*$//' | sort -u); do
    id=$(awk '/^topic_id/ {print $2}' "$(find "$1" -path "*/$topic-[0-9]*/partition.metadata" | head -n 1)")
    list=""
    for part in $(partitions "$1" | grep -E "^${topic//./\\.}-[0-9]+$" | sed 's/.*-//'); do list=$list,\"$part\":[1]; done
    echo "create /config/topics/$topic {\"version\":1,\"config\":{\"cleanup.policy\":\"\",\"retention.ms\":\"-1\"}}"
    echo "create /brokers/topics/$topic {\"removing_replicas\":{},\"partitions\":{${list#,}},\"topic_id\":\"$id\",\"adding_replicas\":{},\"version\":3}"
  done
}

read_by_39() { # DIR
  local zk=127.0.0.1:$((port + 20)) data topic
  peer zookeeper proof-zookeeper "$((port + 20))" && peer kafka-3.9 proof-kafka39 "$((port + 21))" "$zk" @heap=512m \
    log.cleaner.enable=false log.retention.ms=-1 offsets.topic.num.partitions=4 && test/peers/peers stop proof-kafka39 || return 1
  data=$(test/peers/peers dir proof-kafka39)/data
  into_zookeeper "$1" | test/peers/peers tool kafka-3.9 zookeeper-shell -server "$zk" >"$work/zookeeper-shell" 2>&1
  (cd "$1" && partitions . | xargs cp -r -t "$data" && cp log-start-offset-checkpoint "$data") || return 1
  test/peers/peers restart proof-kafka39 && served "127.0.0.1:$((port + 21))" "$work/kafka-3.9" && same_records kafka-3.9 || return 1
  for topic in $(partitions "$1"); do
    cmp <(grep topic_id "$1/$topic/partition.metadata") <(grep topic_id "$data/$topic/partition.metadata") || return 1
  done
  refuses_nothing "$(test/peers/peers dir proof-kafka39)/log"
}

read_by_44() { # DIR
  local at=127.0.0.1:$((port + 30)) data topic name
  peer kafka-4.4 proof-kafka44 "$((port + 30))" @heap=512m log.cleaner.enable=false log.retention.ms=-1 \
    log.cleanup.policy=delete || return 1
  for topic in $(partitions "$1" | sed 's/-[0-9]*$//' | sort -u | grep -v '^__'); do
    "$BARNABAS" topic create "$topic" -b "$at" --partitions "$(partitions "$1" | grep -cE "^${topic//./\\.}-[0-9]+$")" >/dev/null || return 1
  done
  test/peers/peers stop proof-kafka44
  data=$(test/peers/peers dir proof-kafka44)/data
  for name in $(partitions "$1" | grep -v '^__'); do
    find "$data/$name" -type f ! -name partition.metadata -delete
    (cd "$1/$name" && find . -type f ! -name partition.metadata -exec cp {} "$data/$name/" \;)
  done
  cp "$1/log-start-offset-checkpoint" "$data" && rm -f "$data/.kafka_cleanshutdown" "$data/recovery-point-offset-checkpoint"
  test/peers/peers restart proof-kafka44 && served "$at" "$work/kafka-4.4" && same_records kafka-4.4 &&
    refuses_nothing "$(test/peers/peers dir proof-kafka44)/log"
}

# refuses_nothing LOG: a broker's log without complaints about segments, indexes or producers' states
refuses_nothing() {
  if grep -E 'orrupt|CRC| (ERROR|FATAL) ' "$1" | head -n 5 | grep .; then return 1; fi
}

stage_files() {
  say "files"
  local what="the reading of our files by Apache Kafka"
  java_ready "$what" && peer_ready "$what" kafka-3.9 && peer_ready "$what" zookeeper || return
  built || { bad build; return; }
  written_by_us "$work/files" || { bad "a directory to read"; stop_broker; return; }
  check "kafka-dump-log reads all of it" dumped "$work/files"
  check "Kafka 3.9 serves the same records" read_by_39 "$work/files"
  end_peers
  check "Kafka 4.4 recovers and serves the same records" read_by_44 "$work/files"
  end_peers
}
