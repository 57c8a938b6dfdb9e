// Package kraft reads, and never writes, the metadata that Apache Kafka keeps in KRaft mode: the log of the
// partition __cluster_metadata-0 and its snapshots.
//
//	__cluster_metadata-0/
//	├ 00000000000000000412-0000000003.checkpoint  a snapshot: all that holds before offset 412, as records
//	└ 00000000000000000000.log                    the log, in segments, in the format of package record
//
// The value of a record is a frame, then the fields of its type in the flexible encoding of Kafka's
// protocol (compact strings and arrays, tagged fields at the end):
//
//	frame version uvarint (1) | type uvarint | version uvarint | fields | tags
//
// The types that matter here, by number:
//
//	 0 RegisterBroker    1 UnregisterBroker   2 Topic                       3 Partition
//	 4 Config            5 PartitionChange    9 RemoveTopic                10 DelegationToken
//	11 UserScramCredential  12 FeatureLevel  14 ClientQuota                15 ProducerIds
//	17 BrokerRegistrationChange  18 AccessControlEntry  19 RemoveAccessControlEntry
//	22 RemoveUserScramCredential 23 BeginTransaction    24 EndTransaction  25 AbortTransaction
//	26 RemoveDelegationToken
//
// The others say nothing about what a cluster holds. A type that is newer than this list is counted in
// [Image.Unknown]. New versions of a type only add tagged fields, which are skipped where they are not known.
package kraft
