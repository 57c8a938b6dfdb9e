// Package servers runs real servers as processes of their own and tells what they cost: one broker of ours or of
// Apache Kafka 4.4, and clusters of brokers on a ZooKeeper, ours or of Apache Kafka 3.9.
//
// A [Place] is where the servers of one run live, and ends them all with Close. From a place come a [Server], one
// process in one life after the other, and a [Cluster], several brokers and their ZooKeeper:
//
//	place, err := servers.NewPlace(dir, 26000)
//	defer place.Close()
//	kafka, err := place.Kafka("kafka", "num.partitions=6")   // properties, the last of a name wins
//	err = kafka.Start(ctx)                                   // returns when it answers
//	before, err := kafka.Usage()                             // CPU seconds, resident memory
//	kafka.Kill(); err = kafka.Start(ctx)                     // the same address and data
//
//	ours, err := place.BarnabasCluster("ours", 3)            // likewise place.KafkaCluster("theirs", 3)
//	err = ours.Start(ctx)                                    // ZooKeeper, then the brokers, until all are registered
//	ours.Brokers[0].Kill()
//
// All listen on 127.0.0.1. The jars of Kafka and ZooKeeper come from Maven Central by the poms of test/peers, once;
// a JVM broker has the heap and the flags of Kafka's own start script (1 GiB). What a process uses is read from
// /proc, so this is for Linux.
package servers
