package log

import (
	"errors"
	"io"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// checkTorn decides what the bad batch is that the scan of segment i ended at: the torn end of the log, to be
// cut, or damage, a *DamageError. It is damage if a whole batch stands anywhere behind it; unless, after a
// power cut, the bad batch lacks a page or its end: what is above the recovery point may be written back in
// any order, so what stands behind the hole was never promised to be there.
//
//	behind the bad batch          after a kill          after a power cut
//	nothing whole                 cut                   cut
//	whole batches                 damage                cut where a page or the end of the file is missing,
//	                                                    else damage
//	a batch out of order          damage                as above
//
// A kill cannot tear anything but the last write, so whole batches behind a bad one mean that bits have changed
// in records that were acknowledged. To cut there, as brokers do that trust the first bad CRC, is to lose them
// without a word; to refuse leaves them to a person, or to a replica that has them.
func (l *Log) checkTorn(i int, one *scanned, powerCut bool) error {
	list := *l.list.Load()
	s := list[i]
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	damage := &DamageError{Partition: l.partition, File: f.Name(), Position: one.size, Offset: one.end, Cause: one.bad}
	wrong, disordered := errors.AsType[*orderError](one.bad)
	here, later := disordered, false
	if !disordered {
		here, later, err = l.batchesBehind(i, f, one)
	}
	if err != nil || !here && !later {
		return err
	}
	if powerCut {
		size, lost := s.size.Load(), false
		if !here {
			lost, err = lostEnd(f, one, size)
		}
		if err == nil && !lost {
			lost, err = lostPage(f, one.size, size, int64(one.head.Size), one.end)
		}
		if err != nil || lost {
			return err
		}
	}
	if disordered {
		damage.Position, damage.Offset = wrong.at.position, wrong.at.expected
	}
	return damage
}

// lostEnd reports whether the bad batch reaches beyond the end of its segment, since the file is shorter than
// it was; not where only the length in its header is wrong, which its CRC does not cover.
func lostEnd(file io.ReaderAt, one *scanned, size int64) (bool, error) {
	if !errors.Is(one.bad, record.ErrShort) {
		return false, nil
	}
	if one.head.Size == 0 {
		return true, nil // not even a header is left
	}
	h := one.head
	h.Size = int(size - one.size)
	w := walk(file, one.size, size, scanBytes(size))
	w.pos = one.size
	err := w.checkCRC(&h)
	if err != nil && !isBadBatch(err) {
		return false, err
	}
	return err != nil, nil
}

// batchesBehind reports whether a whole batch stands behind the bad one in its segment, or else in a later
// one.
//
// The place that the bad header names is tried first, as it is the cheapest and mostly right; then every byte is a
// candidate (findBatch), which costs a pass over the rest of the log and happens only where it is damaged.
func (l *Log) batchesBehind(i int, f *openFile, one *scanned) (here, later bool, err error) {
	list := *l.list.Load()
	size := list[i].size.Load()
	if n := int64(one.head.Size); n > 0 && n < size-one.size {
		// The header may be right: then the next batch is where it says.
		w := walk(f, one.size+n, size, scanBytes(size))
		_, err := w.nextChecked(one.end)
		if err == nil || !isBadBatch(err) && !ended(err) {
			return err == nil, false, err
		}
	}
	at, err := findBatch(f, one.size+1, size, one.end)
	if err != nil || at >= 0 {
		return at >= 0, false, err
	}
	for _, next := range list[i+1:] {
		f, err := l.open(next)
		if err != nil {
			return false, false, err
		}
		at, err := findBatch(f, 0, next.size.Load(), max(one.end, next.base))
		f.release()
		if err != nil || at >= 0 {
			return false, at >= 0, err
		}
	}
	return false, false, nil
}

// cut ends the log behind the last good batch of segment i: later segments go, the highest first, so that
// what is left is a prefix wherever the power fails. The file is synced, or the bytes could come back under
// records that are appended next.
//
//	stopped after                   next start
//	some later segments went        what is left is a prefix with the same bad batch: it is cut again
//	the snapshots went              the same
//	the file was truncated          a log that ends well
func (l *Log) cut(i int, one *scanned) error {
	list := *l.list.Load()
	s := list[i]
	l.logger.Warn("cutting the torn end of a log", "partition", l.partition, "file", l.path(s.base, logSuffix),
		"position", one.size, "offset", one.end, "bytes", s.size.Load()-one.size, "later_segments", len(list)-i-1, "error", one.bad)
	for j := len(list) - 1; j > i; j-- {
		if err := l.removeSegmentFiles(list[j]); err != nil {
			return err
		}
	}
	for n := len(l.guarded.snapshots); n > 0 && l.guarded.snapshots[n-1] > one.end; n-- {
		if err := l.removeSnapshot(l.guarded.snapshots[n-1]); err != nil {
			return err
		}
	}
	return l.truncateFile(s, one.size)
}

// truncateFile cuts a segment's log file and syncs it.
func (l *Log) truncateFile(s *segment, size int64) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	if err := f.Truncate(size); err != nil {
		return err
	}
	s.size.Store(size)
	return syncFailed(f.Sync())
}

// removeSegmentFiles deletes a segment's files at once, and makes that durable before anything else goes.
func (l *Log) removeSegmentFiles(s *segment) error {
	s.gone.Store(true)
	l.files.drop(s)
	for _, suffix := range segmentSuffixes {
		if err := l.removeFile(fileName(s.base, suffix)); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.Dir())
}
