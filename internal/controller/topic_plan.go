package controller

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// NewTopic is a topic to be created.
type NewTopic struct {
	// Name is the topic's name.
	Name string
	// Partitions and ReplicationFactor are -1 for the broker's default, and where Assignment says both.
	Partitions        int32
	ReplicationFactor int16
	// Assignment gives the replicas of every partition, the preferred leader first; nil to have them placed.
	Assignment []Assignment
	// Configs is what is set on the topic; a nil value is refused.
	Configs map[string]*string
}

// Assignment is the replicas of one partition.
type Assignment struct {
	Partition int32
	Replicas  []P.BrokerID
}

// maxPartitionsPerRequest bounds what one request creates; the rest is a policy violation, as in Kafka.
const maxPartitionsPerRequest = 10_000

// topicPlan is what a NewTopic comes to.
type topicPlan struct {
	name     string
	id       P.TopicID
	replicas [][]P.BrokerID
	configs  map[string]string
}

// planner holds what plans are made with.
type planner struct {
	image  *metadata.Image
	loads  loads
	config *config.Broker
	random *rand.Rand
	// deleting holds the names of topics that are on their way out.
	deleting map[string]bool
	// policy refuses topics for reasons of the operator's; nil allows all.
	policy func(NewTopic) error
	// spoken holds, by their name in metrics, the topics that others could collide with; planned those of
	// this request.
	spoken, planned map[string]string
}

// planTopic checks a new topic as Kafka 4 does, with its codes and sentences and in its order, and says
// what has to be written.
func (pl *planner) planTopic(t NewTopic) (topicPlan, error) {
	if err := pl.checkName(t.Name); err != nil {
		return topicPlan{}, err
	}
	configs, err := plainConfigs(t.Configs)
	if err != nil {
		return topicPlan{}, err
	}
	if P.IsInternalTopic(t.Name) {
		t, configs = internalTopic(t, configs, pl.config, len(pl.image.Brokers()))
	}
	if err := pl.config.ValidateTopic(configs); err != nil {
		return topicPlan{}, err
	}
	replicas, err := pl.replicas(t)
	if err != nil {
		return topicPlan{}, err
	}
	if pl.policy != nil {
		if err := pl.policy(t); err != nil {
			return topicPlan{}, P.Errorf(P.PolicyViolation, "%w", err)
		}
	}
	plan := topicPlan{name: t.Name, id: P.NewTopicID(), replicas: replicas, configs: configs}
	pl.count(replicas)
	pl.planned[metricName(t.Name)] = t.Name
	return plan, nil
}

// checkName refuses names that cannot be, that are taken, and that look like another in metrics.
func (pl *planner) checkName(name string) error {
	if err := P.ValidateTopicName(name); err != nil {
		return err
	}
	if name == P.ClusterMetadataTopic {
		return P.Errorf(P.InvalidRequest, "Creation of internal topic %s is prohibited.", name)
	}
	if pl.deleting[name] {
		return P.Errorf(P.TopicAlreadyExists, "Topic '%s' is marked for deletion.", name)
	}
	if pl.image.Topic(name) != nil {
		return P.Errorf(P.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	for _, names := range []map[string]string{pl.spoken, pl.planned} {
		if other := names[metricName(name)]; other != "" && P.TopicNamesCollide(name, other) {
			return P.Errorf(P.InvalidTopic, "Topic '%s' collides with existing topic: %s", name, other)
		}
	}
	return nil
}

// plainConfigs takes the pointers away; a null value is not for a new topic.
func plainConfigs(configs map[string]*string) (map[string]string, error) {
	plain := make(map[string]string, len(configs))
	var nulls []string
	for name, value := range configs {
		if value == nil {
			nulls = append(nulls, name)
			continue
		}
		plain[name] = *value
	}
	if len(nulls) > 0 {
		slices.Sort(nulls)
		return nil, P.Errorf(P.InvalidConfig, "Null value not supported for topic configs: %s", join(nulls))
	}
	return plain, nil
}

// replicas takes the assignment of a new topic, or places one.
func (pl *planner) replicas(t NewTopic) ([][]P.BrokerID, error) {
	if len(t.Assignment) > 0 {
		switch {
		case t.ReplicationFactor != -1:
			return nil, P.Errorf(P.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
		case t.Partitions != -1:
			return nil, P.Errorf(P.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
		}
		return pl.manual(t.Assignment)
	}
	switch {
	case t.ReplicationFactor < -1 || t.ReplicationFactor == 0:
		return nil, P.Errorf(P.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	case t.Partitions < -1 || t.Partitions == 0:
		return nil, P.Errorf(P.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	partitions, factor := int(t.Partitions), int(t.ReplicationFactor)
	if partitions == -1 {
		partitions = int(pl.config.Int("num.partitions"))
	}
	if factor == -1 {
		factor = int(pl.config.Int("default.replication.factor"))
	}
	if partitions > maxPartitionsPerRequest {
		return nil, P.Errorf(P.PolicyViolation, "Excessively large number of partitions per request.")
	}
	return place(pl.image, pl.loads, nil, partitions, factor, pl.random)
}

// manual checks the assignment of a new topic.
func (pl *planner) manual(assignment []Assignment) ([][]P.BrokerID, error) {
	if len(assignment) > maxPartitionsPerRequest {
		return nil, P.Errorf(P.PolicyViolation, "Excessively large number of partitions per request.")
	}
	replicas := make([][]P.BrokerID, len(assignment))
	seen := make(map[int32]bool, len(assignment))
	for _, a := range assignment {
		if seen[a.Partition] {
			return nil, P.Errorf(P.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		seen[a.Partition] = true
		if err := checkReplicas(pl.image, a.Replicas, len(assignment[0].Replicas)); err != nil {
			return nil, err
		}
		if a.Partition >= 0 && int(a.Partition) < len(replicas) {
			replicas[a.Partition] = a.Replicas
		}
	}
	if slices.ContainsFunc(replicas, func(r []P.BrokerID) bool { return r == nil }) {
		return nil, P.Errorf(P.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
	}
	return replicas, nil
}

// checkReplicas checks the replicas of one partition that somebody chose by hand.
func checkReplicas(image *metadata.Image, replicas []P.BrokerID, factor int) error {
	if len(replicas) == 0 {
		return P.Errorf(P.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for i, id := range sorted {
		if !image.Alive(id) {
			return P.Errorf(P.InvalidReplicaAssignment,
				"The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if i > 0 && sorted[i-1] == id {
			return P.Errorf(P.InvalidReplicaAssignment,
				"The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if len(replicas) != factor {
		return P.Errorf(P.InvalidReplicaAssignment, "The manual partition assignment includes a partition with %d "+
			"replica(s), but this is not consistent with previous partitions, which have %d replica(s).", len(replicas), factor)
	}
	return nil
}

// count adds a plan to the loads, so that the next one of the same request goes elsewhere.
func (pl *planner) count(replicas [][]P.BrokerID) {
	for _, r := range replicas {
		pl.loads.add(&metadata.Partition{Leader: r[0], Replicas: r}, 1)
	}
}

// internalTopic fills in what the brokers' own topics have: partitions, settings, and as many replicas as
// are configured, or as there are brokers while there are fewer.
func internalTopic(t NewTopic, set map[string]string, b *config.Broker, brokers int) (NewTopic, map[string]string) {
	configs := map[string]string{"cleanup.policy": "compact"}
	var prefix string
	switch t.Name {
	case P.GroupMetadataTopic:
		prefix = "offsets.topic."
		configs["compression.type"] = "producer"
	case P.TransactionStateTopic:
		prefix = "transaction.state.log."
		configs["compression.type"], configs["unclean.leader.election.enable"] = "uncompressed", "false"
		configs["min.insync.replicas"] = text(min(int64(b.Int(prefix+"min.isr")), int64(max(brokers, 1))))
	case P.ShareGroupStateTopic:
		prefix = "share.coordinator.state.topic."
		configs["min.insync.replicas"] = text(min(int64(b.Int(prefix+"min.isr")), int64(max(brokers, 1))))
	}
	configs["segment.bytes"] = text(b.Long(prefix + "segment.bytes"))
	for name, value := range set {
		configs[name] = value
	}
	if len(t.Assignment) > 0 {
		return t, configs
	}
	if t.Partitions == -1 {
		t.Partitions = b.Int(prefix + "num.partitions")
	}
	if t.ReplicationFactor == -1 {
		t.ReplicationFactor = int16(cmp.Or(min(b.Int(prefix+"replication.factor"), int32(brokers)), 1))
	}
	return t, configs
}
