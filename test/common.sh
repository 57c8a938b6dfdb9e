# What test/run and test/proof share: the place, the counts, and a broker. To be sourced by bash.
# Each ends with one line "N passed, N failed, N skipped"; what a machine lacks is named as NOT RUN.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root" || exit 1
export BARNABAS_TEST_CACHE=${BARNABAS_TEST_CACHE:-$HOME/.cache/barnabas-test}
work=$(mktemp -d)
broker_pids=()
passed=0 failed=0 skipped=0
export BARNABAS=$work/barnabas

stop_broker() { # all that start_broker started
  local pid
  for pid in "${broker_pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${broker_pids[@]}"; do wait "$pid" 2>/dev/null; done
  broker_pids=()
}
trap 'stop_broker; rm -rf "$work"' EXIT

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
  for _ in $(seq 100); do
    [ -s "$ready" ] && break
    kill -0 "$pid" 2>/dev/null || { cat "$log"; return 1; }
    sleep 0.1
  done
  [ -s "$ready" ] || { cat "$log"; return 1; }
  BOOTSTRAP=$(head -n 1 "$ready")
  export BOOTSTRAP
}
