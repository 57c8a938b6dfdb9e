// Package partition is the leader of one partition as a pure machine: no goroutine, clock, lock, disk or
// socket. The driver (package replica) calls it under the partition's lock and does what it answers.
//
// What it decides is whether an append is allowed, and where the high watermark stands. The watermark is
// exclusive: the smallest log end offset among the in-sync replicas, and records below it are committed.
//
//	in-sync replicas   1: ........|        log end 8
//	                   2: .....|           log end 5
//	high watermark          5 ─┘           offsets 0..4 are committed
//
// It never falls during a leader epoch. While fewer replicas are in sync than min.insync.replicas asks for,
// it stands still.
package partition

import (
	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Leader is what a leader knows of its partition during one leader epoch.
type Leader struct {
	// Epoch is the leader epoch: every batch that is appended carries it.
	Epoch protocol.LeaderEpoch
	// EpochStart is the log end offset at which this epoch began. Until the watermark has reached it,
	// records of earlier epochs may still be uncommitted.
	EpochStart protocol.Offset

	self      protocol.BrokerID
	inSync    []protocol.BrokerID
	end       protocol.Offset // own log end offset
	watermark protocol.Offset // never above end
}

// Lead begins a leader epoch: inSync is the in-sync set of the partition's state and holds self, end the
// log end offset, watermark what this replica knew of the high watermark before.
func Lead(self protocol.BrokerID, epoch protocol.LeaderEpoch, inSync []protocol.BrokerID, end, watermark protocol.Offset) *Leader {
	invariant.That(watermark <= end, "a watermark lies above the log end offset")
	return &Leader{Epoch: epoch, EpochStart: end, self: self, inSync: inSync, end: end, watermark: watermark}
}

// Admit says whether a batch may be appended: with acks=all, NOT_ENOUGH_REPLICAS where fewer than
// minInSync replicas are in sync.
func (l *Leader) Admit(all bool, minInSync int) error {
	if all && len(l.inSync) < minInSync {
		return protocol.Errorf(protocol.NotEnoughReplicas,
			"%d replicas are in sync, min.insync.replicas is %d", len(l.inSync), minInSync)
	}
	return nil
}

// Appended tells the machine of the new log end offset and returns the high watermark.
func (l *Leader) Appended(end protocol.Offset, minInSync int) protocol.Offset {
	if end < l.end {
		invariant.Fail("log end offset of a leader in epoch %d went from %d back to %d", l.Epoch, l.end, end)
	}
	l.end = end
	return l.Advance(minInSync)
}

// Advance moves the watermark as far as the in-sync set allows, and returns it. What other members hold
// is not known here yet, so with any of them in the set it stands where it is.
func (l *Leader) Advance(minInSync int) protocol.Offset {
	alone := len(l.inSync) == 1 && l.inSync[0] == l.self
	if alone && minInSync <= 1 {
		l.watermark = l.end
	}
	return l.watermark
}

// SetInSync takes over a new in-sync set, within the same leader epoch.
func (l *Leader) SetInSync(inSync []protocol.BrokerID) { l.inSync = inSync }

// Watermark is the high watermark, exclusive.
func (l *Leader) Watermark() protocol.Offset { return l.watermark }
