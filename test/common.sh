# What test/run and test/proof share: the place, the counts, a broker, a cluster. To be sourced by bash.
# Each ends with one line "N passed, N failed, N skipped"; what a machine lacks is named as NOT RUN.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root" || exit 1
export BARNABAS_TEST_CACHE=${BARNABAS_TEST_CACHE:-$HOME/.cache/barnabas-test}
work=$(mktemp -d)
broker_pids=() clusters=() zookeeper_pid=
passed=0 failed=0 skipped=0
export BARNABAS=$work/barnabas

stop_broker() { # all that start_broker started
  local pid
  for pid in "${broker_pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${broker_pids[@]}"; do wait "$pid" 2>/dev/null; done
  broker_pids=()
}

stop_cluster() { # all that start_zookeeper and start_cluster started; what did not stop well has failed
  local dir
  for dir in "${clusters[@]}"; do test/brokers stop "$dir" || bad "stop of the cluster in $dir"; done
  clusters=()
  if [ -n "$zookeeper_pid" ]; then kill "$zookeeper_pid" && wait "$zookeeper_pid"; fi
  zookeeper_pid=
}

# end_cluster: the same for a script that ends, however that came about
end_cluster() {
  local dir
  for dir in "${clusters[@]}"; do test/brokers kill "$dir"; done
  clusters=()
  if [ -n "$zookeeper_pid" ]; then kill "$zookeeper_pid" 2>/dev/null; fi
}
trap 'stop_broker; end_cluster; rm -rf "$work"' EXIT

say() { printf '\n== %s\n' "$*"; }
ok() { passed=$((passed + 1)); echo "ok: $*"; }
bad() { failed=$((failed + 1)); echo "FAIL: $*"; }
missing() { skipped=$((skipped + 1)); echo "NOT RUN: $*"; }
check() { # NAME COMMAND...: one check that passes or fails
  local name=$1
  shift
  if "$@"; then ok "$name"; else bad "$name"; fi
}

built() { [ -x "$BARNABAS" ] || go build -o "$BARNABAS" ./cmd/barnabas; }

# start_broker DIR [ARGS...]: a broker on a free port with its data in DIR; sets BOOTSTRAP
start_broker() {
  built || return 1
  local log=$work/broker-${#broker_pids[@]}.log ready=$work/ready pid
  rm -f "$ready"
  "$BARNABAS" start --data-dir "$1" --override listeners=PLAINTEXT://127.0.0.1:0 --override http.listener= \
    --ready-file "$ready" "${@:2}" >"$log" 2>&1 &
  pid=$!
  broker_pids+=("$pid")
  for _ in $(seq 600); do
    [ -s "$ready" ] && break
    kill -0 "$pid" 2>/dev/null || { cat "$log"; return 1; }
    sleep 0.1
  done
  [ -s "$ready" ] || { cat "$log"; return 1; }
  BOOTSTRAP=$(head -n 1 "$ready")
  export BOOTSTRAP
}

# zookeeper_ready: whether the tests find a ZooKeeper; the places are those of internal/coordination/zookeeper/zktest
zookeeper_ready() {
  command -v java >/dev/null || return 1
  [ -n "${BARNABAS_TEST_ZOOKEEPER:-}" ] || [ -e /usr/share/java/zookeeper.jar ] || compgen -G "$BARNABAS_TEST_CACHE/zookeeper/*.jar" >/dev/null
}

# start_zookeeper DIR: a real ZooKeeper on a free port with its data in DIR; sets ZOOKEEPER
start_zookeeper() {
  go build -o "$work/zookeeper" ./test/zookeeper || return 1
  rm -f "$work/zookeeper-ready"
  "$work/zookeeper" -dir "$1" -ready "$work/zookeeper-ready" >"$work/zookeeper.log" 2>&1 &
  zookeeper_pid=$!
  for _ in $(seq 600); do
    [ -s "$work/zookeeper-ready" ] && break
    kill -0 "$zookeeper_pid" 2>/dev/null || break
    sleep 0.1
  done
  [ -s "$work/zookeeper-ready" ] || { cat "$work/zookeeper.log"; return 1; }
  ZOOKEEPER=$(cat "$work/zookeeper-ready")
}

# start_cluster DIR COUNT [ARGS...]: a process a broker, with a ZooKeeper in DIR.zookeeper where none runs; sets
# BOOTSTRAP to all addresses. test/brokers stops and starts the brokers one by one.
start_cluster() {
  built || return 1
  [ -n "$zookeeper_pid" ] || start_zookeeper "$1.zookeeper" || return 1
  clusters+=("$1")
  test/brokers create "$1" "$2" --override "zookeeper.connect=$ZOOKEEPER/$(basename "$1")" "${@:3}" &&
    test/brokers start "$1" || return 1
  BOOTSTRAP=$(test/brokers bootstrap "$1")
  export BOOTSTRAP
}

# Tests of franz-go's suite that need transactions, KIP-848 or share groups.
kgo_skip='Txn|Transact|848|Share|EOS|TestIssue337'

# kgo REPLICAS: franz-go's suite against the brokers of BOOTSTRAP
kgo() {
  local log=$work/kgo.log replicas=$1
  KGO_SEEDS=$BOOTSTRAP KGO_TEST_RF=$replicas KGO_TEST_RECORDS=${KGO_TEST_RECORDS:-50000} KGO_LOG_LEVEL=none \
    go -C test/kgo test -v -count=1 -timeout 40m -skip "$kgo_skip" github.com/twmb/franz-go/pkg/kgo >"$log" 2>&1 && set -- 0 || set -- 1
  [ "$1" -eq 0 ] || grep -v '^ *=== ' "$log" | tail -n 60
  grep '^ *--- SKIP' "$log"
  echo "franz-go's suite: $(grep -c '^ *--- PASS' "$log") tests passed, $(grep -c '^ *--- SKIP' "$log") skipped, $(grep -c '^ *--- FAIL' "$log") failed"
  return "$1"
}
