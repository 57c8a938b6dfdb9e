// Package group is the group coordinator: members of consumer groups find each other through it, share out
// partitions, and keep their offsets in it.
//
// A [Machine] holds the groups of one partition of __consumer_offsets and is run by package shard; it has no
// clock and does no I/O. [Coordinator] is the front with one method an API. A group is of one kind, each
// kind in its own files: classic (classic*.go, KIP-62, 345, 394), which also stands for groups that only
// keep offsets ("simple" ones), and foreign (foreign.go): kinds whose records are in an adopted log and are
// kept, but whose protocol is not spoken here. Committed offsets (offset*.go) belong to any kind.
//
// The records, as Kafka writes them; all integers big-endian, string = int16 length, bytes. Keys begin with
// their type:
//
//	0, 1   key    group string | topic string | partition int32
//	       value  version int16 | offset int64 | leader epoch int32 (3+) | metadata string |
//	              commit time int64 | expire time int64 (only 1) | 4+: compact strings, tag 0: topic id
//	2      key    group string
//	       value  version int16 | protocol type string | generation int32 | protocol string? | leader string? |
//	              state time int64 (2+) | members: member id string | instance id string? (3+) | client id
//	              string | host string | rebalance timeout int32 (1+) | session timeout int32 |
//	              subscription bytes | assignment bytes
//	3-8, 16            consumer groups (KIP-848)
//	10-15              share groups (KIP-932)
//	17, 19-23          streams groups (KIP-1071)
//
// Values are written in versions that every Kafka since 2.3 and every known reader of the topic understands:
// 3 for both, unless [Config].TopicIDs asks for offsets of version 4, which Kafka 4 writes and older tools
// (Burrow among them) cannot read; and 1 for a commit with a retention time of its own. A record in a
// transaction counts once the marker behind it says that it was committed.
package group
