package logdir

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
)

// retainer deletes segments that are too old or too many, every log.retention.check.interval.ms, and the
// files of deleted ones after their file.delete.delay.ms. It goes by the clock that steps do not reach.
type retainer struct {
	set  *Set
	next time.Time              // when retention is checked next, by the monotonic clock
	due  map[*log.Log]time.Time // when the next deleted file of a log goes, by the steady clock
}

// newRetainer makes the retainer of a Set; it checks at its first pass.
func newRetainer(s *Set) *retainer { return &retainer{set: s, due: map[*log.Log]time.Time{}} }

// pass does what is due. Retention itself, which looks at every log, keeps to its interval; between two of its
// runs only the logs are visited that have deleted files.
func (r *retainer) pass(ctx context.Context) time.Duration {
	now := r.set.steady.Now()
	if check := r.set.interval("log.retention.check.interval.ms"); !time.Now().Before(r.next) {
		r.next = time.Now().Add(check)
		r.retain(ctx, now)
	} else {
		r.remove(ctx, now)
	}
	wait := time.Until(r.next)
	for _, at := range r.due {
		wait = min(wait, at.Sub(now))
	}
	return max(wait, removalPause)
}

// removalPause is how long the removal of files waits at least, so that several go in one pass.
const removalPause = time.Second

// retain checks every log.
func (r *retainer) retain(ctx context.Context, now time.Time) {
	clear(r.due)
	r.set.each(ctx, "retention", func(l *log.Log) error {
		segments, bytes, err := l.Retain(now)
		if segments > 0 {
			r.set.logger.Info("deleted old segments", "partition", l.Partition(), "segments", segments, "bytes", bytes, "start", l.StartOffset())
		}
		if err != nil {
			return err
		}
		return r.removeDue(l, now)
	})
}

// remove looks after the logs that have deleted files.
func (r *retainer) remove(ctx context.Context, now time.Time) {
	for _, e := range r.set.entries(nil) {
		if at, ok := r.due[e.log]; !ok || e.log == nil || at.After(now) || ctx.Err() != nil {
			continue
		}
		r.set.guard(e, "removal of deleted segments", func(l *log.Log) error { return r.removeDue(l, now) })
	}
}

// removeDue removes the files of one log whose time has come, and notes when the next ones are due.
func (r *retainer) removeDue(l *log.Log, now time.Time) error {
	delete(r.due, l)
	next, more, err := l.RemoveDue(now)
	if more {
		r.due[l] = next
	}
	return err
}
