package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/planted"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// member says how a replica stands, as far as a decision about its partition goes.
type member int8

const (
	// dead: its broker is not registered, or cannot serve it.
	dead member = iota
	// bounced: its broker has registered again since the partition's state was written, so what it had
	// only in memory is gone, and in the epoch of the state it must not lead again.
	bounced
	// steady: it has lived since before the state was written.
	steady
)

// standing says how broker id stands towards partition p.
func (c *cluster) standing(p *metadata.Partition, id P.BrokerID) member {
	switch broker := c.image.Broker(id); {
	case broker == nil, slices.Contains(p.Offline, id):
		return dead
	case int64(broker.Epoch) > p.Modified && !planted.In(planted.SameEpoch), slices.Contains(p.Doubtful, id):
		return bounced
	}
	return steady
}

// verdict is what [decide] found.
type verdict struct {
	// next is the state to write; nil where the present one is right.
	next *metadata.Partition
	// why is the reason for the log: it says what happened to the partition.
	why string
	// stuck is true where no replica may lead unless the topic allows an unclean election.
	stuck bool
}

// decide says what the state of a partition should be, given who lives. The rules, in this order:
//
//   - A partition without a state gets one as soon as a replica lives: all that live are in sync.
//   - A leader that is steady and in sync stays. Members of the in-sync set that are dead (unless the
//     controller is still settling) or bounced leave it, with a new leader epoch.
//   - Otherwise a steady member of the set leads, the preferred replica first, then the one whose broker
//     leads fewest.
//   - Otherwise a bounced member leads alone whose log is complete: everything that was acknowledged lies
//     in the log of every member, and a clean stop or a kill under the same kernel loses nothing of it.
//   - Otherwise an eligible replica leads alone, whose log is complete as well (see [cluster.eligible]).
//   - Otherwise, where all members and eligible replicas are there, the one leads that has most (see
//     [cluster.recover]).
//   - Otherwise a living replica leads, if the topic allows it, missing members have been waited for (see
//     [cluster.waited]) and the controller has settled: records may be lost.
//   - Otherwise nobody does; while the controller settles, a dead leader keeps the title.
//
// A new leader always gets a new leader epoch, also when it is the old one: a broker never leads twice in
// one epoch.
func decide(c *cluster, tp P.TopicPartition, p *metadata.Partition) verdict {
	v := choose(c, tp, p)
	if v.next == nil && !v.stuck && slices.ContainsFunc(p.Eligible, func(id P.BrokerID) bool { return c.lost(p, id) }) {
		v = verdict{next: c.next(p), why: "an eligible replica may have lost records"}
	}
	if v.next != nil {
		v.next.Eligible = c.eligible(tp.Topic, p, v.next)
	}
	return v
}

// choose finds leader and in-sync set.
func choose(c *cluster, tp P.TopicPartition, p *metadata.Partition) verdict {
	if p.Epoch == P.AnyEpoch {
		return c.begin(p)
	}
	if p.Leader != P.NoBroker && slices.Contains(p.ISR, p.Leader) && c.standing(p, p.Leader) == steady {
		return c.shrink(p)
	}
	if v, ok := c.elect(p); ok {
		return v
	}
	if v, _ := c.recover(tp, p); v.next != nil {
		return v
	}
	if p.LeaderEpoch == P.NoLeaderEpoch { // its znode is damaged
		return verdict{}
	}
	if live := c.able(p, p.Replicas); c.unclean[tp.Topic] && c.waited(tp) && !c.settling && len(live) > 0 {
		return c.uncleanly(tp, p, live)
	}
	doubtful := c.doubtful(p)
	if p.Leader == P.NoBroker && len(doubtful) == len(p.Doubtful) || p.Leader != P.NoBroker && c.settling && c.standing(p, p.Leader) == dead {
		return verdict{stuck: true} // as long as nothing is written, nothing is forgotten
	}
	next := c.next(p)
	next.Leader, next.Doubtful = P.NoBroker, doubtful
	return verdict{next: next, why: "no replica may lead", stuck: true}
}

// doubtful lists the members of the in-sync set, and the eligible replicas, that may have lost records: those
// of whom that is written already, and those who have come back so. It is written at once: who restarts again,
// in order this time, would otherwise look as if it had everything.
func (c *cluster) doubtful(p *metadata.Partition) []P.BrokerID {
	ids := slices.Clone(p.Doubtful)
	for _, id := range slices.Concat(p.ISR, without(p.Eligible, p.ISR)) {
		if c.lostUnwritten(p, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// begin is the first state of a partition.
func (c *cluster) begin(p *metadata.Partition) verdict {
	live := c.living(p.Replicas)
	if len(live) == 0 {
		return verdict{}
	}
	next := *p
	next.Leader, next.LeaderEpoch, next.ISR, next.ControllerEpoch = c.pick(p, live), 0, live, c.epoch
	return verdict{next: &next, why: "created"}
}

// shrink takes out of the in-sync set of a partition, whose leader stays, who must not be in it.
func (c *cluster) shrink(p *metadata.Partition) verdict {
	keep := c.filter(p, func(m member) bool { return m == steady || m == dead && c.settling })
	if len(keep) == len(p.ISR) {
		return verdict{}
	}
	next := c.next(p)
	next.ISR = keep
	return verdict{next: next, why: "in-sync set shrunk"}
}

// elect finds a leader among the in-sync set.
func (c *cluster) elect(p *metadata.Partition) (verdict, bool) {
	if candidates := c.filter(p, func(m member) bool { return m == steady }); len(candidates) > 0 {
		next := c.next(p)
		if able := slices.DeleteFunc(slices.Clone(candidates), c.departs); len(able) > 0 {
			candidates = able
		}
		next.Leader = c.pick(p, candidates)
		next.ISR = c.filter(p, func(m member) bool { return m == steady || m == dead && c.settling })
		return verdict{next: next, why: "elected"}, true
	}
	alive := c.filter(p, func(m member) bool { return m == bounced })
	complete := slices.DeleteFunc(slices.Clone(alive), func(id P.BrokerID) bool { return c.lost(p, id) })
	switch {
	case len(complete) > 0:
		return c.lead(p, c.pick(p, complete), "elected after a restart"), true
	case len(c.mayLead(p)) > 0:
		return c.lead(p, c.pick(p, c.mayLead(p)), "an eligible replica elected"), true
	}
	return verdict{}, false
}

// complete reports whether a broker that stopped this way still has all that it had. One of Kafka's does
// not say; Kafka itself trusts it.
func complete(s znode.Stop) bool {
	return s == znode.StopClean || s == znode.StopKilled || s == znode.StopUnknown
}

// lead makes a broker the leader, and the only member of the in-sync set.
func (c *cluster) lead(p *metadata.Partition, id P.BrokerID, why string) verdict {
	next := c.next(p)
	next.Leader, next.ISR = id, []P.BrokerID{id}
	return verdict{next: next, why: why}
}

// next is a copy of p in the next leader epoch, to be changed.
func (c *cluster) next(p *metadata.Partition) *metadata.Partition {
	next := *p
	next.Doubtful = nil
	next.LeaderEpoch++
	next.ControllerEpoch = c.epoch
	return &next
}

// filter lists the members of the in-sync set that stand in a certain way, in their order.
func (c *cluster) filter(p *metadata.Partition, keep func(member) bool) []P.BrokerID {
	var ids []P.BrokerID
	for _, id := range p.ISR {
		if keep(c.standing(p, id)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// able lists those whose brokers are registered and can serve their replicas of a partition.
func (c *cluster) able(p *metadata.Partition, ids []P.BrokerID) []P.BrokerID {
	return slices.DeleteFunc(slices.Clone(ids), func(id P.BrokerID) bool { return c.standing(p, id) == dead })
}

// living lists those whose brokers are registered.
func (c *cluster) living(ids []P.BrokerID) []P.BrokerID {
	return slices.DeleteFunc(slices.Clone(ids), func(id P.BrokerID) bool { return !c.image.Alive(id) })
}

// pick chooses a leader: the preferred replica if it may, else who leads fewest, else who comes first in
// the assignment. The choice counts at once, so that one pass over many partitions spreads them.
func (c *cluster) pick(p *metadata.Partition, candidates []P.BrokerID) P.BrokerID {
	best := P.NoBroker
	for _, id := range p.Replicas {
		if !slices.Contains(candidates, id) {
			continue
		}
		if id == p.Preferred() {
			best = id
			break
		}
		if best == P.NoBroker || c.loads.leaders[id] < c.loads.leaders[best] {
			best = id
		}
	}
	if best == P.NoBroker { // in sync without being assigned: somebody else wrote the state
		best = candidates[0]
	}
	if p.Leader != P.NoBroker {
		c.loads.leaders[p.Leader]--
	}
	c.loads.leaders[best]++
	return best
}

// decided is one partition whose state has to be written.
type decided struct {
	P.TopicPartition
	topicID P.TopicID
	from    *metadata.Partition
	to      *metadata.Partition
	why     string
}

// decideAll decides about many partitions, counting leaders as it goes. It leaves c.loads as they were.
// stuck lists the partitions that only an unclean election could help, and for which it would find somebody.
func decideAll(c cluster, partitions []P.TopicPartition) (all []decided, stuck []P.TopicPartition) {
	c.loads = c.loads.clone()
	for _, tp := range partitions {
		topic := c.image.Topic(tp.Topic)
		if topic == nil || topic.Partition(tp.Partition) == nil {
			continue
		}
		p := topic.Partition(tp.Partition)
		v := decide(&c, tp, p)
		if v.next != nil {
			all = append(all, decided{TopicPartition: tp, topicID: topic.ID, from: p, to: v.next, why: v.why})
		}
		if v.stuck && len(c.able(p, p.Replicas)) > 0 {
			stuck = append(stuck, tp)
		}
	}
	return all, stuck
}

// preferLeader is the state in which the preferred replica leads, or false where it cannot: it is dead or
// not in sync.
func preferLeader(c *cluster, p *metadata.Partition) (*metadata.Partition, bool) {
	id := p.Preferred()
	if !slices.Contains(p.ISR, id) || c.standing(p, id) != steady || c.departs(id) {
		return nil, false
	}
	next := c.next(p)
	next.Leader = id
	next.ISR = c.filter(p, func(m member) bool { return m != bounced })
	return next, true
}
