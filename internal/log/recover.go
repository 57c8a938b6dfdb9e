package log

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// How much Open looks at, by how the log was left:
//
//	Trust      believed                                  looked at
//	Clean      everything                                last index entries and the headers behind them
//	SameBoot   every write that returned; the page       headers and CRCs of the active segment behind its
//	           cache outlives the process                last index entry; the rest later, by Verify
//	Scan       what is below the recovery point          headers and CRCs of everything above it, segment by
//	                                                     segment, index files of those made anew
//
// A wrong trust is worse than a slow start, so it is raised to Clean or SameBoot only by evidence: the marker of a
// clean stop, or the kernel's boot id. Clean that turns out wrong falls back to a scan of the last segment.
//
// recovery is what recovering the segments came to.
type recovery struct {
	end      protocol.Offset
	repaired bool            // something was not as the trust promised
	trusted  protocol.Offset // snapshots up to here may be used
	checked  protocol.Offset // where the scan began: transaction indexes from there on are built anew
	settled  protocol.Offset // the high watermark: transactions whose marker is not below it are not decided
}

// recover brings the segments of l.list into order and finds the log end offset.
func (l *Log) recover(o *Options) (recovery, error) {
	list := *l.list.Load()
	last := len(list) - 1
	trust := o.Trust
	if trust == Clean {
		end, ok, err := l.trustTail(list[last])
		if err != nil || ok {
			return recovery{end: end, trusted: end, checked: end}, err
		}
		l.logger.Warn("a cleanly closed log is not whole, scanning its last segment", "partition", l.partition)
		return l.scan(o, last, list[last].base, false)
	}
	if trust == SameBoot {
		l.guarded.verifyFrom, l.guarded.verifyTo = max(0, o.RecoveryPoint), math.MaxInt64
		return l.scan(o, last, math.MaxInt64, false)
	}
	// A segment that ends at the recovery point may have been rolled since, its indexes not synced.
	point := max(0, o.RecoveryPoint)
	return l.scan(o, list.floor(point-1), point, true)
}

// trustTail finds the log end offset and the tail of the active segment from the last entries of its
// indexes and the headers behind them. ok is false where the files contradict each other.
//
// A clean start reads of each log, whatever its size, two index entries and the headers behind the last of them.
// The time entry is looked up only where the walk has not passed its batch.
func (l *Log) trustTail(s *segment) (end protocol.Offset, ok bool, err error) {
	entry, timeTail, ok, err := l.lastEntries(s)
	if err != nil || !ok {
		return 0, false, err
	}
	f, err := l.open(s)
	if err != nil {
		return 0, false, err
	}
	defer f.release()
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	size := s.size.Load()
	seen := false // the batch that the last entry of the time index names
	maxTime, maxOffset := timeTail.lastTime.timestamp, s.base+protocol.Offset(timeTail.lastTime.relative)
	w := walk(f, entry.position(), size, buf[:])
	for {
		h, err := w.next()
		if ended(err) {
			break
		}
		if isBadBatch(err) || err == nil && entry != 0 && w.pos == entry.position() && s.relative(h.LastOffset) > entry.relative() {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, err
		}
		if h.MaxTimestamp > maxTime {
			maxTime, maxOffset = h.MaxTimestamp, h.LastOffset
		}
		seen = seen || h.MaxTimestamp == timeTail.lastTime.timestamp && h.LastOffset == s.base+protocol.Offset(timeTail.lastTime.relative)
	}
	end = max(s.base, w.expected)
	if e := timeTail.lastTime; e != noTimeEntry && !seen {
		index, err := l.entriesOf(s)
		if err != nil {
			return 0, false, err
		}
		if ok, err := l.isTime(s, f, index, e); err != nil || !ok {
			return 0, false, err
		}
		s.index.Store(nil) // it is idle
	}
	s.maxTimeOffset = maxOffset
	s.maxTime.Store(maxTime)
	timeTail.sinceIndex = size - entry.position()
	l.guarded.tail = timeTail
	return end, true, nil
}

// lastEntries reads the last entry of each index of the active segment; ok is false where a file is missing
// or cannot be what a clean stop leaves.
func (l *Log) lastEntries(s *segment) (entry indexEntry, t tail, ok bool, err error) {
	size := s.size.Load()
	t = tail{indexWritten: -1, lastTime: noTimeEntry}
	if size == 0 {
		return 0, t, true, nil
	}
	b, n, err := l.lastOf(s, indexSuffix, indexEntrySize)
	if err != nil || n < 0 {
		return 0, t, false, err
	}
	if n > 0 {
		entries, ok := parseIndex(b, size)
		if !ok || len(entries) == 0 {
			return 0, t, false, nil
		}
		entry = entries[0]
	}
	b, n, err = l.lastOf(s, timeIndexSuffix, timeEntrySize)
	if err != nil || n < 0 {
		return 0, t, false, err
	}
	if n > 0 {
		t.lastTime = parseTimeEntry(b)
		if t.lastTime.relative < 0 || n > 1 && t.lastTime == (timeEntry{}) {
			return 0, t, false, nil
		}
	}
	t.timesWritten = int32(n)
	return entry, t, true, nil
}

// lastOf reads the last entry of a side file and how many there are; n is -1 where the file is missing or
// does not hold whole entries.
func (l *Log) lastOf(s *segment, suffix string, entrySize int64) (b []byte, n int, err error) {
	f, err := l.fs.OpenFile(l.path(s.base, suffix), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, -1, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, 0, err
	}
	if size%entrySize != 0 || size/entrySize > math.MaxInt32 {
		return nil, -1, nil
	}
	if size == 0 {
		return nil, 0, nil
	}
	b = make([]byte, entrySize)
	return b, int(size / entrySize), readFull(f, b, size-entrySize)
}

// scan checks the batches of the segments from first on: of first itself from the offset given, as far as
// its index helps to find that, and of the others all. With powerCut, pages may be missing; else only the
// last write can be torn.
//
// It goes up from the oldest: the first bad batch ends the log, and later segments go with the cut. repair sees all
// batches in their order and writes its corrections at the end, when the neighbours of each are known.
func (l *Log) scan(o *Options, first int, from protocol.Offset, powerCut bool) (recovery, error) {
	list := *l.list.Load()
	r := recovery{repaired: true, trusted: from}
	repair := epochRepair{log: l, powerCut: powerCut, known: *l.epochs.Load(), kept: *l.epochs.Load(), list: *l.epochs.Load()}
	var one scanned
	for i := first; i < len(list); i++ {
		limit := protocol.Offset(0)
		if i == first {
			limit = from
		}
		var err error
		if one, err = l.scanSegment(list[i], limit, &repair); err != nil {
			return r, err
		}
		r.end = one.end
		if i == first {
			r.checked = one.from
		}
		if one.bad == nil && powerCut && l.lacksRecords(i, &one, o) {
			one.bad = errEndLost
			if err := l.cut(i, &one); err != nil {
				return r, err
			}
			list = list[:i+1]
		} else if one.bad != nil {
			if err := l.checkTorn(i, &one, powerCut); err != nil {
				return r, err
			}
			if err := l.cut(i, &one); err != nil {
				return r, err
			}
			list = list[:i+1]
		}
		if err := l.adopt(list[i], &one, i == len(list)-1, &repair); err != nil {
			return r, err
		}
	}
	l.install(list)
	list.last().index.Store(newOffsetIndex(one.entries))
	l.guarded.tail = one.tail()
	l.guarded.tail.reserved = one.size + 1 // a kill leaves what was reserved behind the segment
	return r, repair.apply()
}

// errEndLost is why a log is cut at the end of a segment that is whole as far as it goes.
var errEndLost = errors.New("the next segment begins behind the end of this one")

// lacksRecords reports whether the end of segment i was lost in a power cut: its records are whole and
// without a gap, but end before the next segment begins. In a log that is or was compacted, or of which nobody
// knows, that may be as it should; there roll syncs.
//
//	segment 0           segment 4711
//	| ... 4650 |  ???   | 4711 ...            0 ends with 4650: records 4651 to 4710 were there, or compacted away
//
// A segment's file may lose its last pages while the next one's survive, as neither was synced. gaps says that offsets
// are missing elsewhere too, so that the log has been compacted.
func (l *Log) lacksRecords(i int, one *scanned, o *Options) bool {
	list := *l.list.Load()
	return i+1 < len(list) && one.end < list[i+1].base && !one.gaps &&
		o.Config.Delete && !o.Config.Compact && o.CleanedTo <= 0
}

// scanned is what scanning a segment came to.
type scanned struct {
	built
	from protocol.Offset // where the scan began
	end  protocol.Offset // the offset behind the last good batch
	size int64           // of the good batches
	bad  error           // what stopped the scan, nil at the end of the file
	head record.Header   // of the bad batch, where it has one
}

// scanSegment reads the batches of s whose offsets are not below from, checks them and builds the indexes.
func (l *Log) scanSegment(s *segment, from protocol.Offset, repair *epochRepair) (scanned, error) {
	f, err := l.open(s)
	if err != nil {
		return scanned{}, err
	}
	defer f.release()
	out := scanned{built: newBuilt(), end: s.base}
	size := s.size.Load()
	position, expected := int64(0), s.base
	if from > s.base {
		if position, expected, err = l.startScan(s, f, from, &out.built, repair); err != nil {
			return out, err
		}
	}
	interval := int64(l.config.Load().IndexIntervalBytes)
	w := walk(f, position, size, scanBytes(size-position))
	w.expected, out.from = expected, expected
	for {
		h, err := w.nextChecked(s.base)
		if ended(err) {
			break
		}
		if isBadBatch(err) {
			out.bad, out.head = err, h
			break
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", f.Name(), err)
		}
		out.add(s, &h, w.pos, interval)
		repair.see(s, w.pos, &h)
	}
	out.end, out.size = max(s.base, w.expected), w.pos
	return out, nil
}

// lookOverMax bounds what recovery looks over of a segment below the recovery point: where that is longer, it
// begins at the recovery point with the index files as they are, since on a cold disk headers cost nearly as
// much as all of it.
const lookOverMax = 64 << 20

// startScan finds where in a segment the scan of what is not below from begins, and fills in the indexes up
// to there. After a power cut headers are looked over without their CRC, as indexes of the active segment
// are not synced with every flush; a batch that is not whole there was synced, so it is damage. After a kill
// index files can be believed as far as they go.
func (l *Log) startScan(s *segment, f *openFile, from protocol.Offset, b *built, repair *epochRepair) (int64, protocol.Offset, error) {
	size := s.size.Load()
	if repair.powerCut {
		interval := int64(l.config.Load().IndexIntervalBytes)
		w := walk(f, 0, size, scanBytes(size))
		for {
			h, err := w.next()
			if next := s.base + protocol.Offset(b.next); next >= from || ended(err) || err == nil && h.LastOffset >= from {
				return w.pos, next, nil
			}
			if err != nil {
				return 0, 0, l.damaged(s, &w, err)
			}
			if w.pos > lookOverMax {
				break
			}
			b.add(s, &h, w.pos, interval)
			repair.see(s, w.pos, &h)
		}
	}
	var err error
	if *b, err = l.resume(s, f, from); err != nil {
		return 0, 0, err
	}
	return b.lastEntry, s.base, nil
}

// resume is the state of the indexes of s before its last index entry below from, read from their files:
// scanning goes on at that entry's batch. Where the files are not in order, it begins anew.
func (l *Log) resume(s *segment, f *openFile, from protocol.Offset) (built, error) {
	b := newBuilt()
	entries, ok, err := l.readIndex(s, f)
	if err != nil || !ok {
		return b, err
	}
	keep := len(entries)
	for keep > 0 && s.base+protocol.Offset(entries[keep-1].relative()) >= from {
		keep--
	}
	if keep == 0 {
		return b, nil
	}
	times, ok, err := l.readTimes(s)
	if err != nil || !ok {
		return b, err
	}
	last := entries[keep-1]
	for len(times) > 0 && int64(times[len(times)-1].relative) > last.relative() {
		times = times[:len(times)-1]
	}
	b.entries, b.times, b.lastEntry = entries[:keep:keep], times, last.position()
	b.inFile, b.timesInFile = keep, len(times)
	if n := len(times); n > 0 {
		if ok, err := l.isTime(s, f, b.entries, times[n-1]); err != nil || !ok {
			return newBuilt(), err
		}
		b.maxTime, b.maxTimeOffset = times[n-1].timestamp, int64(times[n-1].relative)
	}
	return b, nil
}

// readTimes reads the whole time index; ok is false where it is missing or not in order.
func (l *Log) readTimes(s *segment) (times []timeEntry, ok bool, err error) {
	b, err := readFile(l.fs, l.path(s.base, timeIndexSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	last := timeEntry{timestamp: record.NoTimestamp, relative: -1}
	for ; len(b) >= timeEntrySize; b = b[timeEntrySize:] {
		e := parseTimeEntry(b)
		if e == (timeEntry{}) && len(times) > 0 && allZero(b) {
			break
		}
		if e.timestamp <= last.timestamp || e.relative < last.relative {
			return nil, false, nil
		}
		times, last = append(times, e), e
	}
	return times, true, nil
}

// adopt makes what a scan found the state of a segment, in memory and in its index files. The files of a
// segment that goes on being appended to are left as they are, as far as the scan believed them.
//
// Which of two is stored first, indexes or the cut log, does not matter: indexes that name more than the log has
// fail the check of the next start, and are made anew.
func (l *Log) adopt(s *segment, one *scanned, last bool, repair *epochRepair) error {
	s.maxTime.Store(one.maxTime)
	s.maxTimeOffset = s.base + protocol.Offset(one.maxTimeOffset)
	s.firstTime = one.firstTime
	l.guarded.changed = true
	if last && one.inFile > 0 && one.bad == nil {
		return nil
	}
	if !last {
		one.addTime()
	}
	if err := repair.keep(); vfs.IsFull(err) && repair.rediscovers(s, last) {
		return l.dropIndexes(s, &one.built) // they are in memory, and a later start looks at all batches again
	} else if err != nil {
		return err
	}
	return l.storeIndexes(s, &one.built)
}
