package partition

import (
	"slices"
	"time"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// never is before every time that a driver's clock can show.
const never = time.Duration(-1 << 62)

// follower is what a leader knows of another replica in its epoch.
type follower struct {
	id P.BrokerID
	// epoch is the broker epoch in its last fetch; NoBrokerEpoch before, and from brokers that send none.
	epoch P.BrokerEpoch
	// end is its log end offset, NoOffset before it fetched in this epoch; start its log start offset. It may lie behind the
	// leader's, which does not count what is not synced yet.
	end, start P.Offset

	// caughtUp is when it last had all that the leader had.
	caughtUp time.Duration
	// left is when the leader appended something while the follower had all; never where it still has.
	left time.Duration
	// fetched is when it fetched last, and leaderEnd the leader's log end then.
	fetched   time.Duration
	leaderEnd P.Offset
	// lagged is set when it is proposed to take it out of the in-sync set, until it fetches again.
	lagged bool
	// refused is until when no proposal is made to take it in.
	refused time.Duration
	// gone is set when its broker has left the cluster, until it fetches again.
	gone bool
}

// newFollower gives a member of the in-sync set the benefit of the doubt.
func newFollower(id P.BrokerID, inSync bool, now time.Duration) follower {
	f := follower{id: id}
	f.forget()
	if inSync {
		f.caughtUp = now
	}
	return f
}

// forget drops what is known.
func (f *follower) forget() {
	*f = follower{id: f.id, epoch: P.NoBrokerEpoch, end: P.NoOffset, start: P.NoOffset, leaderEnd: P.NoOffset, caughtUp: never, left: never, fetched: never, refused: never}
}

// leftBehind notes that the leader's log goes on from its end to another one.
func (f *follower) leftBehind(from, to P.Offset, now time.Duration) {
	if f.end >= from && f.end < to && f.left == never {
		f.left = now
	}
}

// fetch takes over a new position.
func (f *follower) fetch(offset, leaderEnd P.Offset, now time.Duration) {
	f.caughtUp = max(f.caughtUp, f.left)
	f.left = never
	switch {
	case offset >= leaderEnd:
		f.caughtUp = now
	case offset >= f.leaderEnd:
		// It has reached what there was at its last fetch, so that it had all at that moment.
		f.caughtUp = max(f.caughtUp, f.fetched)
	}
	f.end, f.fetched, f.leaderEnd, f.lagged, f.gone = offset, now, leaderEnd, false, false
}

// since is the last time at which the follower had everything; heard is when its broker last fetched anything.
// A follower that waits at the log end for records names its partitions no more, so that only both together
// tell since when it has had less.
func (f *follower) since(heard time.Duration) time.Duration {
	return max(f.caughtUp, min(f.left, heard))
}

func (l *Leader) follower(id P.BrokerID) *follower {
	for i := range l.followers {
		if l.followers[i].id == id {
			return &l.followers[i]
		}
	}
	return nil
}

// Fetch is what a follower's fetch says about it. The driver passes it on only where the follower's log
// agrees with the leader's up to the offset, and in the leader's epoch.
type Fetch struct {
	// Replica is the follower, Epoch its registration's (Fetch 15 and up), otherwise NoBrokerEpoch.
	Replica P.BrokerID
	Epoch   P.BrokerEpoch
	// Offset is where it fetches from: its log end offset. Start is its log start offset.
	Offset, Start P.Offset
}

// Fetched takes over a follower's position, and returns the high watermark. UNKNOWN_LEADER_EPOCH where the
// broker has no replica as far as this leader knows, as the follower may know more; NOT_LEADER_OR_FOLLOWER
// where an earlier life of the broker fetches.
func (l *Leader) Fetched(q Fetch, now time.Duration) (P.Offset, error) {
	f := l.follower(q.Replica)
	switch {
	case f == nil:
		return l.watermark, P.Errorf(P.UnknownLeaderEpoch, "broker %d has no replica in leader epoch %d", q.Replica, l.Epoch)
	case q.Epoch != P.NoBrokerEpoch && q.Epoch < f.epoch:
		return l.watermark, P.Errorf(P.NotLeaderOrFollower, "broker %d has fetched with broker epoch %d, and now with %d", q.Replica, f.epoch, q.Epoch)
	case q.Epoch != f.epoch:
		// It has restarted, and its log may have lost records: what it had does not count any more. The first
		// epoch that is seen says nothing about an earlier one.
		if f.epoch != P.NoBrokerEpoch {
			f.forget()
		}
		f.epoch = q.Epoch
	}
	f.fetch(q.Offset, l.end, now)
	f.start = q.Start
	l.advance(now)
	return l.watermark, nil
}

// Gone says that a broker is not there any more. It cannot join, and so nothing waits for that. Where it counts, it goes
// on counting: a member leaves by the controller's word or when it lags, and whoever a proposal in flight would take in
// may have been taken in.
func (l *Leader) Gone(id P.BrokerID, now time.Duration) {
	f := l.follower(id)
	if f == nil {
		return
	}
	if !slices.Contains(l.wide, id) {
		f.forget()
	}
	f.gone = true
	l.advance(now)
}

// Passed lets go of what only time lets go of: the watermark has waited long enough for a replica to join that does
// not fetch any more. An append or a fetch does it too, but there may be none.
func (l *Leader) Passed(now time.Duration) { l.advance(now) }

// Lag says how many offsets a follower is behind; all of the log while it has not fetched.
func (l *Leader) Lag(id P.BrokerID) int64 {
	f := l.follower(id)
	if f == nil {
		return 0
	}
	return max(0, int64(l.end-max(f.end, 0))) // a follower may have what this leader still syncs
}

// LowWatermark is the smallest log start offset of the in-sync replicas, of which own is this leader's: records
// before it are gone whoever leads next. NoOffset while a member has not said where its log begins.
func (l *Leader) LowWatermark(own P.Offset) P.Offset {
	for i := range l.followers {
		if f := &l.followers[i]; f.start < own && slices.Contains(l.wide, f.id) {
			own = f.start
		}
	}
	return own
}

// Reader is an in-sync follower that consumers may read from.
type Reader struct {
	ID P.BrokerID
	// End is its log end offset as far as the leader knows.
	End P.Offset
	// CaughtUp is when it last had everything.
	CaughtUp time.Duration
}

// Readers appends the in-sync followers whose logs hold offset to readers.
func (l *Leader) Readers(readers []Reader, offset P.Offset) []Reader {
	for i := range l.followers {
		f := &l.followers[i]
		if f.end >= offset && f.start <= offset && slices.Contains(l.inSync, f.id) {
			readers = append(readers, Reader{ID: f.id, End: f.end, CaughtUp: f.caughtUp})
		}
	}
	return readers
}

// mayJoinSoon reports whether a replica outside of the in-sync set keeps up, so that the watermark waits for
// it to join. One that the controller has refused does not hold anything up (KAFKA-15021).
func (l *Leader) mayJoinSoon(f *follower, now time.Duration) bool {
	return f.end != P.NoOffset && !f.gone && f.refused <= now && (f.end >= l.end || now-f.caughtUp <= l.settings.MaxLag)
}

// lagging reports whether a member of the in-sync set has lacked something for too long.
func (l *Leader) lagging(f *follower, heard, now time.Duration) bool {
	return f.end < l.end && now-f.since(heard) > l.settings.MaxLag
}
