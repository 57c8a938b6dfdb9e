# The stage "librdkafka" of test/proof: librdkafka's own suite. Its sources come with an npm package, tests included.
# 0129 is left out: it waits for a transaction's coordinator until its time is up, and the runner then ends all tests.
# What is known not to pass stands in test/librdkafka.txt with the reason; any other failure is one.

librdkafka_package=@confluentinc/kafka-javascript
librdkafka_version=1.10.1

# librdkafka_tests: builds the test program once, and prints its folder
librdkafka_tests() {
  local home=$BARNABAS_TEST_CACHE/librdkafka-$librdkafka_version
  if [ ! -x "$home/package/deps/librdkafka/tests/test-runner" ]; then
    rm -rf "$home"
    mkdir -p "$home"
    (
      cd "$home" && npm pack --silent "$librdkafka_package@$librdkafka_version" && tar -xzf ./*.tgz &&
        cd package/deps/librdkafka && ./configure && make -j2 libs && make -C tests -j2 build
    ) >"$home/log" 2>&1 || { echo "see $home/log" >&2; return 1; }
  fi
  echo "$home/package/deps/librdkafka/tests"
}

# suite DIR: runs it and prints a line for each test that did not pass
suite() {
  local tools=$work/kafka/bin log=$BARNABAS_TEST_CACHE/librdkafka.log name state bad=0
  "$BARNABAS" link "$tools" >/dev/null || return 1
  printf 'metadata.broker.list=%s\n' "$BOOTSTRAP" >"$work/test.conf"
  (
    cd "$1" && LD_LIBRARY_PATH=../src:../src-cpp RDKAFKA_TEST_CONF=$work/test.conf TEST_KAFKA_VERSION=4.4.0 TESTS_SKIP=0129 KAFKA_PATH=$work/kafka \
      BROKERS=$BOOTSTRAP timeout 1500 ./test-runner -L -Q -E -K -p2
  ) >"$log" 2>&1
  while read -r name state; do
    case $state in
    PASSED | SKIPPED) ;; # skipped are those that need no broker, or what a test of quick mode leaves out
    *)
      if grep -q "^${name%%_*} " test/librdkafka.txt; then
        echo "  $name $state: $(sed -n "s/^${name%%_*} //p" test/librdkafka.txt)"
      else
        echo "  $name $state; see $log"
        bad=$((bad + 1))
      fi
      ;;
    esac
  done < <(results "$log")
  echo "librdkafka's suite: $(results "$log" | grep -c PASSED) passed, $(results "$log" | grep -c FAILED) failed, $(results "$log" | grep -c SKIPPED) skipped, $(results "$log" | grep -c DNS) did not start"
  [ "$(results "$log" | grep -c PASSED)" -gt 50 ] && [ "$bad" -eq 0 ]
}

# results LOG: name and state of each test, from the summary
results() { sed 's/\x1b\[[0-9;]*m//g' "$1" | sed -n 's/^| *\([0-9]\{4\}_[A-Za-z0-9_]*\) *| *\([A-Z]*\) *|.*/\1 \2/p'; }

stage_librdkafka() {
  say "librdkafka"
  local dir
  for tool in npm make g++; do
    command -v "$tool" >/dev/null || { missing "librdkafka's suite: it needs npm, make and a C++ compiler"; return; }
  done
  dir=$(librdkafka_tests) || { missing "librdkafka's suite: it could not be fetched or built"; return; }
  start_broker "$work/librdkafka" --override num.partitions=4 || { bad "start of a broker"; return; }
  check "librdkafka's suite, quick" suite "$dir"
  stop_broker
}
