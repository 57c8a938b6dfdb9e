package log

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// Found is a record that was looked up by time.
type Found struct {
	// Offset is the record's, NoOffset where there is none.
	Offset protocol.Offset
	// Timestamp is its timestamp in ms, or -1.
	Timestamp int64
	// Epoch is the leader epoch of its batch, or NoLeaderEpoch.
	Epoch protocol.LeaderEpoch
}

// notFound is the answer where no record matches: offset and timestamp -1 (BR-183).
var notFound = Found{Offset: protocol.NoOffset, Timestamp: record.NoTimestamp, Epoch: protocol.NoLeaderEpoch}

// OffsetForTime finds the first record whose timestamp is at or above the given time in ms, at or behind the
// log start. found is false where there is none.
//
// Timestamps are the producer's and need not rise, so it is the first such record in the order of offsets, and
// later ones may be older. It costs a look at the largest timestamp of each segment, which is remembered, a binary
// search in one time index, and a walk over headers of about an index interval.
func (l *Log) OffsetForTime(timestamp int64) (_ Found, found bool, err error) {
	for {
		v := l.view()
		f, ok, err := l.searchTime(*v.list, timestamp)
		if err == nil || !l.again(v, err) {
			return f, ok, l.readError(err)
		}
	}
}

// searchTime looks at the segments whose largest timestamp is late enough, from the log start on.
func (l *Log) searchTime(list segments, timestamp int64) (Found, bool, error) {
	start := l.StartOffset()
	for _, s := range list[list.floor(start):] {
		largest, err := l.largestTimestamp(s)
		if err != nil {
			return notFound, false, err
		}
		if largest < timestamp {
			continue
		}
		f, ok, err := l.searchSegment(s, start, timestamp, func(ts int64) bool { return ts >= timestamp })
		if err != nil || ok {
			return f, ok, l.readError(err)
		}
	}
	return notFound, false, nil
}

// MaxTimestamp finds the record with the largest timestamp, the first of those that have it. Where no record
// has a timestamp, Offset is NoOffset.
func (l *Log) MaxTimestamp() (Found, error) {
	for {
		v := l.view()
		f, err := l.searchMax(*v.list)
		if err == nil || !l.again(v, err) {
			return f, l.readError(err)
		}
	}
}

// searchMax looks into the first segment with the largest timestamp.
func (l *Log) searchMax(list segments) (Found, error) {
	start := l.StartOffset()
	best, bestTime := -1, record.NoTimestamp
	for i, s := range list {
		largest, err := l.largestTimestamp(s)
		if err != nil {
			return notFound, err
		}
		if largest > bestTime {
			best, bestTime = i, largest
		}
	}
	if best < 0 {
		return notFound, nil
	}
	f, _, err := l.searchSegment(list[best], start, bestTime, func(ts int64) bool { return ts == bestTime })
	return f, err
}

// largestTimestamp is the largest timestamp in a segment, or NoTimestamp. A closed segment's is looked up
// once, in its time index.
func (l *Log) largestTimestamp(s *segment) (int64, error) {
	if at := s.maxTime.Load(); at != timeUnknown {
		return at, nil
	}
	last, err := l.withTimeFile(s, timeFile.last)
	if err != nil {
		return 0, err
	}
	s.maxTime.CompareAndSwap(timeUnknown, last.timestamp)
	return last.timestamp, nil
}

// withTimeFile asks a segment's time index something. Where the file is missing, it is made first.
//
// The file is opened for the one question and closed again. An entry that is to be answered with is compared with its
// batch first: the binary search itself trusts the entries that it only passes.
func (l *Log) withTimeFile(s *segment, ask func(timeFile) (timeEntry, error)) (timeEntry, error) {
	path := l.path(s.base, timeIndexSuffix)
	file, err := l.openSide(s, timeIndexSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return l.timeFromLog(s, ask)
	}
	if err != nil {
		return noTimeEntry, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return noTimeEntry, err
	}
	t, err := openTimeFile(file, size)
	if err != nil {
		return noTimeEntry, fmt.Errorf("%s: %w", path, err)
	}
	e, err := ask(t)
	if err != nil {
		return e, err
	}
	ok, err := l.timeMatches(s, e, t.n)
	if err == nil && !ok {
		l.logger.Warn("rebuilding the indexes of a segment", "file", path)
		return l.timeFromLog(s, ask)
	}
	return e, err
}

// timeMatches looks at the batch that an entry of the time index names, as no checksum protects the index. An
// index without entries must belong to batches without timestamps.
func (l *Log) timeMatches(s *segment, e timeEntry, entries int) (bool, error) {
	size := s.size.Load()
	if size == 0 || e == noTimeEntry && entries > 0 || s.active.Load() && entries == 0 {
		return true, nil
	}
	f, err := l.open(s)
	if err != nil {
		return false, err
	}
	defer f.release()
	if entries == 0 {
		e = timeEntry{timestamp: record.NoTimestamp}
	}
	index, err := l.entriesOf(s)
	if err != nil {
		return false, err
	}
	return l.isTime(s, f, index, e)
}

// isTime reports whether the batch at an entry's offset has the entry's timestamp.
func (l *Log) isTime(s *segment, f *openFile, index []indexEntry, e timeEntry) (bool, error) {
	if e.relative < 0 {
		return false, nil
	}
	size, offset := s.size.Load(), s.base+protocol.Offset(e.relative)
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	w := walk(f, min(lookupOffset(index, int64(e.relative)), size), size, buf[:])
	for {
		h, err := w.next()
		if ended(err) || isBadBatch(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if h.LastOffset >= offset {
			return h.BaseOffset <= offset && h.MaxTimestamp == e.timestamp || e.timestamp == record.NoTimestamp && h.MaxTimestamp < 0, nil
		}
	}
}

// timeFromLog answers from the batches, where the file of the time index is missing or wrong: the active
// segment may have none yet.
func (l *Log) timeFromLog(s *segment, ask func(timeFile) (timeEntry, error)) (timeEntry, error) {
	f, err := l.open(s)
	if err != nil {
		return noTimeEntry, err
	}
	defer f.release()
	b, err := l.rebuild(s, f)
	if err != nil {
		return noTimeEntry, err
	}
	if err := l.keepRebuilt(s, &b); err != nil {
		return noTimeEntry, err
	}
	return ask(timeFile{file: bytesAt(appendTimeEntries(nil, b.times)), n: len(b.times)})
}

// bytesAt reads from memory.
type bytesAt []byte

// ReadAt reads as from a file; time indexes are never read behind their end.
func (b bytesAt) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, errors.New("read behind the end of a time index in memory")
	}
	return copy(p, b[off:]), nil
}

// searchSegment finds the first record at or behind start whose timestamp matches, in the first batch whose
// largest timestamp does.
//
// entry is the last one with a smaller timestamp, so the record is behind its offset; the start offset may be farther.
// From there the batches are walked by their largest timestamps, and only one that has it is decompressed.
func (l *Log) searchSegment(s *segment, start protocol.Offset, timestamp int64, match func(int64) bool) (Found, bool, error) {
	entry, err := l.withTimeFile(s, func(t timeFile) (timeEntry, error) { return t.floor(timestamp) })
	if err != nil {
		return notFound, false, err
	}
	size := s.size.Load()
	f, err := l.open(s)
	if err != nil {
		return notFound, false, err
	}
	defer f.release()
	entries, err := l.entriesOf(s)
	if err != nil {
		return notFound, false, err
	}
	from := lookupOffset(entries, max(int64(entry.relative), s.relative(start)))
	w := walk(f, min(from, size), size, scanBytes(size-from))
	for {
		h, err := w.next()
		if ended(err) {
			return notFound, false, nil
		}
		if err != nil {
			return notFound, false, l.damaged(s, &w, err)
		}
		if h.MaxTimestamp < timestamp || h.LastOffset < start {
			continue
		}
		found, ok, err := l.searchBatch(s, &w, &h, start, match)
		if err != nil || ok {
			return found, ok, err
		}
	}
}

// searchBatch looks at the records of the batch at w.pos.
func (l *Log) searchBatch(s *segment, w *walker, h *record.Header, start protocol.Offset, match func(int64) bool) (Found, bool, error) {
	b := make([]byte, h.Size)
	if err := readFull(w.file, b, w.pos); err != nil {
		return notFound, false, err
	}
	for r, err := range (record.Entry{Header: *h, Bytes: b}).Records(nil) {
		if err != nil {
			return notFound, false, l.damaged(s, w, err)
		}
		if r.Offset >= start && match(r.Timestamp) {
			return Found{Offset: r.Offset, Timestamp: r.Timestamp, Epoch: h.LeaderEpoch}, true, nil
		}
	}
	return notFound, false, nil
}
