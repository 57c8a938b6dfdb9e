package balance

import (
	"cmp"
	"fmt"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// RoomError says that a partition cannot have so many replicas on so few brokers.
type RoomError struct {
	P.TopicPartition
	Replicas, Brokers int
}

// Error names the partition and both numbers.
func (e *RoomError) Error() string {
	return fmt.Sprintf("%s is to have %d replicas, and there are only %d brokers that can have one", e.TopicPartition, e.Replicas, e.Brokers)
}

// Evacuate plans that of the partitions which are chosen every replica on a broker that it leaves goes to another
// one, which may receive it. Who takes over also takes the place in the order; among the partitions that move,
// preferred leaders are spread. The error is a [RoomError].
func (c *Cluster) Evacuate(chosen func(P.TopicPartition) bool, leaves, receives func(P.BrokerID) bool) error {
	var moved []*placed
	for _, p := range c.partitions {
		if !chosen(p.TopicPartition) || !slices.ContainsFunc(p.now, leaves) {
			continue
		}
		moved = append(moved, p)
		for _, id := range slices.Clone(p.now) {
			if !leaves(id) {
				continue
			}
			keeps := slices.DeleteFunc(slices.Clone(p.now), leaves)
			other, ok := c.best(p, keeps, func(b Broker) bool { return receives(b.ID) && !leaves(b.ID) })
			if !ok {
				return &RoomError{p.TopicPartition, len(p.now), len(keeps)}
			}
			c.replace(p, id, other)
		}
	}
	c.evenLeaders(moved)
	return nil
}

// Resize plans a number of replicas for the partitions that are chosen. What is added goes where there is least; what
// is taken away is, in this order, on a broker that is gone, out of sync, on a rack that has another one, on the
// broker that has most; the preferred leader is the last to go. The error is a [RoomError].
func (c *Cluster) Resize(chosen func(P.TopicPartition) bool, factor int) error {
	var moved []*placed
	for _, p := range c.partitions {
		if !chosen(p.TopicPartition) || len(p.now) == factor {
			continue
		}
		moved = append(moved, p)
		for len(p.now) < factor {
			other, ok := c.best(p, p.now, func(Broker) bool { return true })
			if !ok {
				return &RoomError{p.TopicPartition, factor, len(p.now)}
			}
			c.assign(p, append(slices.Clone(p.now), other))
		}
		for len(p.now) > factor {
			c.assign(p, without(p.now, []P.BrokerID{c.dispensable(p)}))
		}
	}
	c.evenLeaders(moved)
	return nil
}

// dispensable is the replica that a partition is to lose next.
func (c *Cluster) dispensable(p *placed) P.BrokerID {
	used := c.racks(p.now)
	rank := func(id P.BrokerID) []int {
		return []int{
			truth(!c.alive(id)), truth(!slices.Contains(p.InSync, id)), truth(id != p.now[0]), used[c.rack(id)], p.topic.on[id], c.holds[id],
		}
	}
	return slices.MaxFunc(p.now, func(a, b P.BrokerID) int { return cmp.Or(slices.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
}

func truth(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
