package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Reassignment gives one partition other replicas (KIP-455).
type Reassignment struct {
	P.TopicPartition
	// Replicas is the assignment that is wanted, the preferred leader first; nil takes the partition back to
	// the replicas that it had before the reassignment under way.
	Replicas []P.BrokerID
}

// moving reports whether a partition is being reassigned.
func moving(p *metadata.Partition) bool { return len(p.Adding)+len(p.Removing) > 0 }

// target is what a partition's assignment will be when its reassignment has ended.
func target(p *metadata.Partition) []P.BrokerID { return without(p.Replicas, p.Removing) }

// planMove says what a partition becomes when its reassignment begins, changes or is taken back: the wanted
// replicas first, behind them those that go when the others are in sync.
//
//	replicas 1,2          wanted 2,3  ──▶  replicas 2,3,1  adding 3  removing 1   a new leader epoch
//	replicas 2,3,1 + 3 −1 taken back  ──▶  replicas 2,1                           3 is stopped
//
// The leader and those that stay in sync stay so. Where nobody leads, the state is left alone: who is
// elected later learns the new assignment then. nil means that nothing changes.
func planMove(c *cluster, topic string, p *metadata.Partition, r Reassignment, keepFactor bool) (*metadata.Partition, error) {
	origin := without(p.Replicas, p.Adding)
	wanted := r.Replicas
	if wanted == nil {
		if !moving(p) {
			return nil, P.NoReassignmentInProgress
		}
		wanted = origin
	} else if err := checkWanted(c, p, wanted, keepFactor); err != nil {
		return nil, err
	}
	next := *p
	next.Replicas = slices.Concat(wanted, without(origin, wanted))
	next.Adding, next.Removing = without(next.Replicas, origin), without(next.Replicas, wanted)
	if slices.Equal(next.Replicas, p.Replicas) && slices.Equal(next.Adding, p.Adding) && slices.Equal(next.Removing, p.Removing) {
		return nil, nil
	}
	if p.Leader == P.NoBroker || c.standing(p, p.Leader) != steady {
		if !within(p.ISR, next.Replicas) {
			return nil, P.Errorf(P.InvalidReplicaAssignment, "The partition has no leader, and replicas that are in sync would be removed.")
		}
		return &next, nil
	}
	next.LeaderEpoch++
	next.ControllerEpoch, next.Doubtful = c.epoch, nil
	if err := c.remain(p, &next); err != nil {
		return nil, err
	}
	next.Eligible = c.eligible(topic, p, &next)
	return &next, nil
}

// remain sets in-sync set and leader of next to what is left of p's within next's replicas.
func (c *cluster) remain(p, next *metadata.Partition) error {
	next.ISR = c.filter(p, func(m member) bool { return m == steady || m == dead && c.settling })
	next.ISR = slices.DeleteFunc(next.ISR, func(id P.BrokerID) bool { return !slices.Contains(next.Replicas, id) })
	able := c.filter(next, func(m member) bool { return m == steady })
	if len(able) == 0 {
		return P.Errorf(P.InvalidReplicaAssignment, "None of the replicas %v is in sync.", next.Replicas)
	}
	if slices.Contains(able, p.Leader) && !c.departs(p.Leader) {
		return nil
	}
	if stay := slices.DeleteFunc(slices.Clone(able), c.departs); len(stay) > 0 {
		able = stay
	}
	next.Leader = c.pick(next, able)
	return nil
}

// checkWanted checks the replicas of a request as Kafka does.
func checkWanted(c *cluster, p *metadata.Partition, wanted []P.BrokerID, keepFactor bool) error {
	if len(wanted) == 0 {
		return P.Errorf(P.InvalidReplicaAssignment, "Empty replica list specified in partition reassignment.")
	}
	if !within(wanted, wanted) {
		return P.Errorf(P.InvalidReplicaAssignment, "Duplicate replica ids in partition reassignment replica list: %s.", list(wanted))
	}
	for _, id := range wanted {
		if id < 0 {
			return P.Errorf(P.InvalidReplicaAssignment, "Invalid broker id in replica list: %s.", list(wanted))
		}
		if !c.image.Alive(id) && !slices.Contains(p.Replicas, id) {
			return P.Errorf(P.InvalidReplicaAssignment, "Replica assignment has brokers that are not alive. Replica list: %s, "+
				"live broker list: %s.", list(wanted), list(alive(c.image)))
		}
	}
	if now := len(without(p.Replicas, p.Adding)); keepFactor && len(wanted) != now {
		return P.Errorf(P.InvalidReplicationFactor, "The replication factor is changed from %d to %d.", now, len(wanted))
	}
	return nil
}

// finishMove is the state of a partition whose wanted replicas are all in sync: the others leave, and where
// one of them leads, it is replaced. nil where it is not so far, or where a member of the set has to be taken
// out first.
func finishMove(c *cluster, topic string, p *metadata.Partition) *metadata.Partition {
	wanted := target(p)
	if !moving(p) || !within(wanted, p.ISR) || p.Leader == P.NoBroker || c.standing(p, p.Leader) != steady {
		return nil
	}
	if slices.ContainsFunc(wanted, func(id P.BrokerID) bool { return c.standing(p, id) != steady }) {
		return nil
	}
	next := c.next(p)
	next.Replicas, next.Adding, next.Removing = wanted, nil, nil
	next.Offline = slices.DeleteFunc(slices.Clone(p.Offline), func(id P.BrokerID) bool { return !slices.Contains(wanted, id) })
	if c.remain(p, next) != nil {
		return nil
	}
	next.Eligible = c.eligible(topic, p, next)
	return next
}

// alive lists the living brokers.
func alive(image *metadata.Image) []P.BrokerID {
	var ids []P.BrokerID
	for _, b := range image.Brokers() {
		ids = append(ids, b.ID)
	}
	return ids
}

// without is a list less another one, in order; nil where nothing is left.
func without(ids, less []P.BrokerID) []P.BrokerID {
	var rest []P.BrokerID
	for _, id := range ids {
		if !slices.Contains(less, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// list writes ids as Kafka's sentences do.
func list(ids []P.BrokerID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = text(int64(id))
	}
	return "[" + join(names) + "]"
}
