package group

import (
	"container/heap"
	"time"

	"github.com/barnabas-mq/barnabas/internal/shard"
)

// timer is one timeout of a group or a member, embedded in what it belongs to. Putting it off, which every
// heartbeat does, touches nothing but the timer.
type timer struct {
	// at is when it is due, on Now.Mono; unset where it is not running.
	at time.Duration
	// queued is where it stands in the heap: at or before at.
	queued time.Duration
	// index is its place in the heap plus one; 0 outside.
	index int
	// fire does what is due.
	fire func(m *Machine, now shard.Now) shard.Decision
}

// unset is the time of a timer that is not running.
const unset = time.Duration(-1)

// timers are the running timers of a machine, the nearest first: a heap by the time at which each is looked at
// again, not by the time at which it is due. With ten thousand members that all send a heartbeat every three
// seconds, the heap is touched once a session and member, not once a heartbeat.
//
//	timer.queued ≤ timer.at      always, for timers in the heap
//	put off                      at moves, queued stays: nothing to do until queued is reached
//	brought forward              queued moves with at, and the heap is put in order
//	looked at too early          queued becomes at, and it sinks back
//
// A timer is embedded in its owner, so that starting one allocates nothing; it must be stopped before the owner
// is let go, or the heap keeps it alive.
type timers []*timer

// start sets t to fire after delay, whatever it was set to.
func (ts *timers) start(t *timer, now shard.Now, delay time.Duration, fire func(m *Machine, now shard.Now) shard.Decision) {
	t.at, t.fire = now.Mono+max(delay, 0), fire
	switch {
	case t.index == 0:
		t.queued = t.at
		heap.Push(ts, t)
	case t.at < t.queued:
		t.queued = t.at
		heap.Fix(ts, t.index-1)
	}
}

// stop makes t not fire.
func (ts *timers) stop(t *timer) {
	if t.index > 0 {
		heap.Remove(ts, t.index-1)
	}
	t.at, t.fire = unset, nil
}

// next is when the nearest timer may be due.
func (ts timers) next() (time.Duration, bool) {
	if len(ts) == 0 {
		return 0, false
	}
	return ts[0].queued, true
}

// due takes out a timer whose time has come; nil where there is none.
func (ts *timers) due(now shard.Now) *timer {
	for len(*ts) > 0 && (*ts)[0].queued <= now.Mono {
		t := (*ts)[0]
		if t.at <= now.Mono {
			heap.Pop(ts)
			t.at = unset
			return t
		}
		t.queued = t.at // it was put off meanwhile
		heap.Fix(ts, 0)
	}
	return nil
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (ts timers) Len() int { return len(ts) }

// Less implements heap.Interface: the one to look at soonest is first.
func (ts timers) Less(i, j int) bool { return ts[i].queued < ts[j].queued }

// Swap implements heap.Interface, and tells the two timers where they stand now.
func (ts timers) Swap(i, j int) {
	ts[i], ts[j] = ts[j], ts[i]
	ts[i].index, ts[j].index = i+1, j+1
}

// Push adds a timer at the end.
func (ts *timers) Push(t any) {
	added := t.(*timer)
	*ts = append(*ts, added)
	added.index = len(*ts)
}

// Pop takes the timer at the end.
func (ts *timers) Pop() any {
	last := len(*ts) - 1
	t := (*ts)[last]
	(*ts)[last] = nil
	*ts = (*ts)[:last]
	t.index = 0
	return t
}
