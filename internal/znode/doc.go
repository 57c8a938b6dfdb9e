// Package znode is Kafka's ZooKeeper layout: where things lie in the tree, and their JSON. One file a
// znode, which shows the JSON that real brokers of Kafka 3.9 write.
//
//	/admin/barnabas_balance_throttle          ours: throttles that the controller has set by itself
//	/admin/delete_topics/T                    topics on their way out
//	/brokers/ids/N                            living brokers (ephemeral)
//	/brokers/seqid                            counter behind generated broker ids
//	/brokers/topics/T                         topic id and assignment
//	/brokers/topics/T/partitions/P/state      leader, epochs, in-sync replicas
//	/cluster/id
//	/config/{topics,brokers,clients,users,ips}/X
//	/config/changes/config_change_S           "this entity has changed" (sequential)
//	/controller                               the active controller (ephemeral)
//	/controller_epoch                         its epoch; the data version is the guard of its writes
//	/feature                                  finalised features, as Kafka 3.9 knows them
//	/latest_producer_id_block
//
// Encoders write what Kafka 3.9 writes, byte for byte, up to the order of keys where Kafka's is that of a
// hash map. Decoders take every older version and ignore keys that they do not know: newer brokers and
// other programs may have added some. What Barnabas adds to Kafka's JSON are keys that Kafka ignores in the
// same way, all of them named barnabas_….
package znode

// Permanent lists the znodes that every broker makes at its start where they are missing, parents first.
// All of them are created without data.
func Permanent() []string {
	return []string{
		"/consumers", "/brokers", "/brokers/ids", "/brokers/topics", "/config", "/config/changes",
		"/admin", "/admin/delete_topics", "/brokers/seqid", "/isr_change_notification",
		ProducerIDBlockPath, "/log_dir_event_notification",
		"/config/topics", "/config/clients", "/config/users", "/config/brokers", "/config/ips",
		"/cluster",
	}
}

// Paths of znodes whose children are what matters.
const (
	BrokersPath       = "/brokers/ids"
	TopicsPath        = "/brokers/topics"
	DeleteTopicsPath  = "/admin/delete_topics"
	ConfigPath        = "/config"
	ConfigChangesPath = "/config/changes"
)

// DeleteTopicPath is the znode whose existence asks for the deletion of a topic; it has no data.
func DeleteTopicPath(topic string) string { return DeleteTopicsPath + "/" + topic }
