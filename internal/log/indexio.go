package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// prepareTail makes the active segment ready to be appended to: its index in memory, and the memory of
// recent batches. It is called under the append lock.
//
// It is cheap where the segment is in use. After an Open that trusted the log, or a Rest, the index is read with the
// first append: thousands of idle partitions keep none.
func (l *Log) prepareTail(s *segment) error {
	if s.recent.Load() == nil {
		s.recent.Store(new(recent))
	}
	if l.guarded.tail.indexWritten >= 0 && s.index.Load() != nil {
		return nil
	}
	x, err := l.loadIndex(s)
	if err != nil {
		return err
	}
	if s.suspect.Load() {
		return l.repairTail(s)
	}
	l.guarded.tail.indexWritten = x.n.Load()
	return nil
}

// repairTail rebuilds the index files of the active segment.
func (l *Log) repairTail(s *segment) error {
	f, err := l.open(s)
	if err != nil {
		return l.ioError("append to", err)
	}
	defer f.release()
	b, err := l.rebuild(s, f)
	if err != nil {
		return err
	}
	if err := l.storeIndexes(s, &b); err != nil {
		return l.ioError("append to", err)
	}
	l.guarded.tail = b.tail()
	s.index.Store(newOffsetIndex(b.entries))
	s.maxTimeOffset = s.base + protocol.Offset(b.maxTimeOffset)
	s.maxTime.Store(b.maxTime)
	s.suspect.Store(false)
	return nil
}

// entriesOf is a segment's offset index, read into memory where it is not there yet.
func (l *Log) entriesOf(s *segment) ([]indexEntry, error) {
	x, err := l.indexOf(s)
	if err != nil {
		return nil, err
	}
	return x.all(), nil
}

// indexOf is entriesOf with what else is known.
func (l *Log) indexOf(s *segment) (*offsetIndex, error) {
	if x := s.index.Load(); x != nil {
		return x, nil
	}
	return l.loadIndex(s)
}

// loadIndex reads a segment's offset index into memory. What is read is checked against the log, as no
// checksum protects it: a damaged, cut or foreign index is rebuilt, with the time index.
//
// Who reads and who appends may come here together, so it has a lock of its own, which is taken under the append
// lock too; the second one finds what the first has loaded. The index of a closed segment is charged to the file
// cache, which drops it with the file; that of the active one is not, as it has entries that no file has yet.
func (l *Log) loadIndex(s *segment) (*offsetIndex, error) {
	l.loading.lock()
	defer l.loading.unlock()
	if x := s.index.Load(); x != nil {
		return x, nil
	}
	f, err := l.open(s)
	if err != nil {
		return nil, err
	}
	defer f.release()
	entries, ok, err := l.readIndex(s, f)
	if err != nil {
		return nil, err
	}
	if !ok {
		l.logger.Warn("rebuilding the indexes of a segment", "file", l.path(s.base, indexSuffix))
		built, err := l.rebuild(s, f)
		if err != nil {
			return nil, err
		}
		if s.active.Load() {
			s.suspect.Store(true)
		}
		if err := l.keepRebuilt(s, &built); err != nil {
			return nil, err
		}
		entries = built.entries
	}
	x := newOffsetIndex(entries)
	s.index.Store(x)
	if !s.active.Load() {
		l.files.charge(f, x.bytes())
	}
	return x, nil
}

// readIndex reads and checks the index file; ok is false where it must be rebuilt.
func (l *Log) readIndex(s *segment, log io.ReaderAt) (entries []indexEntry, ok bool, err error) {
	b, err := readFile(l.fs, l.path(s.base, indexSuffix))
	if s.gone.Load() {
		return nil, false, errGone
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.size.Load() == 0, nil
	}
	if err != nil {
		return nil, false, err
	}
	size := s.size.Load()
	entries, ok = parseIndex(b, size)
	if !ok {
		return nil, false, nil
	}
	ok, err = l.indexMatches(s, log, entries, size)
	return entries, ok, err
}

// indexMatches looks at the batches that the first and the last entry name, and whether the log behind the
// last one is so long that entries must be missing.
//
// It is a spot check: first entry, last entry, and the distance from there to the end. An index that was cut short,
// belongs to another log, or has its entries shifted, fails it. A changed entry in the middle is not seen.
func (l *Log) indexMatches(s *segment, log io.ReaderAt, entries []indexEntry, size int64) (bool, error) {
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	var last int64
	if n := len(entries); n > 0 {
		last = entries[n-1].position()
		for _, e := range [...]indexEntry{entries[0], entries[n-1]} {
			w := walk(log, e.position(), size, buf[:])
			h, err := w.next()
			if err != nil && !isBadBatch(err) {
				return false, err
			}
			if err != nil || h.BaseOffset < s.base || s.relative(h.LastOffset) > e.relative() {
				return false, nil
			}
		}
	}
	// Intervals of several settings may meet in a log, so only a gross gap counts; after a kill, the entries
	// of what the active segment got last are missing.
	most := max(4*int64(l.config.Load().IndexIntervalBytes), missingIndexBytes)
	if s.active.Load() {
		most += 4 * indexWriteBytes
	}
	w := walk(log, last, size, buf[:])
	for {
		_, err := w.next()
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case isBadBatch(err):
			return false, nil
		case err != nil:
			return false, err
		}
		if w.pos-last > most {
			return false, nil
		}
	}
}

// missingIndexBytes is the distance from the last entry of an index at which entries must be missing.
const missingIndexBytes = 64 << 10

// built are the indexes of a segment as its batches say.
// The first inFile of entries, and the first timesInFile of times, are in the files as they are, and are not written
// again where a segment goes on being appended to.
type built struct {
	entries       []indexEntry
	times         []timeEntry
	maxTime       int64
	maxTimeOffset int64 // relative
	firstTime     int64
	sinceIndex    int64
	next          int64 // relative next offset
	lastEntry     int64 // position that sinceIndex counts from
	gaps          bool  // offsets are missing, within batches or between them
	inFile        int   // how many entries, and
	timesInFile   int   // how many of the times, are in their files already
}

// newBuilt is the state before the first batch of a segment.
func newBuilt() built {
	return built{maxTime: record.NoTimestamp, firstTime: timeUnknown}
}

// add takes in the batch at position, in the way that Kafka's recovery does.
func (b *built) add(s *segment, h *record.Header, position, interval int64) {
	if position == 0 {
		b.firstTime = h.MaxTimestamp
	}
	b.gaps = b.gaps || s.relative(h.BaseOffset) != b.next || h.Count >= 0 && int64(h.Count) != int64(h.NextOffset()-h.BaseOffset)
	if h.MaxTimestamp > b.maxTime {
		b.maxTime, b.maxTimeOffset = h.MaxTimestamp, s.relative(h.LastOffset)
	}
	if position-b.lastEntry > interval {
		b.entries = append(b.entries, newIndexEntry(s.relative(h.LastOffset), position))
		b.addTime()
		b.lastEntry = position
	}
	b.sinceIndex = position + int64(h.Size) - b.lastEntry
	b.next = s.relative(h.NextOffset())
}

// addTime adds the largest timestamp so far to the time index, where it is larger than the last entry.
// It does what tail.addTime does for appends, so that rebuilt files equal those that were written.
func (b *built) addTime() {
	last := noTimeEntry
	if n := len(b.times); n > 0 {
		last = b.times[n-1]
	}
	if b.maxTime > last.timestamp {
		b.times = append(b.times, timeEntry{timestamp: b.maxTime, relative: int32(b.maxTimeOffset)})
	}
}

// rebuild makes the indexes of a segment from the headers of its batches.
func (l *Log) rebuild(s *segment, log io.ReaderAt) (built, error) {
	return l.rebuildFrom(s, log, newBuilt())
}

// rebuildFrom goes on from what is known of the batches before an index entry; see resume.
func (l *Log) rebuildFrom(s *segment, log io.ReaderAt, b built) (built, error) {
	interval, size := int64(l.config.Load().IndexIntervalBytes), s.size.Load()
	w := walk(log, b.lastEntry, size, scanBytes(size-b.lastEntry))
	for {
		h, err := w.next()
		if ended(err) {
			break
		}
		if err != nil {
			return b, l.damaged(s, &w, err)
		}
		b.add(s, &h, w.pos, interval)
	}
	b.addTime()
	return b, nil
}

// tail is the state of the active segment: what of the indexes is not in their files yet follows later.
func (b *built) tail() tail {
	t := tail{
		sinceIndex: b.sinceIndex, indexWritten: int32(b.inFile),
		timesWritten: int32(b.timesInFile), times: b.times[b.timesInFile:], lastTime: noTimeEntry,
	}
	if n := len(b.times); n > 0 {
		t.lastTime = b.times[n-1]
	}
	return t
}

// storeIndexes replaces a segment's index files.
func (l *Log) storeIndexes(s *segment, b *built) error {
	if err := l.writeWhole(s, indexSuffix, appendIndexEntries(nil, b.entries)); err != nil {
		return err
	}
	b.inFile, b.timesInFile = len(b.entries), len(b.times)
	return l.writeWhole(s, timeIndexSuffix, appendTimeEntries(nil, b.times))
}

// dropIndexes empties a segment's index files, which takes no space.
func (l *Log) dropIndexes(s *segment, b *built) error {
	b.inFile, b.timesInFile = 0, 0
	return errors.Join(l.writeWhole(s, indexSuffix, nil), l.writeWhole(s, timeIndexSuffix, nil))
}

// keepRebuilt stores the indexes of a closed segment that a reader had to rebuild, durably, as nobody syncs
// them again. It needs the append lock, so that the segment cannot be replaced by one of the same name
// meanwhile; where that is taken, the indexes stay in memory and the next reader tries again.
//
// tryLock and not lock: a reader must not wait for an append's I/O, and whoever holds the append lock may be
// waiting for the loading lock that this reader has.
func (l *Log) keepRebuilt(s *segment, b *built) error {
	if s.active.Load() || !l.appending.tryLock() {
		return nil
	}
	defer l.unlock()
	if s.gone.Load() || l.guarded.closed || l.failure.Load() != nil {
		return nil
	}
	if err := l.storeIndexes(s, b); err != nil {
		return err
	}
	if err := l.syncSideFiles(s); err != nil {
		return err
	}
	return l.fs.SyncDir(l.Dir())
}

// writeWhole replaces the content of one of a segment's side files, in place.
func (l *Log) writeWhole(s *segment, suffix string, content []byte) error {
	return l.writeAt(s, suffix, content, 0, true)
}

// writeAt writes into one of a segment's side files, which is made where it is missing. With trim, the file
// ends behind what was written.
func (l *Log) writeAt(s *segment, suffix string, b []byte, at int64, trim bool) error {
	f, err := l.fs.OpenFile(l.path(s.base, suffix), openFlags|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		_, err = f.WriteAt(b, at)
	}
	if err == nil && trim {
		err = f.Truncate(at + int64(len(b)))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.path(s.base, suffix), err)
	}
	return nil
}

// writeIndexes writes the entries that have gathered. It may fail without harm while the disk is full: they
// stay in memory, and the next time is another MiB of log away.
func (l *Log) writeIndexes(s *segment) {
	l.guarded.tail.sinceWrite = 0
	if err := l.writeIndexFiles(s, false); err != nil && !vfs.IsFull(err) {
		l.fail(err)
	}
}

// writeIndexFiles writes the entries that have gathered; trim also makes the files, and cuts what is behind.
// leader-epoch-checkpoint goes first: recovery looks for epochs that it lacks behind the last index entry only.
// Then the time index: where an index entry is found after a kill, its time entry is there too.
//
// What a kill leaves is a beginning of each file: whole entries, or one that is torn. parseIndex drops a torn one,
// and recovery finds the batches behind the last whole one by walking.
func (l *Log) writeIndexFiles(s *segment, trim bool) error {
	if err := l.settleEpochs(); err != nil {
		return err
	}
	t := &l.guarded.tail
	// The files may be new.
	l.guarded.namesDirty = l.guarded.namesDirty || trim || t.timesWritten == 0 && len(t.times) > 0 || t.indexWritten == 0
	if len(t.times) > 0 || trim {
		at := int64(t.timesWritten) * timeEntrySize
		if err := l.writeAt(s, timeIndexSuffix, appendTimeEntries(nil, t.times), at, trim); err != nil {
			return err
		}
		t.timesWritten += int32(len(t.times))
		t.times = t.times[:0]
	}
	x := s.index.Load()
	if x == nil {
		return nil
	}
	t.indexWritten = max(t.indexWritten, 0)
	entries := x.all()[t.indexWritten:]
	if len(entries) > 0 || trim {
		at := int64(t.indexWritten) * indexEntrySize
		if err := l.writeAt(s, indexSuffix, appendIndexEntries(nil, entries), at, trim); err != nil {
			return err
		}
		t.indexWritten += int32(len(entries))
	}
	return nil
}

// readFile reads a whole side file of a segment, which is at most as long as segment.index.bytes allowed
// when it was written.
func readFile(files vfs.FS, path string) ([]byte, error) {
	f, err := files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if err := readFull(f, b, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}
