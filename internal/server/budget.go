package server

import (
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// budget bounds the bytes of frames in flight over all connections. Taking waits, first come first
// served; a frame that has begun goes before one that has not, since only it frees what it holds.
//
// Frames that have begun can fill the budget among themselves, each needing more to end. So one of them
// at a time may overdraw it, and keeps that right until its bytes are released: the bytes in flight never
// exceed the budget by more than one frame, and something always moves.
//
//	limit 256 MiB    A has 64 and needs 128, B has 96 and needs 128, C has 96 and needs 128
//	used 256         none of them can go on within the limit: A overdraws (384), gives its 64 back (320), is
//	                 served and released (192); B does not fit either, and is the next to overdraw
//
// A charge is for the buffer's real size and not for the frame's, and is taken before the buffer is. While a frame
// moves to a larger buffer both are charged. A limit that is lowered takes nothing back; it holds for what comes.
type budget struct {
	mu struct {
		sync.Mutex
		limit, used int64
		overdrawn   bool // a claim with overdraft is out
		// growing waits for more of a frame that has begun, starting for the first buffer of one; each in order.
		growing  []*taker
		starting []*taker
	}
}

// claim is what one buffer has taken; the zero claim is none.
type claim struct {
	budget    *budget
	bytes     int64
	overdraft bool
}

// taker waits for bytes.
type taker struct {
	bytes   int64
	granted claim
	ready   chan struct{}
}

// newBudget makes a budget of limit bytes.
func newBudget(limit int64) *budget {
	b := new(budget)
	b.mu.limit = limit
	return b
}

// take charges bytes, waiting until they fit; false where stop was closed first. held is the claim of the smaller
// buffer with the frame's beginning, nil where the frame has not begun; its right to overdraw moves over.
func (b *budget) take(stop <-chan struct{}, bytes int64, held *claim) (claim, bool) {
	b.mu.Lock()
	if held != nil && held.overdraft {
		held.overdraft = false
		c := b.grantLocked(bytes, true)
		b.mu.Unlock()
		return c, true
	}
	t := &taker{bytes: bytes, ready: make(chan struct{})}
	queue := &b.mu.starting
	if held != nil {
		queue = &b.mu.growing
	}
	*queue = append(*queue, t)
	b.admitLocked()
	b.mu.Unlock()
	select {
	case <-t.ready:
		return t.granted, true
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(*queue, t); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
		b.admitLocked() // it may have stood in front of smaller ones
		return claim{}, false
	}
	b.releaseLocked(&t.granted) // granted in the same instant
	return claim{}, false
}

// tryTake is take where it need not wait.
func (b *budget) tryTake(bytes int64) (claim, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mu.growing)+len(b.mu.starting) > 0 || !b.fitsLocked(bytes) {
		return claim{}, false
	}
	return b.grantLocked(bytes, false), true
}

// fitsLocked lets a frame larger than the whole budget pass when it is alone.
func (b *budget) fitsLocked(bytes int64) bool { return b.mu.used == 0 || b.mu.used+bytes <= b.mu.limit }

func (b *budget) grantLocked(bytes int64, overdraft bool) claim {
	b.mu.used += bytes
	return claim{budget: b, bytes: bytes, overdraft: overdraft}
}

// admitLocked grants whatever may go on now.
func (b *budget) admitLocked() {
	for len(b.mu.growing) > 0 {
		t := b.mu.growing[0]
		fits := b.fitsLocked(t.bytes)
		if !fits && b.mu.overdrawn {
			return
		}
		b.mu.overdrawn = b.mu.overdrawn || !fits
		t.granted = b.grantLocked(t.bytes, !fits)
		b.mu.growing = slices.Delete(b.mu.growing, 0, 1)
		close(t.ready)
	}
	for len(b.mu.starting) > 0 && b.fitsLocked(b.mu.starting[0].bytes) {
		t := b.mu.starting[0]
		t.granted = b.grantLocked(t.bytes, false)
		b.mu.starting = slices.Delete(b.mu.starting, 0, 1)
		close(t.ready)
	}
}

// release gives the bytes of a claim back.
func (c *claim) release() {
	b := c.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.releaseLocked(c)
}

func (b *budget) releaseLocked(c *claim) {
	b.mu.used -= c.bytes
	if b.mu.used < 0 {
		invariant.Fail("budget of bytes in flight is at %d after a release of %d", b.mu.used, c.bytes)
	}
	if c.overdraft {
		b.mu.overdrawn = false
	}
	*c = claim{}
	b.admitLocked()
}

// setLimit changes the budget.
func (b *budget) setLimit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.limit = limit
	b.admitLocked()
}

// inFlight is what is taken now.
func (b *budget) inFlight() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used
}
