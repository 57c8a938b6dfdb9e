package log

// Bounds of the space that is reserved ahead of the writes to a segment, in bytes.
const (
	reserveMin = 1 << 20
	reserveMax = 64 << 20
)

// reserve makes the file system set space aside behind the segment's end before n bytes are written there,
// without changing its size: writes then cost less, and far less at their worst. How much grows with what
// the log has taken since it was last at rest, so that a quiet partition reserves nothing; preallocate asks
// for the whole segment at once. That it fails matters to nobody but the write that follows.
func (l *Log) reserve(f *openFile, s *segment, n int64) {
	t, c := &l.guarded.tail, l.config.Load()
	l.guarded.busy += n
	position := s.size.Load()
	if position+n <= t.reserved || l.guarded.busy < smallSegment && !c.Preallocate {
		return
	}
	ahead := min(max(l.guarded.busy/2, reserveMin), reserveMax)
	if c.Preallocate {
		ahead = int64(c.SegmentBytes)
	}
	end := max(min(position+ahead, int64(c.SegmentBytes)), position+n)
	if err := f.Preallocate(position, end-position); err != nil {
		end = position + ahead // not again before that
	}
	t.reserved = end
}

// giveBack frees what is reserved behind the end of a segment, and cuts what a failed write left there.
//
// The truncation is to the size that the file has, which frees blocks behind it; a file that was killed with space
// reserved is given one by its next roll, close or Rest.
func (l *Log) giveBack(f *openFile, s *segment) error {
	t := &l.guarded.tail
	if !t.garbage && t.reserved <= s.size.Load() {
		return nil
	}
	if err := f.Truncate(s.size.Load()); err != nil {
		return err
	}
	t.garbage, t.reserved = false, 0
	return nil
}
