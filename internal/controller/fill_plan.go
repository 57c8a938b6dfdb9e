package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// enough is how much of an even share a broker may hold, in per cent, without getting more by itself: what creations
// and deletions of topics leave uneven is not worth copying.
const enough = 90

// shares plans what gives brokers that hold much less than the others their share (auto.balance.enable). It looks at
// the assignments only, so that a broker which restarts or lags is neither relieved nor filled. What is under way counts as done.
func shares(image *metadata.Image, closed func(P.BrokerID) bool) []balance.Move {
	var brokers []balance.Broker
	for _, b := range image.Brokers() {
		one := balance.Broker{ID: b.ID, Closed: closed != nil && closed(b.ID)}
		if b.Rack != nil {
			one.Rack = *b.Rack
		}
		brokers = append(brokers, one)
	}
	var partitions []balance.Partition
	for _, name := range image.Topics() {
		for i, p := range image.Topic(name).Partitions {
			if p.Known() {
				tp := P.TopicPartition{Topic: name, Partition: int32(i)}
				partitions = append(partitions, balance.Partition{TopicPartition: tp, Replicas: target(p), InSync: p.ISR})
			}
		}
	}
	plan := balance.New(brokers, partitions)
	plan.Fill(enough)
	return plan.Moves()
}

// whole reports whether a partition can be moved without a risk: its replicas are those that the plan was made for,
// and all of them are in sync and live.
func whole(c *cluster, p *metadata.Partition, planned []P.BrokerID) bool {
	return p != nil && !moving(p) && p.Leader != P.NoBroker && slices.Equal(p.Replicas, planned) && len(p.ISR) == len(p.Replicas) &&
		!slices.ContainsFunc(p.Replicas, func(id P.BrokerID) bool { return c.standing(p, id) != steady || c.departs(id) })
}
