package logdir

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// watchInterval is how often broken logs and flush.ms are looked after; shorter where
// log.flush.scheduler.interval.ms is. A pass over 10,000 idle logs takes a fraction of a millisecond.
const watchInterval = time.Second

// watch finds logs that broke on their disk, and flushes those whose flush.ms has passed. A log that breaks
// refuses appends by itself at once; what waits for this look, at most a second, is the rest of its directory.
func (s *Set) watch(ctx context.Context) time.Duration {
	now := s.options.Now()
	for _, e := range s.entries(nil) {
		switch {
		case e.log == nil || ctx.Err() != nil:
		case e.log.Err() != nil:
			_ = s.report(e.dir, e.log.Err())
			s.wake.offline.poke()
		case e.log.RecoveryPoint() < e.log.EndOffset() && e.log.Config().FlushInterval != math.MaxInt64 && e.log.FlushDue(now):
			s.guard(e, "flush.ms", (*log.Log).Flush)
		}
	}
	return min(watchInterval, s.interval("log.flush.scheduler.interval.ms"))
}

const (
	// syncPass is how often logs with unsynced records are looked for.
	syncPass = 10 * time.Second
	// syncAge is how long records may stay unsynced before the background syncs them: about as long as the
	// kernel leaves dirty pages, so that there is little left to write.
	syncAge = 30 * time.Second
	// syncPause is left between two syncs, for the sake of those who wait for the same disk.
	syncPause = 50 * time.Millisecond
	// idleAge is how long a log keeps files open and indexes in memory without being used.
	idleAge = time.Minute
)

// rest is what the syncer knows of a log's use, for it alone.
type rest struct {
	end     protocol.Offset // the log end when it was last looked at
	resting bool
}

// syncer moves recovery points: it syncs logs in the background, one at a time and paced, so that the scan
// after a power cut is short also in a segment that takes long to fill. On the way it lets logs rest that
// nobody has written to for a while.
//
// Kafka leaves this to the kernel, and moves recovery points at a roll only: a scan after a power cut is then up to
// segment.bytes (1 GiB) of each partition. Replication does not depend on it, a start does.
type syncer struct {
	set   *Set
	since map[*log.Log]time.Time // since when a log has had unsynced records
	idled time.Time
}

// newSyncer makes the syncer of a Set.
func newSyncer(s *Set) *syncer {
	return &syncer{set: s, since: map[*log.Log]time.Time{}, idled: time.Now()}
}

// pass syncs the logs whose records have waited longest.
func (y *syncer) pass(ctx context.Context) time.Duration {
	now := time.Now()
	if now.Sub(y.idled) >= idleAge {
		y.idled = now
		y.letRest()
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for _, e := range y.due(now) {
		// One at a time, with a pause: a sync keeps the disk from those who wait for theirs.
		select {
		case <-ctx.Done():
			return syncPass
		case <-pause.C:
		}
		y.set.guard(e, "background sync", (*log.Log).Flush)
		delete(y.since, e.log)
		pause.Reset(syncPause)
	}
	return syncPass
}

// letRest gives back what idle logs hold.
func (y *syncer) letRest() {
	for _, e := range y.set.entries(nil) {
		if e.log == nil || e.log.Err() != nil {
			continue
		}
		end := e.log.EndOffset()
		if end == e.rest.end && !e.rest.resting {
			y.set.guard(e, "rest", func(l *log.Log) error { l.Rest(); return nil })
		}
		e.rest = rest{end, end == e.rest.end}
	}
	y.set.options.Files.CloseIdle()
}

// due lists the logs to sync, the oldest first.
func (y *syncer) due(now time.Time) []*entry {
	dirty := map[*log.Log]time.Time{}
	var due []*entry
	for _, e := range y.set.entries(nil) {
		if e.log == nil || e.log.Err() != nil || e.log.RecoveryPoint() >= e.log.EndOffset() || !y.set.verified(e.log) {
			continue
		}
		since, ok := y.since[e.log]
		if !ok {
			since = now
		}
		dirty[e.log] = since
		if now.Sub(since) >= syncAge {
			due = append(due, e)
		}
	}
	y.since = dirty
	slices.SortStableFunc(due, func(a, b *entry) int {
		return cmp.Compare(dirty[a.log].UnixNano(), dirty[b.log].UnixNano())
	})
	return due
}
