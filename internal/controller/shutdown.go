package controller

import (
	"context"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ControlledShutdown takes leadership and membership in in-sync sets away from a broker that wants to stop, in
// that life of it; epoch NoBrokerEpoch means whatever life. It returns the partitions that the broker still
// leads although others live that have replicas, none of which may lead: the broker may ask again when they have
// caught up, or stop all the same. For what nobody else could lead it need not wait, so that the last brokers of
// a cluster stop at once. Until it is gone it becomes neither leader nor in sync again.
func (c *Controller) ControlledShutdown(ctx context.Context, id P.BrokerID, epoch P.BrokerEpoch) ([]P.TopicPartition, error) {
	type outcome struct {
		remaining []P.TopicPartition
		err       error
	}
	o, err := ask(ctx, c, func(t *term) (outcome, error) {
		remaining, refusal, err := t.shutDown(id, epoch)
		if refusal == nil {
			refusal = failed(err)
		}
		return outcome{remaining, refusal}, err
	})
	if err != nil {
		return nil, err
	}
	return o.remaining, o.err
}

// shutDown writes and pushes all that has to change, many partitions in one transaction. The last error is
// one of the store.
func (t *term) shutDown(id P.BrokerID, epoch P.BrokerEpoch) ([]P.TopicPartition, error, error) {
	broker := t.cluster.image.Broker(id)
	switch {
	case broker == nil:
		t.look.brokers = true
		return nil, P.BrokerNotAvailable, nil
	case epoch != P.NoBrokerEpoch && epoch != broker.Epoch:
		t.look.brokers = true
		return nil, P.StaleBrokerEpoch, nil
	}
	t.cluster.leaving[id] = broker.Epoch
	t.controller.options.Logger.Info("controller: a broker wants to stop", "broker", id, "broker-epoch", broker.Epoch)
	partitions := t.partitions(func(p *metadata.Partition) bool { return slices.Contains(p.ISR, id) })
	_, err := t.write(departures(t.cluster, id, partitions))
	var remaining []P.TopicPartition
	for _, tp := range partitions {
		if p := t.cluster.image.Partition(tp); p != nil && p.Leader == id && slices.ContainsFunc(t.cluster.able(p, p.Replicas), func(other P.BrokerID) bool { return !t.cluster.departs(other) }) {
			remaining = append(remaining, tp)
		}
	}
	return remaining, nil, err
}

// stopsFollowing reports whether a broker that is about to stop is to leave a follower of its alone instead of following
// in the new epoch: it is not in sync any more, and would only ask to be. What it has led it hears of as everybody does,
// since it must stop leading at once.
func (c *cluster) stopsFollowing(id P.BrokerID, change metadata.PartitionChange) bool {
	return c.departs(id) && change.Old != nil && change.Old.Leader != id &&
		slices.Contains(change.New.Replicas, id) && !slices.Contains(change.New.ISR, id)
}

// departures says what the states of partitions become when a broker leaves their in-sync sets on its own
// wish. It leaves c.loads as they were.
func departures(c cluster, id P.BrokerID, partitions []P.TopicPartition) []decided {
	c.loads = c.loads.clone()
	var all []decided
	for _, tp := range partitions {
		topic := c.image.Topic(tp.Topic)
		if p := topic.Partition(tp.Partition); p != nil {
			if next := depart(&c, p, id); next != nil {
				next.Eligible = c.eligible(tp.Topic, p, next)
				all = append(all, decided{TopicPartition: tp, topicID: topic.ID, from: p, to: next, why: "broker " + text(int64(id)) + " wants to stop"})
			}
		}
	}
	return all
}

// depart is the state of one partition without a broker; nil where nobody else is in sync and may lead.
func depart(c *cluster, p *metadata.Partition, id P.BrokerID) *metadata.Partition {
	stay := c.filter(p, func(m member) bool { return m == steady || m == dead && c.settling })
	stay = slices.DeleteFunc(stay, func(other P.BrokerID) bool { return other == id })
	if !slices.Contains(p.ISR, id) || len(stay) == 0 {
		return nil
	}
	next := c.next(p)
	next.ISR = stay
	if p.Leader != id {
		return next
	}
	able := slices.DeleteFunc(c.able(p, stay), c.departs)
	if len(able) == 0 {
		return nil
	}
	next.Leader = c.pick(p, able)
	return next
}

// departs reports whether a living broker has asked to be shut down.
func (c *cluster) departs(id P.BrokerID) bool {
	b := c.image.Broker(id)
	return b != nil && c.leaving[id] == b.Epoch
}
