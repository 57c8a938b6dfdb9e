package partition

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Follower is what a replica goes by that follows a leader in one leader epoch. It is immutable.
type Follower struct {
	// Leader is whom it fetches from; NoBroker while there is none.
	Leader P.BrokerID
	// Epoch is the leader's.
	Epoch P.LeaderEpoch
	// Unclean allows to cut below the own watermark: the leader was, or may have been, elected although it
	// lacked committed records.
	Unclean bool
	// UncleanEpoch is the leader epoch of the last unclean election, 0 where there was none: a log that ends before it
	// may be cut, too, since its watermark is of another history.
	UncleanEpoch P.LeaderEpoch
}

// Follow begins to follow the leader of state. topicUnclean is unclean.leader.election.enable: with it the
// election of an earlier epoch may have been unclean, of which the state says nothing any more.
func Follow(state *metadata.Partition, topicUnclean bool) Follower {
	return Follower{
		Leader: state.Leader, Epoch: state.LeaderEpoch, Unclean: state.Recovering || topicUnclean, UncleanEpoch: state.UncleanEpoch,
	}
}

// Held is what the follower's log holds.
type Held struct {
	// Start, Watermark and End are the log start offset, the high watermark and the log end offset.
	Start, Watermark, End P.Offset
	// LastEpoch is the epoch of the last record, NoLeaderEpoch where none has one.
	LastEpoch P.LeaderEpoch
}

// EpochEnd is where a leader epoch ends in a log: the offset behind its last record.
type EpochEnd struct {
	Epoch P.LeaderEpoch
	End   P.Offset
}

// Kind says what a follower does next.
type Kind int8

// What a follower may have to do.
const (
	// Append: the records fit behind the log end.
	Append Kind = iota
	// Truncate: cut the log so that it ends at Offset, then fetch again.
	Truncate
	// Restart: drop all records and begin at Offset, then fetch again.
	Restart
	// AskBounds: ask the leader where its log begins and ends, and go on with [Follower.OutOfRange].
	AskBounds
	// Later: nothing is wrong here; fetch again after a while.
	Later
	// Halt: fetch no more until the controller speaks. Err says why, to an operator.
	Halt
)

// String is the kind in lower case.
func (k Kind) String() string {
	return [...]string{"append", "truncate", "restart", "ask bounds", "later", "halt"}[k]
}

// Step is what a follower does next.
type Step struct {
	Kind   Kind
	Offset P.Offset
	Err    error
}

// Answered decides by the code that the leader gave the partition, None apart from a divergence.
func (f Follower) Answered(code P.Code) Step {
	switch code {
	case P.None:
		return Step{Kind: Append}
	case P.OffsetOutOfRange:
		return Step{Kind: AskBounds}
	}
	// The leader or this broker has not heard of the epoch yet, or of its end, or a disk fails over there. The
	// controller tells sooner or later; asking again costs little.
	return Step{Kind: Later, Err: code}
}

// Diverged decides where to cut. leader is the answer: the largest epoch in the leader's log that is not above
// this log's last one, and its end there. own is the same question put to this log about leader's epoch.
func (f Follower) Diverged(leader, own EpochEnd, held Held) Step {
	to := min(held.End, leader.End)
	switch {
	case leader.End < 0:
		return Step{Kind: Halt, Err: fmt.Errorf("the leader in epoch %d answers that it diverges at offset %d", f.Epoch, leader.End)}
	case leader.Epoch < 0 || own.Epoch < 0:
		// One of the two logs has no epochs that low: all that is known is where the leader's begin.
	case own.Epoch != leader.Epoch:
		// This log does not know the leader's epoch either. It ends with an older one, and asks about that next.
		to = min(held.End, own.End)
	default:
		to = min(to, own.End)
	}
	return f.cut(to, held)
}

// Differs decides what to do where records that have no epoch are not the leader's from an offset on.
func (f Follower) Differs(from P.Offset, held Held) Step { return f.cut(from, held) }

// OutOfRange decides what to do where the leader's log does not reach from the follower's end: leaderStart and
// leaderEnd are where it begins and ends.
func (f Follower) OutOfRange(leaderStart, leaderEnd P.Offset, held Held) Step {
	switch {
	case held.End < leaderStart:
		// Its records are gone from the leader by retention, so that they were committed.
		return Step{Kind: Restart, Offset: leaderStart}
	case held.End > leaderEnd:
		return f.cut(leaderEnd, held)
	}
	return Step{Kind: Later}
}

// predates reports whether all of the log is older than the last unclean election. Of records that have no epoch nobody
// knows when they were written; a log without records lacks nothing when it is cut.
func (f Follower) predates(held Held) bool {
	if held.LastEpoch == P.NoLeaderEpoch && held.Start < held.End {
		return false
	}
	return held.LastEpoch < f.UncleanEpoch && f.UncleanEpoch > 0
}

// cut is a truncation, where it may be.
func (f Follower) cut(to P.Offset, held Held) Step {
	if to < held.Watermark && !f.Unclean && !f.predates(held) {
		return Step{Kind: Halt, Offset: to, Err: fmt.Errorf(
			"the leader, broker %d in epoch %d, lacks records from offset %d on that are committed up to %d here, and was not elected uncleanly",
			f.Leader, f.Epoch, to, held.Watermark)}
	}
	if to <= held.Start && to < held.End {
		// Nothing of the log stays. It begins where the cut is, which may be before its start.
		return Step{Kind: Restart, Offset: to}
	}
	return Step{Kind: Truncate, Offset: to}
}

// Watermark is the follower's high watermark after it has taken over the leader's: never beyond its own
// records, and never lower than before, since what was committed stays so.
func (f Follower) Watermark(leader P.Offset, held Held) P.Offset {
	return max(held.Watermark, min(leader, held.End))
}
