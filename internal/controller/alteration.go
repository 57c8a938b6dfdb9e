package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/planted"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Alteration is what the leader of a partition wants the in-sync set to be.
type Alteration struct {
	P.TopicPartition
	// TopicID names the topic where it is not zero; otherwise its name does.
	TopicID P.TopicID
	// LeaderEpoch and Epoch are those of the state that the leader knows.
	LeaderEpoch P.LeaderEpoch
	Epoch       P.PartitionEpoch
	// ISR is the new set, the leader included.
	ISR []Member
	// Recovering is true while the leader has not cleaned up after an unclean election (KIP-704).
	Recovering bool
}

// Member is one member of a proposed in-sync set.
type Member struct {
	ID P.BrokerID
	// Epoch is that of the life of the broker which the leader saw fetching (KIP-903), or NoBrokerEpoch
	// where the leader does not tell.
	Epoch P.BrokerEpoch
}

// alter says what the state of a partition becomes when its leader asks for another in-sync set; nil where
// it is so already. A request that was carried out and is repeated names an old partition epoch and gets
// the present state: the leader did not hear the first answer.
//
// A request for the present set by a leader who knows the present state means something else: that the
// eligible replicas outside of the set be forgotten, since the leader is about to commit records without
// them (see [cluster.eligible]).
func alter(c *cluster, by P.BrokerID, p *metadata.Partition, a Alteration) (*metadata.Partition, error) {
	set := make([]P.BrokerID, len(a.ISR))
	for i, m := range a.ISR {
		set[i] = m.ID
	}
	same := sameSet(set, p.ISR) && a.Recovering == p.Recovering
	switch {
	case p.Epoch == P.AnyEpoch:
		return nil, P.UnknownTopicOrPartition
	case a.Epoch > p.Epoch || a.LeaderEpoch > p.LeaderEpoch:
		return nil, P.NotController // it knows something newer than this controller does
	case a.LeaderEpoch < p.LeaderEpoch:
		return nil, P.FencedLeaderEpoch
	case p.Leader != by || !slices.Contains(set, by) || !within(set, p.Replicas):
		return nil, P.InvalidRequest
	case same && (a.Epoch < p.Epoch || len(p.Eligible) == 0):
		return nil, nil
	case a.Epoch < p.Epoch:
		return nil, P.InvalidUpdateVersion
	case a.Recovering && (len(set) > 1 || !p.Recovering):
		return nil, P.InvalidRequest
	case c.standing(p, by) != steady:
		return nil, P.FencedLeaderEpoch // another leader, or this one in a new epoch, is about to be elected
	case !c.mayJoin(p, a.ISR):
		return nil, P.IneligibleReplica
	}
	next := *p
	next.ISR, next.Recovering, next.ControllerEpoch, next.Doubtful = set, a.Recovering, c.epoch, nil
	if next.Eligible = nil; !same {
		next.Eligible = c.eligible(a.Topic, p, &next)
	}
	return &next, nil
}

// mayJoin reports whether all members of a proposed set may be in it. One that is new must live and not be
// about to stop; and each must be in the life in which the leader saw it, as far as the leader says so. A
// member of the present set that has restarted is still to be taken out, unless the leader has seen that
// very life of it: writing the state would hide the restart.
func (c *cluster) mayJoin(p *metadata.Partition, members []Member) bool {
	for _, m := range members {
		broker := c.image.Broker(m.ID)
		seen := broker != nil && m.Epoch == broker.Epoch
		switch {
		case m.Epoch != P.NoBrokerEpoch && broker != nil && !seen && !planted.In(planted.OldLife):
			return false
		case slices.Contains(p.ISR, m.ID):
			if !seen && c.standing(p, m.ID) == bounced {
				return false
			}
		case c.standing(p, m.ID) == dead || c.departs(m.ID):
			return false
		}
	}
	return true
}

// sameSet reports whether two lists without repetition hold the same.
func sameSet(a, b []P.BrokerID) bool { return len(a) == len(b) && within(a, b) }

// within reports whether a is a part of b, and holds nothing twice.
func within(a, b []P.BrokerID) bool {
	for i, id := range a {
		if !slices.Contains(b, id) || slices.Contains(a[:i], id) {
			return false
		}
	}
	return true
}
