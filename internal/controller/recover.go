package controller

import (
	"cmp"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// logEnd is what one replica holds, in that life of its broker.
type logEnd struct {
	life  P.BrokerEpoch
	epoch P.LeaderEpoch // of the last record
	end   P.Offset      // the log end offset
}

// recover chooses a leader where all members of the in-sync set have restarted in a way that may have cost
// them records. What was acknowledged may then be in one of their logs only, and that is the one which ends
// last, by leader epoch first:
//
//	1: epoch 4, end 120   2: epoch 5, end 110   3: epoch 5, end 117   ──▶ 3
//
// With one of them missing nobody can tell, and all is false. Replicas outside of the set that live are asked as well:
// one that left it, or is not taken for eligible any more, may hold what the members have lost. Where not all have said
// yet what they have there is no state in the verdict: they are asked by an order without a leader, and their
// answers make this controller decide again.
func (c *cluster) recover(tp P.TopicPartition, p *metadata.Partition) (v verdict, all bool) {
	ids := slices.Concat(p.ISR, without(p.Eligible, p.ISR))
	if len(p.ISR) == 0 || slices.ContainsFunc(ids, func(id P.BrokerID) bool { return c.standing(p, id) != bounced }) {
		return verdict{}, false
	}
	ids = slices.Concat(ids, without(c.telling(p), ids))
	if len(ids) == 1 {
		return c.lead(p, c.pick(p, ids), "elected although no replica stopped cleanly"), true
	}
	best, untold := c.longest(tp, ids)
	if len(untold) > 0 {
		return verdict{}, true
	}
	return c.lead(p, c.pick(p, best), "elected since it holds most, although no replica stopped cleanly"), true
}

// longest lists the living replicas that hold most, of those that have said in this life of their brokers what they hold,
// and those that have not said it.
func (c *cluster) longest(tp P.TopicPartition, ids []P.BrokerID) (best, untold []P.BrokerID) {
	var most logEnd
	for _, id := range ids {
		e, known := c.ends[tp][id]
		if !known || e.life != c.image.Broker(id).Epoch {
			untold = append(untold, id)
			continue
		}
		switch order := cmp.Or(cmp.Compare(e.epoch, most.epoch), cmp.Compare(e.end, most.end)); {
		case len(best) == 0 || order > 0:
			best, most = []P.BrokerID{id}, e
		case order == 0:
			best = append(best, id)
		}
	}
	return best, untold
}

// telling lists the replicas whose brokers live and say where their logs end, which those of Kafka's do not.
func (c *cluster) telling(p *metadata.Partition) []P.BrokerID {
	return slices.DeleteFunc(c.able(p, p.Replicas), func(id P.BrokerID) bool { return c.stops[id] == znode.StopUnknown })
}

// learnEnds notes what replicas of a broker hold, and decides about their partitions.
func (t *term) learnEnds(id P.BrokerID, ends map[P.TopicPartition]logEnd) error {
	var partitions []P.TopicPartition
	for _, tp := range sorted(ends) {
		p := t.cluster.image.Partition(tp)
		if p == nil || p.Leader != P.NoBroker || t.deletions[tp.Topic] != nil || t.look.state[tp] {
			continue
		}
		if t.cluster.ends[tp] == nil {
			t.cluster.ends[tp] = map[P.BrokerID]logEnd{}
		}
		t.cluster.ends[tp][id] = ends[tp]
		partitions = append(partitions, tp)
	}
	if len(partitions) == 0 {
		return nil
	}
	return t.decide(partitions)
}
