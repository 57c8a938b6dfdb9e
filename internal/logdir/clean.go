package logdir

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// cleaner compacts the logs whose topics ask for it. As Kafka's it takes, of the logs with a share of
// uncompacted bytes above min.cleanable.dirty.ratio and those overdue by max.compaction.lag.ms, the one with
// the largest share first.
type cleaner struct {
	set  *Set
	pace pacer

	mu struct {
		sync.Mutex
		// left are logs that are not picked again in this pass, as nothing was gained, or ever, as
		// compaction failed by no fault of the disk: those wait until they are opened again.
		left map[*log.Log]whyLeft
	}
}

// whyLeft says for how long a log is not picked.
type whyLeft int

const (
	thisPass whyLeft = iota
	forGood
)

// newCleaner makes the cleaner of a Set.
func newCleaner(s *Set) *cleaner {
	c := &cleaner{set: s}
	c.mu.left = map[*log.Log]whyLeft{}
	return c
}

// pass compacts log.cleaner.threads logs at a time until none is left that needs it.
//
// A log that was compacted comes again in the same pass if it is still the filthiest; one that could not get on is left
// until the next pass, and one that failed by its content until it is opened again, like Kafka's uncleanable
// partitions.
func (c *cleaner) pass(ctx context.Context) time.Duration {
	c.beginPass()
	for ctx.Err() == nil {
		settings := c.set.config.Load()
		if !settings.Bool("log.cleaner.enable") {
			return forever
		}
		threads := int(settings.Int("log.cleaner.threads"))
		filthiest := c.filthiest(ctx, threads)
		if len(filthiest) == 0 {
			break
		}
		// The map of keys is the cleaner's memory; all threads together may have what is configured.
		buffer := settings.Long("log.cleaner.dedupe.buffer.size") / int64(max(threads, 1))
		var wg sync.WaitGroup
		for _, e := range filthiest {
			wg.Go(func() { apart(func() { c.clean(ctx, e, buffer) }) })
		}
		wg.Wait()
		if err := c.set.checkpoint(cleanedTo); err != nil {
			c.set.logger.Warn("cannot write a checkpoint, will try again", "file", cleanerFile, "error", err)
		}
	}
	return c.set.interval("log.cleaner.backoff.ms")
}

// filthiest picks the logs to compact next.
func (c *cleaner) filthiest(ctx context.Context, most int) []*entry {
	type candidate struct {
		entry *entry
		ratio float64
	}
	var all []candidate
	now := c.set.steady.Now()
	for _, e := range c.set.entries(nil) {
		if e.log == nil || e.log.Err() != nil || e.dir.err() != nil || ctx.Err() != nil {
			continue
		}
		topic := e.log.Config()
		if !topic.Compact || c.isLeft(e.log) {
			continue
		}
		c.set.guard(e, "compaction", func(l *log.Log) error {
			found, err := l.CleanableRatio(now)
			if err == nil && found.Bytes > 0 && (found.Overdue || found.Ratio > topic.MinCleanableRatio) {
				all = append(all, candidate{e, found.Ratio})
			}
			return err
		})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.ratio, a.ratio) })
	var picked []*entry
	for _, found := range all[:min(most, len(all))] {
		picked = append(picked, found.entry)
	}
	return picked
}

// beginPass lets those be picked again that were left in the last pass.
func (c *cleaner) beginPass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.mu.left, func(l *log.Log, why whyLeft) bool {
		return why == thisPass || c.set.Get(l.Partition()) != l
	})
}

// isLeft reports whether a log is not to be picked.
func (c *cleaner) isLeft(l *log.Log) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, left := c.mu.left[l]
	return left
}

// leave notes that a log is not to be picked, and for how long.
func (c *cleaner) leave(l *log.Log, why whyLeft) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.left[l] = why
}

// clean compacts one log.
func (c *cleaner) clean(ctx context.Context, e *entry, buffer int64) {
	c.set.guard(e, "compaction", func(l *log.Log) error {
		began := time.Now()
		stats, err := l.Compact(ctx, log.CompactOptions{Buffer: buffer, Throttle: c.throttle})
		switch {
		case errors.Is(err, log.ErrInterrupted) || ctx.Err() != nil:
			return nil // it comes again
		case err == nil && stats.To > stats.From:
			c.set.logger.Info("compacted", "partition", e.partition, "from", stats.From, "to", stats.To,
				"read", stats.BytesRead, "written", stats.BytesWritten, "took", time.Since(began).Round(time.Millisecond))
		case err == nil, vfs.IsFull(err), isDiskFault(err):
			// Picked again at once, it would make this loop spin.
			c.leave(l, thisPass)
		default:
			c.leave(l, forGood)
		}
		return err
	})
}

// throttle keeps all compaction below log.cleaner.io.max.bytes.per.second.
func (c *cleaner) throttle(ctx context.Context, bytes int) error {
	rate := c.set.config.Load().Double("log.cleaner.io.max.bytes.per.second")
	return c.pace.wait(ctx, bytes, rate)
}

// pacer spreads work over time. It is safe for concurrent use.
type pacer struct {
	mu   sync.Mutex
	next time.Time // when all that was asked for so far will have been done at the rate
}

// wait returns when bytes more may be done at a rate in bytes a second; what is not a limit does not wait.
//
//	next     now               now + bytes/rate
//	         │─ bytes ─│─ bytes of another caller ─│
//	return             ▲ the first                  ▲ the second
//
// Time that nobody used is not saved up: next never lies in the past.
func (p *pacer) wait(ctx context.Context, bytes int, rate float64) error {
	if rate <= 0 || rate >= math.MaxInt64 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(bytes) / rate * float64(time.Second)))
	delay := p.next.Sub(now)
	p.mu.Unlock()

	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
