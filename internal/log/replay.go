package log

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// replay makes the producer state of the log end: it loads the newest snapshot that can be trusted and goes
// through the batches behind it. Transaction indexes are built anew from where recovery checked the batches,
// or from the snapshot, which is written after their entries.
//
//	           snapshot          checked                            end
//	           ├─────────────────┼──────────────────────────────────┤
//	producers  │ apply every batch of a producer ...                │
//	txnindex   │ entries are there │ entries are made anew          │
//
// Only headers are read, and the one record of each control batch. A snapshot is taken at each roll, so as a
// rule this is at most one segment and what is above the recovery point, however long the log is.
func (l *Log) replay(r *recovery) error {
	limit := min(r.trusted, r.end)
	if r.settled < limit {
		// A snapshot does not say which of its transactions are decided by markers that may still be lost.
		markers, err := l.hasMarkers(r.settled, limit)
		if err != nil {
			return err
		}
		if markers {
			limit = r.settled
		}
	}
	from, err := l.loadSnapshot(limit)
	if err != nil {
		return err
	}
	rebuild := max(from, r.checked)
	list := *l.list.Load()
	for _, s := range list[list.floor(rebuild):] {
		if s.aborted.Load() == 0 {
			continue
		}
		if err := l.truncateAborted(s, rebuild); err != nil {
			return err
		}
	}
	for i := list.floor(from); i < len(list); i++ {
		if base := list[i].base; base > rebuild {
			l.guarded.producers.end = base
			if err := l.writeSnapshot(base, false); err != nil {
				return err
			}
		}
		if err := l.replaySegment(list[i], from, rebuild); err != nil {
			return err
		}
	}
	l.guarded.producers.end = r.end
	return nil
}

// loadSnapshot loads the newest whole snapshot up to limit and returns its offset; without one the state is
// empty at the first segment. Snapshots that cannot be true are deleted. One below the log start counts, so
// that DeleteRecords makes no producer forgotten before its segment goes.
//
//	snapshots   100     4711 (segment)   4900    5300
//	                                       ▲ taken   ▲ above the limit: deleted
//
// One above the limit describes records that were cut or may be damaged, and would be believed by its CRC once the
// log has grown past it again. Where the best one is damaged the next lower one only costs a longer replay.
func (l *Log) loadSnapshot(limit protocol.Offset) (protocol.Offset, error) {
	start := (*l.list.Load())[0].base
	for _, offset := range slices.Clone(l.guarded.snapshots) {
		if offset > limit || offset < start {
			if err := l.removeSnapshot(offset); err != nil {
				return 0, err
			}
		}
	}
	for n := len(l.guarded.snapshots); n > 0; n = len(l.guarded.snapshots) {
		offset := l.guarded.snapshots[n-1]
		path := l.path(offset, snapshotSuffix)
		b, err := readFile(l.fs, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		byID, err := decodeSnapshot(b)
		if err == nil {
			l.guarded.producers.reset(offset, byID)
			if l.expiration > 0 {
				l.guarded.producers.expire(l.now().Add(-l.expiration).UnixMilli())
			}
			return offset, nil
		}
		l.logger.Warn("dropping a damaged producer snapshot", "file", path, "error", err)
		if err := l.removeSnapshot(offset); err != nil {
			return 0, err
		}
	}
	l.guarded.producers.reset(start, nil)
	return start, nil
}

// hasMarkers reports whether there are control batches in a range of offsets.
//
// It reads headers between the high watermark and the limit, which is little: what is not replicated yet.
func (l *Log) hasMarkers(from, to protocol.Offset) (bool, error) {
	found := false
	list := *l.list.Load()
	for i := list.floor(from); i < len(list) && list[i].base < to && !found; i++ {
		err := l.eachHeader(list[i], from, func(_ *walker, h *record.Header) error {
			found = found || h.Control() && h.BaseOffset < to
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return found, nil
}

// eachHeader shows the headers of the batches of a segment that do not end before an offset.
func (l *Log) eachHeader(s *segment, from protocol.Offset, visit func(*walker, *record.Header) error) error {
	size := s.size.Load()
	if size == 0 || from >= l.EndOffset() {
		return nil
	}
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	var position int64
	if from > s.base {
		entries, err := l.entriesOf(s)
		if err != nil {
			return err
		}
		position = lookupOffset(entries, s.relative(from))
	}
	w := walk(f, position, size, scanBytes(size-position))
	for {
		h, err := w.next()
		if ended(err) {
			return nil
		}
		if err != nil {
			return l.damaged(s, &w, err)
		}
		if h.LastOffset < from {
			continue
		}
		if err := visit(&w, &h); err != nil {
			return err
		}
	}
}

// replaySegment takes the batches of s from an offset on into producer state, and from rebuild on into the
// transaction index.
func (l *Log) replaySegment(s *segment, from, rebuild protocol.Offset) error {
	return l.eachHeader(s, from, func(w *walker, h *record.Header) error {
		if h.ProducerID < 0 {
			return nil
		}
		return l.replayBatch(s, w, h, rebuild)
	})
}

// replayBatch takes in one batch of a producer.
func (l *Log) replayBatch(s *segment, w *walker, h *record.Header, rebuild protocol.Offset) error {
	facts := factsOf(h)
	if facts.control {
		b, err := w.batchAt(h)
		if err == nil {
			facts.marker, facts.hasMarker, err = readMarker(b)
		}
		if err != nil {
			return l.damaged(s, w, err)
		}
	}
	done, wasAborted := l.guarded.producers.apply(&facts)
	if !wasAborted || h.BaseOffset < rebuild {
		return nil
	}
	return l.appendAborted(s, done)
}

// appendAborted adds an entry to a segment's transaction index.
//
// It is not synced: entries above the recovery point are made anew by recovery. The count rises after the write, and
// readers look at no more entries than it says.
func (l *Log) appendAborted(s *segment, a aborted) error {
	n := s.aborted.Load()
	l.guarded.namesDirty = l.guarded.namesDirty || n == 0
	if err := l.writeAt(s, txnIndexSuffix, appendAborted(nil, a), int64(n)*abortedSize, false); err != nil {
		return err
	}
	s.aborted.Store(n + 1)
	return nil
}

// truncateAborted drops the entries of a transaction index whose marker is at end or behind it, and all from
// the first on that is damaged.
//
// The entries are in the order of their markers, so what is cut is the file's end.
func (l *Log) truncateAborted(s *segment, end protocol.Offset) error {
	path := l.path(s.base, txnIndexSuffix)
	b, err := readFile(l.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		s.aborted.Store(0)
		return nil
	}
	if err != nil {
		return err
	}
	keep := 0
	for ; len(b)-keep >= abortedSize; keep += abortedSize {
		if entry := b[keep:]; !validAborted(entry, s.base) || parseAborted(entry).last >= end {
			break
		}
	}
	s.aborted.Store(int32(keep / abortedSize))
	switch keep {
	case len(b):
		return nil
	case 0:
		return l.removeFile(fileName(s.base, txnIndexSuffix))
	}
	if err := l.writeAt(s, txnIndexSuffix, b[:keep], 0, true); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
