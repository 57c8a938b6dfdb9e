// Package adopt takes over the log directories of a single broker of Apache Kafka, of 3.9 with ZooKeeper or
// of 4.4 with KRaft: it writes into the built-in store, in Kafka's znode layout, what the old cluster knew of
// the topics that lie in the directories. It changes nothing of Kafka's files; it only adds files of ours.
//
// What the old cluster knew comes from the first of these that there is:
//
//	__cluster_metadata-0      in one of the directories, or in metadata.log.dir
//	a dump of the tree        one znode a line: {"path":"/brokers/topics/orders","data":"{\"partitions\":…}", …}
//	what kafka-configs says   --describe of topics and brokers: names and properties
//
// and always from the folders themselves: partitions, topic ids (partition.metadata), the highest leader
// epoch (leader-epoch-checkpoint and the last batches), and producer ids. The old server.properties adds what
// topics without properties of their own fall back to.
//
// # What must not go wrong
//
// Nothing is deleted because something was not known: a topic whose properties nobody knows gets an empty
// cleanup.policy, and where the old broker's own defaults are not known, log.retention.ms=-1 is the default
// until somebody says otherwise.
//
// No leader epoch is used twice: states are written with an epoch above the highest that is known, and the
// controller that starts on them raises it again, since no broker lives that it could trust.
//
// No producer id is given out twice: /latest_producer_id_block begins where the old cluster's blocks end, and
// where nobody knows that, far above the highest id in any log.
//
// # Order of the writes
//
// First what is not about topics, then the topics, each with all that belongs to it in one transaction (or,
// where it has too many partitions for one, with its own znode empty until the rest is there). A broker does
// not start on folders of topics that its store does not know, so that a crash in between leaves directories
// that only a second adoption can finish, and that Kafka can still take back.
package adopt
