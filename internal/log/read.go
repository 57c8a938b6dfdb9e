package log

import (
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// Read finds the batches from the one that holds offset from on: at most maxBytes, and none that reaches
// limit (the high watermark, the last stable offset or, with a large number, the log end). The first batch
// may begin before from. With atLeastOne the first batch is given out whole even if it is larger than
// maxBytes. Where there is nothing to read the slice is empty; an offset outside of log start and log end is
// OFFSET_OUT_OF_RANGE. Nothing is read but the headers that are needed to find the range, and no lock is
// taken. A slice lies within one segment.
func (l *Log) Read(from protocol.Offset, maxBytes int, limit protocol.Offset, atLeastOne bool) (Slice, error) {
	for {
		v := l.view()
		s, err := l.readFrom(*v.list, from, maxBytes, limit, atLeastOne)
		if err == nil || !l.again(v, err) {
			return s, l.readError(err)
		}
	}
}

// readFrom looks through the segments from the one that may hold the offset on.
func (l *Log) readFrom(list segments, from protocol.Offset, maxBytes int, limit protocol.Offset, atLeastOne bool) (Slice, error) {
	if from < l.StartOffset() || from > l.EndOffset() {
		return Slice{}, protocol.Errorf(protocol.OffsetOutOfRange,
			"offset %d of %s is not between log start offset %d and log end offset %d", from, l.partition, l.StartOffset(), l.EndOffset())
	}
	if from >= limit {
		return Slice{}, nil
	}
	for i := list.floor(from); i < len(list); i++ {
		// BR-073: where compaction has emptied the rest of a segment, the next one has the answer.
		s, err := l.readSegment(list[i], from, maxBytes, limit, atLeastOne)
		if err != nil || s.pinned != nil || list[i].base >= limit {
			return s, l.readError(err)
		}
	}
	return Slice{}, nil
}

// readSegment finds the range in one segment. The slice is empty where no batch at or behind from is
// readable there.
//
//	size loaded ─▶ limit < end? ─▶ position(limit) ─▶ position(from) ─▶ fit to maxBytes
//
//	segment   | b1 | b2 | b3 | b4 | b5 |~~~~~ not published
//	                ▲ from in b2   ▲ limit in b5
//	slice          [b2   b3   b4]             the batch that holds limit stays out: it is not whole below it
//
// Nothing of the records is read: the caller sends the range of the file as it is (sendfile). The reference on the
// file goes to the slice; on every other way out it is released here.
func (l *Log) readSegment(s *segment, from protocol.Offset, maxBytes int, limit protocol.Offset, atLeastOne bool) (Slice, error) {
	size := s.size.Load() // before the log end, see publish: what it covers is not beyond that
	end := size
	f, err := l.open(s)
	if err != nil {
		return Slice{}, err
	}
	if limit < l.EndOffset() {
		if end, err = l.position(s, f, limit, size); err != nil {
			f.release()
			return Slice{}, err
		}
	}
	start, err := l.position(s, f, from, size)
	readable := end
	if err == nil && end-start > int64(maxBytes) {
		end, err = l.fit(s, f, start, end, int64(maxBytes), atLeastOne)
	}
	if err != nil || start >= end {
		f.release()
		return Slice{}, err
	}
	slice := Slice{File: f.File, Position: start, Length: int(end - start), pinned: f}
	if end < readable && limit <= zeroOffsets {
		slice.Zeros = zerosOfOffset
	}
	return slice, nil
}

// The offset that a batch begins with has this many bytes of zero in front as long as it is below zeroOffsets.
const (
	zerosOfOffset = 3
	zeroOffsets   = 1 << (64 - 8*zerosOfOffset)
)

// position is where the first batch begins whose last offset is at or behind offset; size where none does.
func (l *Log) position(s *segment, f *openFile, offset protocol.Offset, size int64) (int64, error) {
	relative := s.relative(offset)
	if relative <= 0 {
		return 0, nil
	}
	if relative > maxRelativeOffset {
		return size, nil
	}
	if p, ok := s.recent.Load().find(relative); ok {
		return min(p, size), nil
	}
	index, err := l.indexOf(s)
	if err != nil {
		return 0, err
	}
	if p, ok := index.begins(relative); ok {
		return min(p, size), nil
	}
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	w := walk(f, min(lookupOffset(index.all(), relative), size), size, buf[:])
	for {
		h, err := w.next()
		if ended(err) {
			return size, nil
		}
		if err != nil {
			return 0, l.damaged(s, &w, err)
		}
		if h.LastOffset >= offset {
			if h.BaseOffset == offset {
				index.learn(relative, w.pos)
			}
			return w.pos, nil
		}
	}
}

// fit is the greatest end of a batch between start and end that keeps the range within maxBytes; with
// atLeastOne it is the end of the first batch where nothing fits.
//
// The common case is answered from memory: an index entry, or the remembered end of a batch, that lies between
// start and limit, at the cost of up to one index interval less than maxBytes. Headers are walked only where the
// first batches are large.
func (l *Log) fit(s *segment, f *openFile, start, end, maxBytes int64, atLeastOne bool) (int64, error) {
	limit := start + max(0, maxBytes)
	entries, err := l.entriesOf(s)
	if err != nil {
		return 0, err
	}
	best := max(lookupPosition(entries, limit), s.recent.Load().floor(limit))
	if best > start {
		return min(best, end), nil
	}
	if maxBytes < record.HeaderSize && !atLeastOne {
		return start, nil
	}
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	w := walk(f, start, end, buf[:])
	for {
		_, err := w.next()
		switch {
		case ended(err):
			return end, nil
		case err != nil:
			return 0, l.damaged(s, &w, err)
		case w.to > limit && w.pos > start:
			return w.pos, nil
		case w.to > limit && atLeastOne:
			return w.to, nil
		case w.to > limit:
			return start, nil
		}
	}
}
