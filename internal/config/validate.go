package config

import (
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// conflicts are the faults that no property has by itself: what Kafka's KafkaConfig checks across them.
//
// Kafka throws the first that it finds. Here all of them come at once, before anything is opened, so that a
// file is mended in one go.
func (b *Broker) conflicts() []error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, protocol.Errorf(protocol.InvalidConfig, format, args...))
		}
	}
	b.checkLog(require)
	b.checkConnections(require)
	b.checkGroups(require)
	b.checkNode(require)
	return append(faults, b.checkListeners()...)
}

// requirement records a fault where ok is false.
type requirement func(ok bool, format string, args ...any)

func (b *Broker) checkLog(require requirement) {
	require(b.millis(brokerSynonyms("log.roll.ms")) >= 1, "log.roll.ms must be greater than or equal to 1")
	require(b.millis(brokerSynonyms("log.roll.jitter.ms")) >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
	require(b.millis(brokerSynonyms("log.retention.ms")) != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
	if threads := b.Long("log.cleaner.threads"); threads > 0 {
		require(b.Long("log.cleaner.dedupe.buffer.size")/threads > 1<<20, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
	}
	minLag, maxLag := b.Long("log.cleaner.min.compaction.lag.ms"), b.Long("log.cleaner.max.compaction.lag.ms")
	require(minLag <= maxLag, "conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", minLag, maxLag)
	dirs := b.LogDirs()
	require(len(dirs) > 0, "At least one log directory must be defined via log.dirs or log.dir.")
	for _, dir := range b.List("cordoned.log.dirs") {
		require(dir == "*" || slices.Contains(dirs, dir), "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : %s", dir)
	}
}

func (b *Broker) checkConnections(require requirement) {
	wait := b.Long("replica.fetch.wait.max.ms")
	require(wait <= b.Long("replica.socket.timeout.ms"), "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts")
	require(wait <= b.Long("replica.lag.time.max.ms"), "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR")
	queued := b.Long("queued.max.request.bytes")
	require(queued <= 0 || queued >= b.Long("socket.request.max.bytes"), "queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
	require(b.Long("max.connections.per.ip") > 0 || b.String("max.connections.per.ip.overrides") != "",
		"max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.")
	if _, err := b.ConnectionsPerIP(); err != nil {
		require(false, "%s", *protocol.MessageOf(err))
	}
	delay, idle := b.Long("connection.failed.authentication.delay.ms"), b.Long("connections.max.idle.ms")
	require(idle < 0 || delay < idle, "connection.failed.authentication.delay.ms=%d should always be less than connections.max.idle.ms=%d to prevent failed authentication responses from timing out", delay, idle)
}

// checkNode checks what says who this broker is.
func (b *Broker) checkNode(require requirement) {
	if id := b.String("cluster.id"); id != "" {
		_, err := protocol.ParseTopicID(id) // cluster ids have the form of topic ids in Kafka too
		require(err == nil, "Invalid value %s for configuration cluster.id: it is not 22 characters of URL-safe base64; leave it out to draw a new one", id)
	}
}

// ordered are groups' properties of which none may be below the one before it: minimum, value, maximum.
var ordered = [][]string{
	{"group.min.session.timeout.ms", "group.max.session.timeout.ms"},
	{"group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
	{"group.share.min.session.timeout.ms", "group.share.session.timeout.ms", "group.share.max.session.timeout.ms"},
	{"group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
	{"group.share.min.assignment.interval.ms", "group.share.assignment.interval.ms", "group.share.max.assignment.interval.ms"},
	{"group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	{"group.share.min.delivery.count.limit", "group.share.delivery.count.limit", "group.share.max.delivery.count.limit"},
	{"group.share.min.partition.max.record.locks", "group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"},
	{"group.streams.min.session.timeout.ms", "group.streams.session.timeout.ms", "group.streams.max.session.timeout.ms"},
	{"group.streams.min.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"},
	{"group.streams.min.assignment.interval.ms", "group.streams.assignment.interval.ms", "group.streams.max.assignment.interval.ms"},
	{"group.streams.num.standby.replicas", "group.streams.max.standby.replicas"},
	{"group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"},
	{"group.streams.min.task.offset.interval.ms", "group.streams.task.offset.interval.ms"},
}

func (b *Broker) checkGroups(require requirement) {
	for _, chain := range ordered {
		for i := 1; i < len(chain); i++ {
			low, high := chain[i-1], chain[i]
			require(b.Long(low) <= b.Long(high), "%s must be less than or equal to %s", low, high)
		}
	}
	for _, kind := range []string{"group.consumer.", "group.share.", "group.streams."} {
		heartbeat, session := kind+"heartbeat.interval.ms", kind+"session.timeout.ms"
		require(b.Long(heartbeat) < b.Long(session), "%s must be less than %s", heartbeat, session)
	}
}

// Unsupported names everything in the configuration that asks for what Barnabas cannot do yet and that must
// not be ignored silently, such as encryption. A start stops where it is not empty; showing a configuration
// does not.
func (b *Broker) Unsupported() []error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, protocol.Errorf(protocol.InvalidConfig, format, args...))
	}
	b.unsupportedZooKeeper(fault)
	b.unsupportedQuorum(fault)
	for _, l := range b.Listeners() {
		if l.Protocol != Plaintext {
			fault("listener %s: security protocol %s is not supported yet, only PLAINTEXT is", l.Name, l.Protocol)
		}
	}
	for _, name := range []string{
		"authorizer.class.name", "create.topic.policy.class.name", "alter.config.policy.class.name", "client.quota.callback.class",
	} {
		if class := b.String(name); class != "" {
			fault("%s=%s: classes cannot be loaded, and this one must not be left out silently; it is not supported yet", name, class)
		}
	}
	if b.Bool("remote.log.storage.system.enable") {
		fault("remote.log.storage.system.enable=true: tiered storage is not supported")
	}
	if providers := b.List("config.providers"); len(providers) > 0 {
		fault("config.providers=%s: configuration providers are not supported; write the values themselves", strings.Join(providers, ","))
	}
	return faults
}

// unsupportedZooKeeper finds settings of a cluster on ZooKeeper that cannot be obeyed.
func (b *Broker) unsupportedZooKeeper(fault func(format string, args ...any)) {
	if b.String("zookeeper.connect") == "" {
		return
	}
	if roles := b.List("process.roles"); b.IsSet("process.roles") && len(roles) > 0 {
		fault("process.roles=%s and zookeeper.connect=%s: a cluster is either on ZooKeeper or not", strings.Join(roles, ","), b.String("zookeeper.connect"))
	}
	for _, name := range []string{"zookeeper.metadata.migration.enable", "zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable"} {
		if b.Bool(name) {
			fault("%s=true is not supported", name)
		}
	}
	if version := b.String("inter.broker.protocol.version"); !speaks(version) {
		fault("inter.broker.protocol.version=%s: Barnabas speaks to other brokers as Apache Kafka does at %s, and those at another version would not "+
			"understand it; set it to %[2]s on all brokers of Apache Kafka first, as at the end of an upgrade to Kafka %[2]s, and then here or nowhere",
			version, interBrokerProtocol)
	}
}

// interBrokerProtocol is the one version of Kafka whose requests between brokers are spoken.
const interBrokerProtocol = "3.9"

// speaks reports whether a value of inter.broker.protocol.version is that version, or one of its steps as 3.9-IV0.
func speaks(version string) bool {
	release, _, _ := strings.Cut(version, "-")
	return release == interBrokerProtocol
}

// unsupportedQuorum finds settings that mean a node of a larger KRaft cluster. Run alone, such a node would
// be a second, empty cluster that looks like the first.
func (b *Broker) unsupportedQuorum(fault func(format string, args ...any)) {
	roles := b.List("process.roles")
	if len(roles) > 0 && !slices.Contains(roles, "broker") {
		fault("process.roles=%s: there are no controllers without a broker here, the store is built in", strings.Join(roles, ","))
	}
	for _, name := range []string{"controller.quorum.voters", "controller.quorum.bootstrap.servers"} {
		members := b.List(name)
		if len(members) > 1 {
			fault("%s=%s: a cluster of several nodes is not supported yet, leave only this one", name, strings.Join(members, ","))
		} else if len(members) == 1 && !slices.Contains(roles, "controller") {
			fault("%s=%s with process.roles=%s: joining the controllers of an Apache Kafka cluster is not supported", name, members[0], strings.Join(roles, ","))
		}
	}
}
