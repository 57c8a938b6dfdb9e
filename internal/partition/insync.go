package partition

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/planted"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// HoldOff is for how long a replica is not proposed again that the controller has just refused, and nothing is where it
// knows another state or refuses who is in the set. It may be that a broker has restarted, and the controller has not heard of it yet. A follower that
// waits for records says nothing more by itself, so that the driver asks for a proposal then.
const HoldOff = 500 * time.Millisecond

// Proposal asks the controller for another in-sync set (AlterPartition). It does not change once it is made: sent
// again, it means the same.
type Proposal struct {
	// LeaderEpoch and PartitionEpoch are what the proposal goes out from; the controller takes it only while
	// both are still so.
	LeaderEpoch    P.LeaderEpoch
	PartitionEpoch P.PartitionEpoch
	// InSync is the set that is asked for.
	InSync []Member
	// Why says it to an operator.
	Why string

	serial int
}

// Member is one replica of a proposed set.
type Member struct {
	ID P.BrokerID
	// Epoch is the registration's that its records were seen under; NoBrokerEpoch where that is not known. The
	// controller refuses the set where the broker has registered anew since (KIP-903).
	Epoch P.BrokerEpoch
}

// Answer is what became of a proposal.
type Answer struct {
	// Code is None where the controller has taken it, or had done so before.
	Code P.Code
	// Lost is true where no answer came: it may have been carried out.
	Lost bool
	// State is the partition's state in the controller's answer; its ISR, Epoch, LeaderEpoch and Eligible count.
	State metadata.Partition
}

// Propose makes the proposal that the leader's followers call for; nil where none does, and while one is in
// flight. heard tells when a broker last fetched anything from this one.
func (l *Leader) Propose(heard func(P.BrokerID) time.Duration, now time.Duration) *Proposal {
	if l.pending != nil || now < l.silent {
		return nil
	}
	var joining, leaving []P.BrokerID
	for i := range l.followers {
		f := &l.followers[i]
		switch in := slices.Contains(l.inSync, f.id); {
		case !in && l.caughtUp(f) && f.refused <= now:
			joining = append(joining, f.id)
		case in && l.lagging(f, heard(f.id), now):
			leaving = append(leaving, f.id)
		}
	}
	switch {
	case len(joining) > 0: // first, since a larger set is safer, and one proposal says one thing
		return l.propose(append(slices.Clone(l.inSync), joining...), "a replica has caught up")
	case len(leaving) > 0:
		for _, id := range leaving {
			l.follower(id).lagged = true
		}
		return l.propose(slices.DeleteFunc(slices.Clone(l.inSync), func(id P.BrokerID) bool { return slices.Contains(leaving, id) }),
			"a replica lags behind")
	case l.eligible && !l.UnderMinimum() && !planted.In(planted.StaleEligible):
		return l.propose(l.inSync, "records are to be committed without the eligible replicas")
	}
	return nil
}

// caughtUp reports whether a replica has everything that is committed or was promised by earlier leaders, and has
// fetched since it was last found to lag. The latter counts while the watermark stands still: then one that is cut off
// still has all that is committed, and would join and leave, again and again, with nothing committed meanwhile.
func (l *Leader) caughtUp(f *follower) bool {
	return f.end != P.NoOffset && !f.lagged && !f.gone && f.end >= l.watermark && f.end >= l.EpochStart
}

// MayExpand reports whether [Leader.Propose] would ask for a replica to be taken in; it is cheap.
func (l *Leader) MayExpand(id P.BrokerID, now time.Duration) bool {
	if l.pending != nil || now < l.silent || slices.Contains(l.inSync, id) {
		return false
	}
	f := l.follower(id)
	return f != nil && l.caughtUp(f) && f.refused <= now
}

func (l *Leader) propose(set []P.BrokerID, why string) *Proposal {
	l.proposals++
	p := &Proposal{LeaderEpoch: l.Epoch, PartitionEpoch: l.partition, Why: why, serial: l.proposals}
	for _, id := range set {
		m := Member{ID: id, Epoch: P.NoBrokerEpoch}
		if id == l.settings.Self {
			m.Epoch = l.settings.BrokerEpoch
		} else if f := l.follower(id); f != nil {
			m.Epoch = f.epoch
		}
		p.InSync = append(p.InSync, m)
		if !slices.Contains(l.wide, id) {
			l.wide = append(slices.Clip(l.wide), id)
		}
	}
	l.pending = p
	return p
}

// Waits reports whether a proposal is the one in flight. Any other one is void: its epoch is over, or a newer state has
// come by itself.
func (l *Leader) Waits(p *Proposal) bool {
	return l.pending != nil && l.pending.serial == p.serial && p.LeaderEpoch == l.Epoch
}

// Answered takes the answer to a proposal, and reports whether to send the same one again, after a while.
// The answer to any but the one in flight says nothing.
func (l *Leader) Answered(p *Proposal, a Answer, now time.Duration) (again bool) {
	if !l.Waits(p) {
		return false
	}
	switch {
	case a.Lost || a.Code == P.NotController || a.Code == P.StaleBrokerEpoch:
		return true
	case a.Code == P.None && a.State.LeaderEpoch == l.Epoch:
		l.pending = nil
		if a.State.Epoch >= l.partition { // otherwise it is older than what is known
			l.adopt(&a.State, now)
			l.eligible = len(a.State.Eligible) > 0
		}
		l.advance(now)
		return false
	case a.Code == P.IneligibleReplica || a.Code == P.OperationNotAttempted:
		l.refuse(p, now)
		return false
	case a.Code == P.FencedLeaderEpoch, a.Code == P.NewLeaderElected, a.Code == P.InvalidUpdateVersion,
		a.Code == P.UnknownTopicOrPartition, a.Code == P.UnknownTopicID, a.Code == P.InvalidRequest, a.Code == P.None:
		// What this leader knows is not what is. The set stays wide until the controller has told.
		l.pending, l.silent = nil, now+HoldOff
		return false
	}
	return true // a fault on the other side, which says nothing about the proposal
}

// adopt makes a state's in-sync set the own one. A replica that joins had all that was committed, if not all that
// there was: it lags from now on, not since it was last equal, or it would leave at once.
func (l *Leader) adopt(state *metadata.Partition, now time.Duration) {
	for i := range l.followers {
		if f := &l.followers[i]; slices.Contains(state.ISR, f.id) && !slices.Contains(l.inSync, f.id) {
			f.caughtUp = max(f.caughtUp, now)
		}
	}
	l.inSync, l.wide, l.partition = state.ISR, state.ISR, state.Epoch
}

// refuse goes back to the confirmed set. An earlier copy of the proposal that got no answer cannot come true
// any more: it would be refused for the same reason. Where nobody was to join, it is for somebody who stays in the set, and
// whatever is proposed next would be refused as well.
func (l *Leader) refuse(p *Proposal, now time.Duration) {
	l.pending, l.wide, l.silent = nil, l.inSync, now+HoldOff
	for i := range l.followers {
		if f := &l.followers[i]; slices.Contains(ids(p.InSync), f.id) && !slices.Contains(l.inSync, f.id) {
			f.refused, l.silent = now+HoldOff, 0
		}
	}
	l.advance(now)
}

// Learn takes over a newer state of the same leader epoch, from UpdateMetadata: what is stored counts, whoever
// wrote it, and a proposal that goes out from an older state cannot come true any more. UpdateMetadata does not
// tell of eligible replicas, so that the controller is asked.
func (l *Leader) Learn(state *metadata.Partition, now time.Duration) {
	if state.LeaderEpoch != l.Epoch || state.Epoch <= l.partition {
		return
	}
	l.pending, l.silent = nil, 0
	l.adopt(state, now)
	l.eligible = slices.ContainsFunc(l.followers, func(f follower) bool { return !slices.Contains(l.inSync, f.id) })
	l.advance(now)
}

// Told takes over a state of the same leader epoch from LeaderAndIsr, which says everything. Where it is the one that is
// known, it has been repeated, and may be older than what became of a proposal: whoever that would take in goes on counting.
func (l *Leader) Told(state *metadata.Partition, now time.Duration) {
	if state.LeaderEpoch != l.Epoch || state.Epoch < l.partition {
		return
	}
	if state.Epoch > l.partition {
		l.pending, l.silent = nil, 0
		l.adopt(state, now)
	}
	l.eligible = len(state.Eligible) > 0
	l.advance(now)
}

// ids are the brokers of a proposed set.
func ids(members []Member) []P.BrokerID {
	out := make([]P.BrokerID, len(members))
	for i, m := range members {
		out[i] = m.ID
	}
	return out
}
