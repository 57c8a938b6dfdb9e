package logdir

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// CaughtUp tells each copy that has all committed records and waits for [Set.Swap]; again after a while if
// it still waits.
func (s *Set) CaughtUp() <-chan protocol.TopicPartition { return s.caughtUp }

const (
	// moveRest is how often copies that have caught up are brought up to date.
	moveRest = 500 * time.Millisecond
	// moveAgain is when a copy that failed is tried again, and when a Swap is asked for again.
	moveAgain = 10 * time.Second
)

// move copies a chunk for each move in turn until all have caught up. They share one goroutine and one buffer,
// and so one rate.
func (s *Set) move(ctx context.Context) time.Duration {
	buffer := make([]byte, moveChunk)
	for {
		copied, rest := 0, forever
		for _, f := range s.moving() {
			n, err := s.moveOn(f, &buffer)
			copied += n
			if err != nil {
				s.logger.Warn("a move does not get on", "partition", f.partition, "to", f.dir.path, "error", err)
				rest = min(rest, moveAgain)
			} else if n == 0 {
				rest = min(rest, moveRest)
			}
			if s.throttleMoves(ctx, n) != nil {
				return forever
			}
		}
		if copied == 0 {
			return rest
		}
	}
}

// throttleMoves keeps the copying below replica.alter.log.dirs.io.max.bytes.per.second.
func (s *Set) throttleMoves(ctx context.Context, bytes int) error {
	return s.moves.wait(ctx, bytes, float64(s.config.Load().Long("replica.alter.log.dirs.io.max.bytes.per.second")))
}

// moveOn copies the next chunk of one move, up to the high watermark: what is above it may be truncated.
// Where there is none left it makes the copy durable and tells so.
func (s *Set) moveOn(f *future, buffer *[]byte) (copied int, err error) {
	defer s.recovered("moving "+f.partition.String(), &err)
	e := s.entry(f.partition)
	if e == nil || e.log == nil {
		return 0, nil // it is about to be dropped
	}
	copied, err = s.copyChunk(e, f, e.log.HighWatermark(), buffer)
	if err != nil || copied > 0 || time.Since(f.told) < moveAgain {
		return copied, err
	}
	// Synced here, so that Swap, during which nothing can be appended, has little left to sync.
	if err := f.log.Flush(); err != nil {
		return 0, s.report(f.dir, err)
	}
	select {
	case s.caughtUp <- f.partition:
		f.told = time.Now()
	default:
	}
	return 0, nil
}

// copyChunk copies whole batches below limit from the current log to the copy.
//
// The buffer is the job's, or Swap's, and grows to the largest batch. The slice pins the segment only while it is
// read, so that retention of the current log goes on.
func (s *Set) copyChunk(e *entry, f *future, limit protocol.Offset, buffer *[]byte) (int, error) {
	// The copy takes batches as a follower does, offsets and epochs kept, and so has the same leader epochs
	// and producers in the end.
	from, err := s.align(e, f)
	if err != nil || from >= limit {
		return 0, err
	}
	slice, err := e.log.Read(from, moveChunk, limit, true)
	if err != nil || slice.Length == 0 {
		return 0, s.report(e.dir, err)
	}
	if slice.Length > len(*buffer) {
		*buffer = make([]byte, slice.Length)
	}
	batches := (*buffer)[:slice.Length]
	err = slice.ReadInto(batches)
	slice.Release()
	if err != nil {
		return 0, s.report(e.dir, err)
	}
	if first := record.Batch(batches).BaseOffset(); f.log.EndOffset() == f.log.StartOffset() && first < f.log.EndOffset() {
		// The log start lies inside a batch: the copy begins with that batch too.
		if err := f.log.TruncateFullyAndStartAt(first); err != nil {
			return 0, s.report(f.dir, err)
		}
	}
	if _, err := f.log.AppendFollower(batches); err != nil {
		return 0, s.report(f.dir, err)
	}
	f.log.SetHighWatermark(e.log.HighWatermark())
	if start := e.log.StartOffset(); start > f.log.StartOffset() && start <= f.log.HighWatermark() {
		return len(batches), s.report(f.dir, f.log.AdvanceStart(start))
	}
	return len(batches), nil
}

// align brings the bounds of the copy into those of the current log, which may have been truncated or lost
// its beginning, and returns where to copy from.
func (s *Set) align(e *entry, f *future) (protocol.Offset, error) {
	start, end := e.log.StartOffset(), e.log.EndOffset()
	switch {
	case f.log.EndOffset() > end:
		return end, s.report(f.dir, f.log.TruncateTo(end))
	case f.log.EndOffset() < start:
		return start, s.report(f.dir, f.log.TruncateFullyAndStartAt(start))
	}
	return f.log.EndOffset(), nil
}
