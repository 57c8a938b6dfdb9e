package log

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// AdvanceStart moves the log start offset up, as DeleteRecords does: offsets before it cannot be read any
// more, and the next Retain deletes the segments that lie before it. Beyond the high watermark it is
// OFFSET_OUT_OF_RANGE; where the log begins there or later already, nothing changes. The new start is not
// durable until the directory's log-start-offset-checkpoint is written.
func (l *Log) AdvanceStart(offset protocol.Offset) error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if offset > l.HighWatermark() {
		return protocol.Errorf(protocol.OffsetOutOfRange,
			"cannot move the log start of %s to %d, beyond the high watermark %d", l.partition, offset, l.HighWatermark())
	}
	l.advanceStart(offset)
	return nil
}

// advanceStart moves the log start; leader epochs before it go, with the next write of their file.
func (l *Log) advanceStart(offset protocol.Offset) {
	if offset <= l.StartOffset() {
		return
	}
	l.start.Store(int64(offset))
	l.guarded.changed = true
	if list, changed := l.epochs.Load().truncateStart(offset); changed {
		l.epochs.Store(&list)
		l.guarded.epochsDirty = true
	}
}

// Retain deletes the oldest segments that lie before the log start, make the log larger than
// retention.bytes, or hold no record younger than retention.ms at now; in this order, so that a second run
// finds nothing more (BR-133). The latter two need the cleanup policy "delete". Nothing at or behind the
// high watermark goes, whatever was consumed; where all segments go, a new one is rolled first. Files stay
// under ".deleted" for file.delete.delay.ms; Retain also removes those whose time has come. The caller's
// now must not jump with the wall clock.
//
// Rules are tried on the oldest segment only, and stop at the first that stays: retention takes a prefix, also
// where a later segment would be old enough. So a segment with a record from the future holds those behind it,
// which message.timestamp.after.max.ms is there to prevent.
func (l *Log) Retain(now time.Time) (deleted int, bytes int64, err error) {
	if err := l.lock(); err != nil {
		return 0, 0, err
	}
	defer l.unlock()
	c := l.config.Load()
	rules := []func(s, next *segment) (bool, error){
		func(_, next *segment) (bool, error) { return next != nil && next.base <= l.StartOffset(), nil },
	}
	if c.Delete && c.RetentionBytes >= 0 {
		rules = append(rules, l.larger(c.RetentionBytes))
	}
	if c.Delete && c.RetentionAge >= 0 {
		rules = append(rules, func(s, _ *segment) (bool, error) {
			newest, err := l.newest(s)
			return now.Sub(newest) > c.RetentionAge, err
		})
	}
	for _, rule := range rules {
		n, freed, err := l.deleteWhile(now, rule)
		deleted, bytes = deleted+n, bytes+freed
		if err != nil {
			return deleted, bytes, err
		}
	}
	return deleted, bytes, l.removeDue(now)
}

// larger is the rule that the log without the segments so far would still be as large as most.
//
// It is asked for each segment in turn and keeps the excess between the calls. The active segment counts in the size,
// and goes only where the rest is not enough, as in Kafka.
func (l *Log) larger(most int64) func(s, next *segment) (bool, error) {
	excess := int64(-1)
	return func(s, _ *segment) (bool, error) {
		if excess < 0 {
			excess = l.Size() - most // only now: another rule may have deleted
		}
		excess -= s.size.Load()
		return excess >= 0, nil
	}
}

// newest is the time of the youngest record of a segment, or when its file was last written, where records
// have no time.
//
// A timestamp of 0 is one (1970); what is below is none. Messages of format 0 have none, so their files' times count.
func (l *Log) newest(s *segment) (time.Time, error) {
	largest, err := l.largestTimestamp(s)
	if err != nil {
		return time.Time{}, l.ioError("read", err)
	}
	if largest >= 0 {
		return time.UnixMilli(largest), nil
	}
	info, err := l.fs.Stat(l.path(s.base, logSuffix))
	if err != nil {
		return time.Time{}, l.ioError("read", err)
	}
	return info.ModTime(), nil
}

// deleteWhile deletes segments from the oldest on while rule says so.
//
// It stops before a segment that holds anything at or above the high watermark, before the empty active one, and where
// a rule says no. An error of a rule deletes nothing, not even what came before it.
func (l *Log) deleteWhile(now time.Time, rule func(s, next *segment) (bool, error)) (deleted int, bytes int64, err error) {
	list := *l.list.Load()
	for deleted < len(list) {
		s, upper := list[deleted], l.EndOffset()
		var next *segment
		if deleted+1 < len(list) {
			next = list[deleted+1]
			upper = next.base
		}
		if l.HighWatermark() < upper || next == nil && s.size.Load() == 0 {
			break
		}
		matches, err := rule(s, next)
		if err != nil {
			return 0, 0, err
		}
		if !matches {
			break
		}
		deleted++
		bytes += s.size.Load()
	}
	if deleted == 0 {
		return 0, 0, nil
	}
	if deleted == len(list) {
		if err := l.roll(l.EndOffset()); err != nil {
			return 0, 0, err
		}
	}
	return deleted, bytes, l.deleteOldest(deleted, now)
}

// deleteOldest takes the first n segments out of the log: start offset and list first, then the files, the
// lowest first and durably before the next, so that what is left is a suffix wherever the power fails.
//
//	stopped after                        next start
//	the list changed (memory only)       the segments are there again, below the log start of the checkpoint or
//	                                     deleted by the next Retain
//	some log files ".deleted"            these go, the rest is a log that begins later
//	all log files, some indexes          indexes without a segment are removed by collect
func (l *Log) deleteOldest(n int, now time.Time) error {
	list := *l.list.Load()
	gone, rest := list[:n], list[n:len(list):len(list)]
	l.advanceStart(rest[0].base)
	l.list.Store(&rest)
	l.guarded.changed = true
	if err := l.markSegments(gone, now, true); err != nil {
		return l.ioError("delete", err)
	}
	for len(l.guarded.snapshots) > 0 && l.guarded.snapshots[0] < rest[0].base {
		if err := l.markSnapshot(l.guarded.snapshots[0], now); err != nil {
			return l.ioError("delete", err)
		}
	}
	if l.guarded.epochsDirty {
		return l.writeEpochs()
	}
	return nil
}

// pendingDelete is a file that has its ".deleted" suffix and goes at a time.
// It is in memory only: what a stop leaves under ".deleted" is removed by the next Open at once.
type pendingDelete struct {
	name string
	at   time.Time
}

// markSegments gives the files of segments that are not in the list any more the suffix of deleted ones, and
// notes when they go. In order, the log files go first, one by one and durably: a segment that came back
// without its indexes would show aborted records.
func (l *Log) markSegments(gone segments, now time.Time, inOrder bool) error {
	for _, s := range gone {
		s.gone.Store(true)
		l.files.drop(s)
		if err := l.markFile(fileName(s.base, logSuffix), now); err != nil {
			return err
		}
		if !inOrder {
			continue
		}
		if err := l.fs.SyncDir(l.Dir()); err != nil {
			return err
		}
	}
	for _, s := range gone {
		for _, suffix := range segmentSuffixes[1:] {
			if err := l.markFile(fileName(s.base, suffix), now); err != nil {
				return err
			}
		}
	}
	return nil
}

// markSnapshot does the same with a snapshot.
func (l *Log) markSnapshot(offset protocol.Offset, now time.Time) error {
	g := &l.guarded
	i, found := slices.BinarySearch(g.snapshots, offset)
	if !found {
		return nil
	}
	g.snapshots = slices.Delete(g.snapshots, i, i+1)
	return l.markFile(fileName(offset, snapshotSuffix), now)
}

// markFile renames a file that is deleted and notes when it goes; a missing one has gone already.
func (l *Log) markFile(name string, now time.Time) error {
	path := filepath.Join(l.Dir(), name)
	err := l.fs.Rename(path, path+deletedSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l.guarded.pending = append(l.guarded.pending, pendingDelete{
		name: name + deletedSuffix, at: now.Add(l.config.Load().FileDeleteDelay),
	})
	return nil
}

// RemoveDue removes the files whose file.delete.delay.ms is over at now, and returns when the next ones are
// due; false where none are left.
func (l *Log) RemoveDue(now time.Time) (next time.Time, more bool, err error) {
	if err := l.lock(); err != nil {
		return time.Time{}, false, err
	}
	defer l.unlock()
	if err := l.removeDue(now); err != nil {
		return time.Time{}, false, err
	}
	if len(l.guarded.pending) == 0 {
		return time.Time{}, false, nil
	}
	return l.guarded.pending[0].at, true, nil
}

// removeDue removes pending files, which are in the order of their times as long as the delay is not
// changed; then some go a little late.
func (l *Log) removeDue(now time.Time) error {
	pending := l.guarded.pending
	for len(pending) > 0 && !pending[0].at.After(now) {
		if err := l.removeFile(pending[0].name); err != nil {
			return l.ioError("delete", err)
		}
		pending = pending[1:]
	}
	l.guarded.pending = pending
	if len(pending) == 0 {
		l.guarded.pending = nil
	}
	return nil
}
