// Package cluster measures three brokers on a ZooKeeper: how long they take to create, lose, hand over and regain
// partitions, and what replicated records and idling cost them. Ours and Apache Kafka's 3.9 are measured by the same
// code, from outside.
//
// # Clocks
//
// What a loss of a broker costs is counted from when its ephemeral node /brokers/ids/N is gone, as a session of our
// own on the same ZooKeeper sees it: before, nobody can know. A step has happened when the Metadata answers of all
// living brokers show it, each asked over a connection of its own, again and again.
//
//	kill -9 ── session timeout ──▶ node gone ──▶ last new leader seen ──▶ acks=all works everywhere
//	                               clock starts
//
// # Costs
//
// CPU is the sum over the brokers' processes, user and system, from /proc; neither the client nor ZooKeeper is in it.
package cluster
