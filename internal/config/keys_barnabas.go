package config

// barnabasKeys are the few properties that Apache Kafka does not have.
var barnabasKeys = []Key{
	{Name: "auto.balance.enable", Type: Boolean, Default: new("false"), Dynamic: ClusterWide, Since: "Barnabas",
		Doc: "Whether brokers that hold less than nine tenths of an even share of the replicas, as one that has just joined, get theirs by themselves: the controller moves partitions to them, a few at a time, while all replicas are in sync."},
	{Name: "auto.balance.throttled.rate", Type: Long, Default: new("50000000"), Rule: atLeast(0), Dynamic: ClusterWide, Since: "Barnabas",
		Doc: "Most bytes per second that each broker sends and takes for what auto.balance.enable moves, 0 for no limit. While it moves, it stands in leader.replication.throttled.rate and follower.replication.throttled.rate of all brokers, unless those are set already."},
	{Name: "cluster.id", Type: String, Since: "Barnabas",
		Doc: "Id to format an empty directory with, 22 characters of URL-safe base64, as CLUSTER_ID in Kafka's container images. Without it a new id is drawn. A directory that has another id is refused."},
	{Name: "http.listener", Type: String, Default: new("127.0.0.1:9644"), Since: "Barnabas",
		Doc: "Address of /metrics, /livez, /readyz and the console, host:port; port 0 takes a free one, empty turns it off."},
	{Name: "logging.format", Type: String, Default: new("text"), Rule: oneOf("text", "json"), Since: "Barnabas",
		Doc: "How the broker's own log lines are written: text or json."},
	{Name: "logging.level", Type: String, Default: new("info"), Rule: oneOfFold("trace", "debug", "info", "warn", "error", "fatal", "off"), Since: "Barnabas",
		Doc: "The least severe of the broker's own log lines that is written: debug, info, warn or error. The other names of log4j are taken too."},
	{Name: "unclean.recovery.timeout.ms", Type: Long, Default: new("30000"), Rule: atLeast(0), Dynamic: ClusterWide, Since: "Barnabas",
		Doc: "Milliseconds that the controller waits, where nobody in sync may lead a partition, for the missing members of the in-sync set, before it elects a leader that may lack acknowledged records. It does so only for topics with unclean.leader.election.enable. With 0 it waits for nobody, as Kafka."},
	{Name: "zookeeper.sasl.jaas.config", Type: Password, Since: "Barnabas",
		Doc: "Whom to log in as to ZooKeeper by SASL DIGEST-MD5, in the form of an entry of a JAAS file: org.apache.zookeeper.server.auth.DigestLoginModule required username=\"…\" password=\"…\" with a semicolon at its end."},
}
