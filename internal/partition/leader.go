package partition

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/planted"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Leader is what a leader knows of its partition during one leader epoch.
type Leader struct {
	// Epoch is the leader epoch: every batch that is appended carries it.
	Epoch P.LeaderEpoch
	// EpochStart is the log end offset at which this epoch began. Until the watermark has reached it,
	// records of earlier epochs may still be uncommitted.
	EpochStart P.Offset

	settings  Settings
	inSync    []P.BrokerID // as the controller has confirmed
	wide      []P.BrokerID // inSync, and whoever else the controller may count by now
	followers []follower
	partition P.PartitionEpoch

	end       P.Offset // own log end offset
	watermark P.Offset // never above end
	// eligible is whether the controller may hold replicas outside of the set for eligible.
	eligible bool

	proposals int       // how many were made
	pending   *Proposal // in flight
	// silent is until when nothing is proposed, since the controller has said that this epoch, or what is known of it, is
	// over, or refuses a member that stays. It is about to say more; but it may have done so before, or have been another
	// one that knew less.
	silent time.Duration
}

// Settings are what a leader goes by besides the state of its partition.
type Settings struct {
	// Self is the leader, and BrokerEpoch its registration's epoch.
	Self        P.BrokerID
	BrokerEpoch P.BrokerEpoch
	// MinInSync is min.insync.replicas.
	MinInSync int
	// MaxLag is replica.lag.time.max.ms: who has not had all records for longer leaves the in-sync set.
	MaxLag time.Duration
}

// Position is where a replica's own log stands.
type Position struct {
	// End is the log end offset, Watermark the high watermark that the replica knows, at most End.
	End, Watermark P.Offset
}

// Lead begins the leader epoch of state at the given position of the own log. The watermark starts at the
// replica's own older one.
func Lead(state *metadata.Partition, s Settings, at Position, now time.Duration) *Leader {
	invariant.That(at.Watermark <= at.End, "a watermark lies above the log end offset")
	l := &Leader{
		Epoch: state.LeaderEpoch, EpochStart: at.End, settings: s, inSync: state.ISR, wide: state.ISR,
		partition: state.Epoch, end: at.End, watermark: at.Watermark, eligible: len(state.Eligible) > 0,
	}
	for _, set := range [][]P.BrokerID{state.Replicas, state.ISR} {
		for _, id := range set {
			if id != s.Self && l.follower(id) == nil {
				l.followers = append(l.followers, newFollower(id, slices.Contains(state.ISR, id), now))
			}
		}
	}
	l.advance(now)
	return l
}

// Alone reports whether no other broker has a replica, so that time does not matter to the machine.
func (l *Leader) Alone() bool { return len(l.followers) == 0 }

// Admit says whether a batch may be appended: with acks=all, NOT_ENOUGH_REPLICAS where fewer than
// min.insync.replicas are in sync.
func (l *Leader) Admit(all bool) error {
	if all && l.UnderMinimum() {
		return P.Errorf(P.NotEnoughReplicas,
			"%d replicas are in sync, min.insync.replicas is %d", len(l.inSync), l.settings.MinInSync)
	}
	return nil
}

// UnderMinimum reports whether fewer than min.insync.replicas are in sync.
func (l *Leader) UnderMinimum() bool { return len(l.inSync) < l.settings.MinInSync }

// Appended tells the machine of the new log end offset and returns the high watermark.
func (l *Leader) Appended(end P.Offset, now time.Duration) P.Offset {
	if end < l.end {
		invariant.Fail("log end offset of a leader in epoch %d went from %d back to %d", l.Epoch, l.end, end)
	}
	for i := range l.followers {
		l.followers[i].leftBehind(l.end, end, now)
	}
	l.end = end
	l.advance(now)
	return l.watermark
}

// End is the log end offset that the machine was told of last.
func (l *Leader) End() P.Offset { return l.end }

// SetMinimum takes over another min.insync.replicas.
func (l *Leader) SetMinimum(least int, now time.Duration) {
	l.settings.MinInSync = least
	l.advance(now)
}

// advance moves the watermark as far as it may go.
func (l *Leader) advance(now time.Duration) {
	if l.UnderMinimum() || l.eligible && !planted.In(planted.StaleEligible) {
		return
	}
	reached := l.end
	for i := range l.followers {
		f := &l.followers[i]
		if f.end < reached && (slices.Contains(l.wide, f.id) || l.mayJoinSoon(f, now)) {
			reached = f.end
		}
	}
	l.watermark = max(l.watermark, reached)
}

// Watermark is the high watermark, exclusive.
func (l *Leader) Watermark() P.Offset { return l.watermark }

// Readable reports whether everything that earlier leaders may have promised is committed. Until then nobody
// can say where the log ends for consumers: an answer might lie behind what they have seen (OFFSET_NOT_AVAILABLE).
func (l *Leader) Readable() bool { return l.watermark >= l.EpochStart }

// InSync is the in-sync set as the controller has confirmed it. The caller must not change it.
func (l *Leader) InSync() []P.BrokerID { return l.inSync }

// PartitionEpoch is the version of the state that InSync is from.
func (l *Leader) PartitionEpoch() P.PartitionEpoch { return l.partition }
