package logdir

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
)

// forever is the interval of a job that runs when it is woken.
const forever = time.Duration(math.MaxInt64)

// wake is a call to a job: one that comes while another waits is the same call.
type wake chan struct{}

// poke calls the job. It does not wait.
func (w wake) poke() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// wakes are the jobs that others call.
type wakes struct {
	deletions, moves wake
	offline          wake // whoever serves partitions
}

// newWakes makes the calls of one Set.
func newWakes() wakes { return wakes{make(wake, 1), make(wake, 1), make(wake, 1)} }

// job is one kind of work in the background: a goroutine for all partitions.
type job struct {
	name string
	// first is how long after the start it runs first.
	first time.Duration
	// wake calls it early; may be nil.
	wake wake
	// run does the work once and says when to come again.
	run func(context.Context) time.Duration
}

// jobs lists them. Those that read and delete much come a while after the start; none of them costs anything
// for a partition that is idle but a look at two offsets.
//
//	watch                      1 s      broken logs, flush.ms
//	high watermarks            5 s      replica.high.watermark.checkpoint.interval.ms
//	recovery points, starts    60 s     log.flush.(start.)offset.checkpoint.interval.ms
//	sync                       10 s     logs with records unsynced for 30 s
//	verification               once     5 s after the start
//	compaction                 15 s     log.cleaner.backoff.ms
//	retention                  5 min    log.retention.check.interval.ms
//	expiration of producers    10 min   producer.id.expiration.check.interval.ms
//
// The times are the defaults. A job never runs twice at a time: the next run is counted from the end of the last.
func (s *Set) jobs() []job {
	firstDelay := s.config.Load().Duration("log.initial.task.delay.ms")
	return []job{
		{name: "watch", first: time.Second, run: s.watch},
		{name: "checkpoint of high watermarks", first: time.Second, run: s.checkpointJob(highWatermarks, "replica.high.watermark.checkpoint.interval.ms")},
		{name: "checkpoint of recovery points", first: firstDelay, run: s.checkpointJob(recoveryPoints, "log.flush.offset.checkpoint.interval.ms")},
		{name: "checkpoint of log starts", first: firstDelay, run: s.checkpointJob(logStarts, "log.flush.start.offset.checkpoint.interval.ms")},
		{name: "sync", first: syncPass, run: newSyncer(s).pass},
		{name: "verification", first: verifyDelay, run: s.verify},
		{name: "compaction", first: firstDelay, run: newCleaner(s).pass},
		{name: "retention", first: firstDelay, run: newRetainer(s).pass},
		{name: "expiration of producers", first: firstDelay, run: s.expireProducers},
		{name: "removal of deleted partitions", wake: s.wake.deletions, run: s.removeDue},
		{name: "moves between directories", wake: s.wake.moves, run: s.move},
	}
}

// Run does the work in the background until ctx or Close ends it, and returns when all of it has ended. It is
// called once, after Load.
func (s *Set) Run(ctx context.Context) {
	s.background.Lock()
	if s.closed.Load() {
		s.background.Unlock() // Close has looked for jobs already
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.background.stop = cancel
	var wg sync.WaitGroup
	for _, j := range s.jobs() {
		wg.Go(func() { s.loop(ctx, j) })
	}
	s.background.done = wg.Wait
	s.background.Unlock()
	wg.Wait()
}

// background is what Close needs to end Run.
type background struct {
	sync.Mutex
	stop context.CancelFunc
	done func()
}

// end stops the jobs and waits for them.
func (b *background) end() {
	b.Lock()
	stop, done := b.stop, b.done
	b.Unlock()
	if stop != nil {
		stop()
		done()
	}
}

// loop runs a job again and again.
func (s *Set) loop(ctx context.Context, j job) {
	timer := time.NewTimer(j.first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-j.wake:
		}
		if ctx.Err() != nil {
			return // both were ready, and select picks either
		}
		timer.Reset(s.runOnce(ctx, j))
	}
}

// afterPanic is when a job comes again that panicked.
const afterPanic = time.Minute

// runOnce runs a job once; a panic ends this run alone.
func (s *Set) runOnce(ctx context.Context, j job) (next time.Duration) {
	var err error
	defer func() {
		if err != nil {
			next = afterPanic
		}
	}()
	defer s.recovered("background job "+j.name, &err)
	return j.run(ctx)
}

// What fails in a job fences the smallest thing:
//
//	an error                     is logged; the job comes again at its next time
//	an error of the disk         takes the directory offline
//	a panic at one partition     takes the partition offline; the job goes on with the next one
//	a panic outside of any       ends this run of the job, which comes again in a minute

// each does something to every log that works, until ctx ends. A panic takes the partition offline and the
// next one is done; so an error of the disk does its directory.
func (s *Set) each(ctx context.Context, doing string, do func(*log.Log) error) {
	for _, e := range s.entries(nil) {
		if ctx.Err() != nil {
			return
		}
		if e.log == nil || e.log.Err() != nil || e.dir.err() != nil {
			continue
		}
		s.guard(e, doing, do)
	}
}

// guard does something to one log.
func (s *Set) guard(e *entry, doing string, do func(*log.Log) error) {
	var panicked error
	err := func() (err error) {
		defer s.recovered(doing+" of "+e.partition.String(), &panicked)
		return do(e.log)
	}()
	switch {
	case panicked != nil:
		s.poison(e, panicked)
	case err != nil && !errors.Is(err, context.Canceled) && s.entry(e.partition) == e: // otherwise it is gone since
		s.logger.Warn("background work failed", "work", doing, "partition", e.partition, "dir", e.dir.path, "error", err)
		_ = s.report(e.dir, err)
	}
}

// poison takes one partition offline.
func (s *Set) poison(e *entry, cause error) {
	err := offline(e.partition, cause)
	if s.replace(e.partition, e, &entry{partition: e.partition, dir: e.dir, err: err}) {
		s.logger.Error("partition is offline", "partition", e.partition, "dir", e.dir.path, "error", err)
		s.wake.offline.poke()
		e.log.CloseUnclean()
	}
}

// checkpointJob writes one kind of checkpoint at the interval that a property says.
func (s *Set) checkpointJob(k kind, interval string) func(context.Context) time.Duration {
	return func(context.Context) time.Duration {
		if err := s.checkpoint(k); err != nil {
			s.logger.Warn("cannot write a checkpoint, will try again", "file", kindFiles[k], "error", err)
		}
		return s.interval(interval)
	}
}

// interval reads a property that counts time; what is not positive means never.
func (s *Set) interval(name string) time.Duration {
	if every := s.config.Load().Duration(name); every > 0 {
		return every
	}
	return forever
}

// expireProducers forgets producers that have been idle for producer.id.expiration.ms.
func (s *Set) expireProducers(ctx context.Context) time.Duration {
	now := s.steady.Now()
	s.each(ctx, "expiration of producers", func(l *log.Log) error {
		l.ExpireProducers(now)
		return nil
	})
	return s.interval("producer.id.expiration.check.interval.ms")
}
