package replica

import (
	"context"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/planted"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// commitWaiters are the requests that wait for a watermark of one partition, the high one or the low one.
type commitWaiters struct {
	due *wakeups

	mu        sync.Mutex
	watermark protocol.Offset
	waiting   []*CommitWait
}

// CommitWait is a wait until the watermark has reached an offset.
type CommitWait struct {
	on   *commitWaiters
	end  protocol.Offset
	done func(error)
	err  error // the outcome, from when it is decided
}

// add registers a wait; nil where the watermark is there already.
func (c *commitWaiters) add(end protocol.Offset, done func(error)) *CommitWait {
	c.mu.Lock()
	defer c.mu.Unlock()
	if planted.In(planted.EarlyAck) {
		end--
	}
	if c.watermark >= end {
		return nil
	}
	w := &CommitWait{on: c, end: end, done: done}
	c.waiting = append(c.waiting, w)
	return w
}

// GiveUp ends the wait without an outcome; false where there is one, which was told or is about to be.
func (w *CommitWait) GiveUp() bool {
	c := w.on
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return true
}

// tell calls done with the outcome.
func (w *CommitWait) tell() { w.done(w.err) }

// advance ends the waits that watermark covers.
func (c *commitWaiters) advance(watermark protocol.Offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watermark = watermark
	if len(c.waiting) == 0 {
		return
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(w *CommitWait) bool {
		if w.end > watermark {
			return false
		}
		c.due.add(w.tell)
		return true
	})
}

// fail ends all waits with err.
func (c *commitWaiters) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		w.err = err
		c.due.add(w.tell)
	}
	c.waiting = nil
}

// Committed reports whether [Partition.Wait] would end at once, and well.
func (p *Partition) Committed(epoch protocol.LeaderEpoch, end protocol.Offset) bool {
	l := p.log.Load()
	// In this order: a watermark of another leader does not count.
	return l != nil && l.HighWatermark() >= end && term(p.term.Load()).covers(epoch)
}

// Wait blocks until the high watermark has reached end while this replica has led without a break since
// epoch: NOT_LEADER_OR_FOLLOWER where it has not, since another leader may then have cut the records. A
// broker that stops answers the same: no follower is heard any more, so that the watermark stands still, and who waited
// for it would keep the broker from stopping in time. When ctx ends first, the outcome is unknown.
func (p *Partition) Wait(ctx context.Context, epoch protocol.LeaderEpoch, end protocol.Offset) error {
	return p.wait(ctx, &p.commits, epoch, end)
}

// Await is Wait without a goroutine. It calls done once with the outcome: at once where it is known, which is when it
// returns nil, else by who brings it about, without a lock of the partition. That one stands still until done returns.
// The end of the broker and of time are the caller's to watch for, see [CommitWait.GiveUp].
func (p *Partition) Await(epoch protocol.LeaderEpoch, end protocol.Offset, done func(error)) *CommitWait {
	return p.await(&p.commits, epoch, end, done)
}

func (p *Partition) await(on *commitWaiters, epoch protocol.LeaderEpoch, end protocol.Offset, done func(error)) *CommitWait {
	// First registered, then compared: a leadership that ends in between has either failed the wait, or is
	// seen in the comparison.
	w := on.add(end, done)
	if !term(p.term.Load()).covers(epoch) {
		if w == nil || w.GiveUp() {
			done(protocol.NotLeaderOrFollower)
			return nil
		}
		return w
	}
	if w == nil {
		done(nil)
	}
	return w
}

func (p *Partition) wait(ctx context.Context, on *commitWaiters, epoch protocol.LeaderEpoch, end protocol.Offset) error {
	outcome := make(chan error, 1)
	w := p.await(on, epoch, end, func(err error) { outcome <- err })
	var ended error
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		ended = ctx.Err()
	case <-p.options.Draining():
		ended = protocol.NotLeaderOrFollower
	}
	if w != nil && w.GiveUp() {
		return ended
	}
	return <-outcome // both came at once, and then the commit counts
}
