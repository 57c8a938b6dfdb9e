# Stages of test/proof that want three brokers as processes on a real ZooKeeper. To be sourced by test/proof.

# cluster_of_three NAME [ARGS...]: a cluster whose topics have three replicas; sets BOOTSTRAP
cluster_of_three() {
  zookeeper_ready || { missing "$1: there is no ZooKeeper, or no Java"; return 1; }
  start_cluster "$work/$1" 3 --override default.replication.factor=3 --override group.initial.rebalance.delay.ms=0 "${@:2}" ||
    { bad "start of a cluster for $1"; return 1; }
}

stage_kgo() {
  say "kgo"
  cluster_of_three kgo --override min.insync.replicas=2 || return
  check "franz-go's suite, three replicas on three processes" kgo 3
  stop_cluster
}
