#!/usr/bin/env bash
# Smoke test of kcat (Debian's, on librdkafka): keys, headers, idempotence, group with commit, transactions.
set -euo pipefail
: "${BOOTSTRAP:?}" "${TOPIC:?}" "${BARNABAS:?path of the built program, which makes the topics}"
command -v kcat >/dev/null || { echo "skip kcat: not installed (package kcat)"; exit 3; }
name="kcat-$(kcat -V 2>&1 | sed -n 's/^Version \([^ ]*\).*librdkafka \([0-9.]*\).*/\1 (librdkafka \2)/p')"
start=$SECONDS step=create passed=""
fail() { echo "FAIL $name: $step: $* (passed: $passed)"; exit 1; }
trap 'fail "line $LINENO"' ERR
ok() { passed+="${passed:+, }$step"; }
k() { timeout 120 kcat -q -b "$BOOTSTRAP" "$@" 2>/dev/null; }

for t in "$TOPIC" "$TOPIC-txn"; do # kcat has no admin requests
  "$BARNABAS" topic create "$t" --partitions 3 --replication-factor "${REPLICAS:-1}" -b "$BOOTSTRAP" >/dev/null
done

step="idempotent"
for ((i = 0; i < 1000; i++)); do echo "k$((i % 10)):$i"; done |
  k -P -t "$TOPIC" -K : -H n=x -X enable.idempotence=true -X acks=all -z gzip
ok

step="headers+group+commit"
got=$(k -G "$TOPIC-g" -X auto.offset.reset=earliest -e -f '%k %s %h\n' "$TOPIC")
[ "$(wc -l <<<"$got")" = 1000 ] || fail "consumed $(wc -l <<<"$got") of 1000"
awk '$3 != "n=x" {print "header"; exit 1} ($1 in last) && $2 <= last[$1] {print "order"; exit 1} {last[$1] = $2}' <<<"$got" >/dev/null ||
  fail "order per key or header"
again=$(k -G "$TOPIC-g" -X auto.offset.reset=earliest -e -f '%s\n' "$TOPIC")
[ -z "$again" ] || fail "the group read $(wc -l <<<"$again") records again"
ok

step="offsets by time"
end=$(k -Q -t "$TOPIC:0:-1" -t "$TOPIC:1:-1" -t "$TOPIC:2:-1" | awk '{s += $NF} END {print s}')
[ "$end" = 1000 ] || fail "ends sum to $end"
ok

if [[ ",${SKIP:-}," != *,txn,* ]]; then
  step="txn-commit" # an interrupted kcat 1.7.1 leaves its transaction open instead of aborting it
  for ((i = 0; i < 10; i++)); do echo "k$i:commit"; done | k -P -t "$TOPIC-txn" -K : -X transactional.id="$TOPIC-id"
  got=$(k -C -t "$TOPIC-txn" -o beginning -e -X isolation.level=read_committed -f '%s\n')
  [ "$(grep -c commit <<<"$got")" = 10 ] || fail "read_committed saw $(wc -l <<<"$got") records"
  ok
fi
echo "ok $name: $passed ($((SECONDS - start)) s)"
