package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/planted"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// eligible lists who, outside of the in-sync set of next, has all that may have been committed when next
// follows on p (KIP-966). With acks=all nothing is committed while the set is smaller than
// min.insync.replicas: who leaves it then, or has left it since, misses nothing, until the leader forgets it
// by a request. A member whose broker has restarted in a way that may have cost it records is out, once there
// is a leader: before, it may be the one that has most.
//
//	minimum 2:  isr 1,2,3 ──▶ isr 1,2            eligible –
//	            isr 1,2   ──▶ isr 1              eligible 2
//	            isr 1     ──▶ nobody leads       eligible 2      2 may lead
//	            isr 1     ──▶ isr 1,3            eligible –
//
// The leader freezes its watermark while there is anybody, and so does not depend on what this controller
// believes the minimum to be. A leader that is one of Kafka's does not do that. After an unclean election
// nobody knows who has what.
func (c *cluster) eligible(topic string, p, next *metadata.Partition) []P.BrokerID {
	least := 1
	if c.minimum != nil {
		least = c.minimum(topic)
	}
	if planted.In(planted.StaleEligible) && len(next.ISR) >= least {
		return p.Eligible
	}
	foreign := next.Leader != P.NoBroker && c.stops[next.Leader] == znode.StopUnknown
	if len(next.ISR) >= min(least, len(next.Replicas)) || foreign || next.Recovering {
		return nil
	}
	var ids []P.BrokerID
	for _, id := range slices.Concat(p.ISR, p.Eligible) {
		if slices.Contains(next.Replicas, id) && !slices.Contains(next.ISR, id) && !slices.Contains(ids, id) &&
			(next.Leader == P.NoBroker || !c.lost(p, id)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// lost reports whether a broker may have lost records by a restart since the state of p was written, or before, as
// the state says.
func (c *cluster) lost(p *metadata.Partition, id P.BrokerID) bool {
	return slices.Contains(p.Doubtful, id) || c.lostUnwritten(p, id)
}

// lostUnwritten reports whether a broker may have lost records by a restart that the state of p does not show yet.
func (c *cluster) lostUnwritten(p *metadata.Partition, id P.BrokerID) bool {
	return !slices.Contains(p.Doubtful, id) && c.standing(p, id) == bounced && !complete(c.stops[id])
}

// mayLead lists the eligible replicas outside of the in-sync set that live and have lost nothing.
func (c *cluster) mayLead(p *metadata.Partition) []P.BrokerID {
	return slices.DeleteFunc(c.able(p, p.Eligible), func(id P.BrokerID) bool { return c.lost(p, id) })
}
