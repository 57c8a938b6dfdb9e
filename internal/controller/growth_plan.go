package controller

import (
	"math/rand/v2"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Growth is a topic that is to have more partitions.
type Growth struct {
	// Topic is the topic's name.
	Topic string
	// Count is how many partitions it shall have in all.
	Count int32
	// Assignment gives the replicas of each new partition, in order; nil to have them placed.
	Assignment [][]P.BrokerID
}

// planGrowth checks a growth as Kafka 4 does, and says what replicas the new partitions get. The number of
// partitions of internal topics is fixed: a key's place in them follows from it.
func planGrowth(image *metadata.Image, l loads, g Growth, random *rand.Rand) ([][]P.BrokerID, error) {
	topic := image.Topic(g.Topic)
	if topic == nil {
		return nil, P.UnknownTopicOrPartition
	}
	now := int32(len(topic.Partitions))
	if P.IsInternalTopic(g.Topic) {
		return nil, P.Errorf(P.InvalidRequest, "The internal topic %s always has %d partition(s): what belongs to a "+
			"key would no longer be found.", g.Topic, now)
	}
	switch {
	case g.Count == now:
		return nil, P.Errorf(P.InvalidPartitions, "Topic already has %d partition(s).", now)
	case g.Count < now:
		return nil, P.Errorf(P.InvalidPartitions,
			"The topic %s currently has %d partition(s); %d would not be an increase.", g.Topic, now, g.Count)
	case g.Count-now > maxPartitionsPerRequest || g.Count > metadata.MaxPartitions:
		return nil, P.Errorf(P.PolicyViolation, "Excessively large number of additional partitions per request.")
	}
	factor := len(target(topic.Partitions[0]))
	if g.Assignment == nil {
		return place(image, l, topic.Partitions, int(g.Count-now), factor, random)
	}
	if len(g.Assignment) != int(g.Count-now) {
		return nil, P.Errorf(P.InvalidReplicaAssignment, "Attempted to add %d additional partition(s), but only %d "+
			"assignment(s) were specified.", g.Count-now, len(g.Assignment))
	}
	for _, replicas := range g.Assignment {
		if err := checkReplicas(image, replicas, factor); err != nil {
			return nil, err
		}
	}
	return g.Assignment, nil
}
