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
	mu        sync.Mutex
	watermark protocol.Offset
	waiting   []*commitWaiter
}

// commitWaiter waits until the watermark has reached end.
type commitWaiter struct {
	end  protocol.Offset
	done chan error // one slot
}

// add registers a waiter; nil where the watermark is there already.
func (c *commitWaiters) add(end protocol.Offset) *commitWaiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if planted.In(planted.EarlyAck) {
		end--
	}
	if c.watermark >= end {
		return nil
	}
	w := &commitWaiter{end: end, done: make(chan error, 1)}
	c.waiting = append(c.waiting, w)
	return w
}

func (c *commitWaiters) remove(w *commitWaiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.waiting, w); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
}

// advance ends the waits that watermark covers.
func (c *commitWaiters) advance(watermark protocol.Offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watermark = watermark
	if len(c.waiting) == 0 {
		return
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(w *commitWaiter) bool {
		if w.end > watermark {
			return false
		}
		w.done <- nil
		return true
	})
}

// fail ends all waits with err.
func (c *commitWaiters) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		w.done <- err
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

func (p *Partition) wait(ctx context.Context, on *commitWaiters, epoch protocol.LeaderEpoch, end protocol.Offset) error {
	// First registered, then compared: a leadership that ends in between has either failed the waiter, or is
	// seen in the comparison.
	waiter := on.add(end)
	if !term(p.term.Load()).covers(epoch) {
		if waiter != nil {
			on.remove(waiter)
		}
		return protocol.NotLeaderOrFollower
	}
	if waiter == nil {
		return nil
	}
	var ended error
	select {
	case err := <-waiter.done:
		return err
	case <-ctx.Done():
		ended = ctx.Err()
	case <-p.options.Draining():
		ended = protocol.NotLeaderOrFollower
	}
	on.remove(waiter)
	select { // both may have come at once, and then the commit counts
	case err := <-waiter.done:
		return err
	default:
		return ended
	}
}
