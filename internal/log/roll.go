package log

import (
	"hash/fnv"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// openFlags open a segment's files for reading and writing.
const openFlags = os.O_RDWR

const (
	// smallSegment is the size up to which a segment is its log file alone: it gets index files when it grows beyond, is
	// closed or at rest, and reserved space where the log has taken as much since it was at rest. Making files costs more
	// than writing as much as this, most where many were deleted just before, as ext4 then looks for an inode that it has
	// not given out lately.
	smallSegment = 4 << 20
	// indexWriteBytes is how much log gathers before the entries for it go to the index files. That, or a small segment, is
	// what a kill leaves to be checked again.
	indexWriteBytes = 1 << 20
)

// makeRoom rolls to a new segment where the active one should not take size more bytes up to offset last.
//
//	full      segment.bytes would be exceeded
//	overdue   segment.ms since the first batch, by the timestamps of batches
//	index     segment.index.bytes would be exceeded; of the time index one entry is kept for the end
//	offsets   the last offset would be more than 2^31-1 behind the base: entries have 31 bits for it
//
// A batch larger than segment.bytes was refused before. An empty segment takes anything but such an offset.
func (l *Log) makeRoom(size int64, first, last protocol.Offset, timestamp int64) error {
	c := l.config.Load()
	s := l.active()
	if err := l.prepareTail(s); err != nil {
		return err
	}
	overdue, err := l.overdue(s, timestamp)
	if err != nil {
		return err
	}
	held, t := s.size.Load(), &l.guarded.tail
	full := held > int64(c.SegmentBytes)-size ||
		held > 0 && overdue ||
		int64(s.index.Load().n.Load()) >= int64(c.IndexBytes/indexEntrySize) ||
		int64(t.timesWritten)+int64(len(t.times)) >= int64(c.IndexBytes/timeEntrySize)-1 ||
		s.relative(last) > maxRelativeOffset
	// BR-131: an empty segment at the same offset would only be replaced by itself.
	if !full || held == 0 && (first == s.base || s.relative(last) <= maxRelativeOffset) {
		return nil
	}
	if err := l.roll(first); err != nil {
		return err
	}
	return l.prepareTail(l.active())
}

// overdue reports whether segment.ms, less the segment's jitter, lies between its first batch and timestamp,
// or between its creation and now where the first batch has no timestamp.
//
// It is asked with each append, so a segment without traffic is not rolled however old it is; retention rolls it, if
// nothing but the active segment is left and all of it is to go.
func (l *Log) overdue(s *segment, timestamp int64) (bool, error) {
	if s.size.Load() == 0 {
		return false, nil
	}
	if s.firstTime == timeUnknown {
		if err := l.loadFirstTime(s); err != nil {
			return false, err
		}
	}
	c := l.config.Load()
	age := c.SegmentAge
	if c.Compact && c.MaxCompactionLag > 0 {
		age = min(age, c.MaxCompactionLag) // only closed segments are compacted
	}
	limit := age - segmentJitter(l.partition, s.base, age, c.SegmentJitter)
	if s.firstTime >= 0 {
		return timestamp-s.firstTime > limit.Milliseconds(), nil
	}
	return l.now().Sub(s.created) > limit, nil
}

// segmentJitter is what a segment rolls earlier than segment.ms, so that not all partitions roll at once: a
// number below jitter and age that is fixed for partition and base offset.
func segmentJitter(p protocol.TopicPartition, base protocol.Offset, age, jitter time.Duration) time.Duration {
	most := min(age, jitter)
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	for _, part := range [...]string{p.String(), fileName(base, "")} {
		_, _ = h.Write([]byte(part)) // a hash does not fail
	}
	return time.Duration(h.Sum64() % uint64(most))
}

// Roll begins a new segment at the log end, unless the active one is empty.
func (l *Log) Roll() error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if s := l.active(); s.size.Load() == 0 && s.base == l.EndOffset() {
		return nil
	}
	return l.roll(l.EndOffset())
}

// roll closes the active segment and begins a new one at base, which is the log end, or behind it where a
// follower skips offsets that the leader compacted away. The directory is synced here only if the name of
// the segment before was not yet: otherwise a power cut could leave a hole between two segments. What a hole
// at the end of a segment is, lost records or compacted ones, recovery can tell only where nothing is
// compacted; so on compacted topics the old segment is synced.
//
//	step                     a stop right behind it leaves
//	index files finished     a closed segment that is still the active one: recovery opens it again
//	snapshot at base         a snapshot at the log end, which counts like any other
//	new log file             an empty active segment; after a power cut perhaps none, which is the same log
//
// The list is published last, so readers know the new segment only when its file is there.
func (l *Log) roll(base protocol.Offset) error {
	old := l.active()
	if err := l.finishSegment(old); err != nil {
		return l.ioError("roll", err)
	}
	if c := l.config.Load(); c.Compact || !c.Delete {
		if err := l.syncLog(old); err != nil {
			return l.ioError("roll", err)
		}
	}
	l.guarded.producers.end = base
	if err := l.writeSnapshot(base, false); err != nil {
		return l.ioError("roll", err)
	}
	if l.guarded.namesDirty {
		if err := l.fs.SyncDir(l.Dir()); err != nil {
			return l.ioError("roll", err)
		}
	}
	fresh, err := l.createSegment(base)
	if err != nil {
		return l.ioError("roll", err)
	}
	list := *l.list.Load()
	if old.base == base { // the old one is empty and has just been created again
		list = list[:len(list)-1]
	}
	l.install(append(list[:len(list):len(list)], fresh))
	l.guarded.namesDirty = true
	return nil
}

// syncLog syncs the log file of a segment.
func (l *Log) syncLog(s *segment) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	return syncFailed(f.Sync())
}

// createSegment makes the log file of a new segment, empty also where a leftover has its name.
func (l *Log) createSegment(base protocol.Offset) (*segment, error) {
	s := newSegment(base, 0, l.now())
	s.maxTime.Store(record.NoTimestamp)
	s.maxTimeOffset = base
	file, err := l.fs.OpenFile(l.path(base, logSuffix), openFlags|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	l.files.add(s, file).release()
	return s, nil
}

// install makes list the log's segments and its last one the active one, with an empty tail.
func (l *Log) install(list segments) {
	for _, s := range list[:len(list)-1] {
		s.active.Store(false)
		s.recent.Store(nil)
	}
	s := list.last()
	s.active.Store(true)
	if s.index.Load() == nil && s.size.Load() == 0 {
		s.index.Store(newOffsetIndex(nil))
	}
	l.guarded.tail = tail{lastTime: noTimeEntry, sinceIndex: 0}
	l.list.Store(&list)
}

// finishSegment brings a segment's files into the state of a closed one: the largest timestamp is the last
// entry of the time index, index files have their exact length, and nothing stands behind the last batch.
func (l *Log) finishSegment(s *segment) error {
	if err := l.prepareTail(s); err != nil {
		return err
	}
	t := &l.guarded.tail
	t.addTime(s)
	if err := l.writeIndexFiles(s, true); err != nil {
		return err
	}
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	if err := l.giveBack(f, s); err != nil {
		return err
	}
	if x := s.index.Load(); x != nil {
		l.files.charge(f, x.bytes())
	}
	return nil
}

// loadFirstTime reads the maximum timestamp of a segment's first batch.
func (l *Log) loadFirstTime(s *segment) error {
	f, err := l.open(s)
	if err != nil {
		return l.ioError("read", err)
	}
	defer f.release()
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	w := walk(f, 0, s.size.Load(), buf[:])
	h, err := w.next()
	if err != nil {
		return l.damaged(s, &w, err)
	}
	s.firstTime = h.MaxTimestamp
	return nil
}
