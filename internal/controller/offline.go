package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// on lists the partitions that have a replica on a broker.
func (t *term) on(id P.BrokerID) []P.TopicPartition {
	return t.partitions(func(p *metadata.Partition) bool { return slices.Contains(p.Replicas, id) })
}

// setOffline notes whether a broker can serve its replicas of partitions, as its answers to LeaderAndIsr say.
// Those that it cannot count as dead, as long as this controller and this life of the broker last: a later
// controller learns it from the answers to what it tells first.
//
// The last one of an in-sync set stays in it, and then nobody leads: what it holds is missing as if its broker were
// dead. That may pass, as with a full disk: the order is repeated to it (see [refusals]), and when it has carried that out
// it leads again.
func (t *term) setOffline(id P.BrokerID, partitions []P.TopicPartition, offline bool) error {
	var changes []metadata.Change
	var touched []P.TopicPartition
	for _, tp := range partitions {
		topic := t.cluster.image.Topic(tp.Topic)
		if topic == nil || topic.Partition(tp.Partition) == nil || t.deletions[tp.Topic] != nil {
			continue
		}
		p := topic.Partition(tp.Partition)
		if slices.Contains(p.Offline, id) == offline || p.Epoch == P.AnyEpoch {
			continue
		}
		if offline {
			t.controller.options.Logger.Warn("controller: a replica is offline", "partition", tp.String(), "broker", id)
		}
		changes = append(changes, metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: serving(p, id, !offline)})
		touched = append(touched, tp)
	}
	if len(changes) == 0 {
		return nil
	}
	t.commit(changes...)
	return t.decide(touched)
}

// serving is p with a replica that can be served, or cannot.
func serving(p *metadata.Partition, id P.BrokerID, can bool) *metadata.Partition {
	next := *p
	if next.Offline = without(p.Offline, []P.BrokerID{id}); !can {
		next.Offline = append(next.Offline, id)
	}
	return &next
}

// online are the changes that forget what was offline on brokers that have begun another life.
func online(image *metadata.Image, brokers []P.BrokerID) []metadata.Change {
	var changes []metadata.Change
	for _, name := range image.Topics() {
		topic := image.Topic(name)
		for i, p := range topic.Partitions {
			if len(p.Offline) == 0 || !slices.ContainsFunc(p.Offline, func(id P.BrokerID) bool { return slices.Contains(brokers, id) }) {
				continue
			}
			next := *p
			next.Offline = without(p.Offline, brokers)
			tp := P.TopicPartition{Topic: name, Partition: int32(i)}
			changes = append(changes, metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: &next})
		}
	}
	return changes
}
