package admin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// patience ends the production of records when none has been acknowledged for a while: the client itself would try
// for ever where a broker does not answer, or refuses for now, as one whose disk is full. The client's own
// timeout is no use for that, since it counts from a record's timestamp, which may lie years back.
//
//	sent      the first record in flight starts the timer
//	ended     an acknowledgement starts it anew: as long as anything is acknowledged, nothing is given up
//	timer     fires with records in flight: ctx ends, with the reason as its cause
type patience struct {
	// ctx is what records are produced under; it ends when patience does.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	after   time.Duration
	timer   *time.Timer
	waiting atomic.Int64 // records that are neither acknowledged nor refused
}

func newPatience(ctx context.Context, after time.Duration) *patience {
	p := &patience{after: after}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(after, func() {
		if p.waiting.Load() > 0 {
			p.cancel(fmt.Errorf("no record has been acknowledged for %s: the broker does not answer, or cannot write for "+
				"now (its log says why)", after))
		}
	})
	return p
}

// sent notes a record that is being produced.
func (p *patience) sent() {
	if p.waiting.Add(1) == 1 {
		p.timer.Reset(p.after)
	}
}

// ended notes that a record was acknowledged, or failed with err, and says why in more words where it failed with
// the end of patience.
func (p *patience) ended(err error) error {
	p.waiting.Add(-1)
	if err == nil {
		p.timer.Reset(p.after)
		return nil
	}
	if p.ctx.Err() != nil && err == context.Canceled {
		return context.Cause(p.ctx)
	}
	return err
}

// end gives the timer back.
func (p *patience) end() {
	p.timer.Stop()
	p.cancel(nil)
}
