package log

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// segment is one file of batches and its indexes. What readers use is atomic; the rest is guarded by the
// append lock.
//
//	          install            roll, install                retention, truncation, swap, close
//	(created) ───────▶ active ──────────────────▶ closed ─────────────────────────────────────▶ gone
//	                          ◀──────────────────
//	                      truncation: reactivate
//
//	           size     index                 file
//	active     grows    in memory, grows      open as long as it is used
//	closed     fixed    loaded when needed    the same
//	gone       fixed    dropped               kept open by slices alone
//
// A segment that is gone never comes back: a new one with the same base is another value, so a pointer that was
// loaded before cannot be mistaken for it.
type segment struct {
	base protocol.Offset

	// size is how much of the file is published: whole batches, never more than was written.
	size atomic.Int64
	// file is the open file, or nil; see FileCache.
	file atomic.Pointer[openFile]
	// index is the offset index in memory, or nil; the active segment's has entries that are not in its
	// file yet, so it is never dropped.
	index atomic.Pointer[offsetIndex]
	// recent is set once the segment has been appended to.
	recent atomic.Pointer[recent]
	// active is true for the last segment of the log.
	active atomic.Bool
	// gone is set before the segment's files are renamed or removed: they are not to be opened any more.
	gone atomic.Bool
	// maxTime is the largest timestamp, timeUnknown before it is looked up, NoTimestamp where there is none.
	maxTime atomic.Int64
	// suspect is set where a reader has found the active segment's index files wrong and made an index in
	// memory: the next append rebuilds the files.
	suspect atomic.Bool
	// aborted counts the entries in the transaction index.
	aborted atomic.Int32

	// maxTimeOffset is the last offset of the first batch that has maxTime.
	maxTimeOffset protocol.Offset
	// firstTime is the maximum timestamp of the first batch, timeUnknown before it is read.
	firstTime int64
	// created is when the segment was made, or opened: what a time roll counts from without timestamps.
	created time.Time
}

// timeUnknown marks timestamps of a segment that have not been read from its files.
const timeUnknown = math.MinInt64

// newSegment is a segment of size bytes, of whose contents nothing is known yet.
func newSegment(base protocol.Offset, size int64, created time.Time) *segment {
	s := &segment{base: base, firstTime: timeUnknown, created: created}
	s.size.Store(size)
	s.maxTime.Store(timeUnknown)
	return s
}

// relative is offset less the base offset.
func (s *segment) relative(offset protocol.Offset) int64 { return int64(offset - s.base) }

// dropIndex lets the index in memory go; it is read again when needed.
func (s *segment) dropIndex() {
	if !s.active.Load() {
		s.index.Store(nil)
	}
}

// segments is the list of a log's segments, rising, never empty and never changed: a new list replaces it.
type segments []*segment

// floor is the place of the segment that may hold offset: the last one whose base is not above it, or 0.
//
// Below the first segment it is the first, so callers compare with the log start before they use it.
func (list segments) floor(offset protocol.Offset) int {
	low, high := 0, len(list)
	for low < high {
		if mid := (low + high) / 2; list[mid].base <= offset {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return max(0, low-1)
}

// last is the active segment.
func (list segments) last() *segment { return list[len(list)-1] }

// SegmentInfo describes a segment.
type SegmentInfo struct {
	// BaseOffset is the first offset that the segment can hold.
	BaseOffset protocol.Offset
	// Size is the length of its log file in bytes.
	Size int64
	// Active is true for the segment that is appended to.
	Active bool
}
