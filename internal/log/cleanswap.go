package log

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// group is a run of segments that become one.
type group struct {
	segments segments
	next     protocol.Offset // base of the segment behind them
}

// groups merges segments as long as the result cannot outgrow segment.bytes, the index files or the offsets
// of a segment, before anything is taken out.
//
// The sizes are those before cleaning, so a group may come out much smaller than segment.bytes; the next pass
// merges it with its neighbours. The offsets of a group must fit into 31 bits, as in every segment.
func (c *cleaning) groups() []group {
	most := int64(c.log.config.Load().SegmentBytes)
	var out []group
	var size int64
	for i, s := range c.list {
		if s.base >= c.stats.To {
			break
		}
		upper := c.list[i+1].base
		n := len(out)
		if n == 0 || size+s.size.Load() > most || s.size.Load() > 0 && upper-1-out[n-1].segments[0].base > maxRelativeOffset {
			out = append(out, group{})
			n, size = n+1, 0
		}
		g := &out[n-1]
		g.segments, g.next = append(g.segments, s), upper
		size += s.size.Load()
	}
	return out
}

// cleanFile is a ".cleaned" segment that is being written.
type cleanFile struct {
	built
	segment  *segment
	file     vfs.File
	pending  []byte // batches that are not written yet
	size     int64  // with them
	interval int64
	aborted  []byte // the transaction index
}

// cleanWriteBytes is how much a cleanFile gathers before it writes.
const cleanWriteBytes = 1 << 20

// clean copies what stays of a group of segments and swaps the copy in.
func (c *cleaning) clean(g group) error {
	out, err := c.startFile(g.segments[0].base)
	if err != nil {
		return c.log.ioError("compact", err)
	}
	err = c.copy(g, out)
	if err == nil {
		err = c.finishFile(out)
	}
	if closed := out.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		return c.swap(g, out)
	}
	return errors.Join(err, c.abandon(g.segments[0].base))
}

// startFile makes the log file of a cleaned segment, in place of one that an earlier attempt left.
func (c *cleaning) startFile(base protocol.Offset) (*cleanFile, error) {
	l := c.log
	file, err := l.fs.OpenFile(l.path(base, logSuffix+cleanedSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	return &cleanFile{
		built: newBuilt(), segment: newSegment(base, 0, l.now()), file: file,
		interval: int64(l.config.Load().IndexIntervalBytes),
	}, nil
}

// copy filters the batches of a group into out.
//
// Producers and transactions are followed from the first segment on, also through those that are clean already: an
// aborted transaction may have begun there.
func (c *cleaning) copy(g group, out *cleanFile) error {
	for i, s := range g.segments {
		upper := g.next
		if i+1 < len(g.segments) {
			upper = g.segments[i+1].base
		}
		if err := c.announce(c.txns, s.base, upper); err != nil {
			return err
		}
		c.stats.SegmentsBefore++
		c.stats.BytesRead += s.size.Load()
		err := c.eachBatch(s, upper, c.passOver, func(e record.Entry) error {
			k, err := c.filter(e)
			if err != nil {
				return err
			}
			if k.marker {
				out.aborted = appendAborted(out.aborted, k.aborted)
			}
			if k.bytes == nil {
				return nil
			}
			if err := out.add(k.bytes); err != nil {
				return err
			}
			return c.throttle(len(k.bytes))
		})
		if err != nil {
			return err
		}
	}
	return out.write()
}

// add puts a batch behind the others.
func (f *cleanFile) add(b []byte) error {
	h, err := record.ParseHeader(b)
	if err != nil {
		return err
	}
	f.built.add(f.segment, &h, f.size, f.interval)
	f.pending = append(f.pending, b...)
	f.size += int64(len(b))
	if len(f.pending) >= cleanWriteBytes {
		return f.write()
	}
	return nil
}

// write writes the batches that have gathered.
func (f *cleanFile) write() error {
	if len(f.pending) == 0 {
		return nil
	}
	_, err := f.file.WriteAt(f.pending, f.size-int64(len(f.pending)))
	f.pending = f.pending[:0]
	return err
}

// finishFile writes the indexes and makes all of the cleaned segment durable: once it is renamed, the
// originals may go.
func (c *cleaning) finishFile(f *cleanFile) error {
	l, s := c.log, f.segment
	f.addTime()
	if err := f.file.Sync(); err != nil {
		return err
	}
	side := map[string][]byte{
		indexSuffix:     appendIndexEntries(nil, f.entries),
		timeIndexSuffix: appendTimeEntries(nil, f.times),
	}
	if len(f.aborted) > 0 {
		side[txnIndexSuffix] = f.aborted
	}
	for _, suffix := range segmentSuffixes[1:] {
		content, wanted := side[suffix]
		if !wanted {
			continue
		}
		if err := l.writeAt(s, suffix+cleanedSuffix, content, 0, true); err != nil {
			return err
		}
		if err := l.syncFile(l.path(s.base, suffix+cleanedSuffix)); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.Dir())
}

// abandon removes the files of a cleaned segment that is not wanted.
func (c *cleaning) abandon(base protocol.Offset) error {
	var failed error
	for _, suffix := range segmentSuffixes {
		if err := c.log.removeFile(fileName(base, suffix+cleanedSuffix)); err != nil {
			failed = err
		}
	}
	return failed
}

// swap puts the cleaned segment in the place of the group, under the append lock. Each step is durable
// before the next: all of ".cleaned" becomes ".swap", from where a restart goes on; the originals get
// ".deleted"; ".swap" goes. Readers that hold an original keep it, those that look for it find it gone and
// look again.
//
// What a stop leaves, and what tidy makes of it (X is the base of the first segment of the group, Y another):
//
//	on the disk                                   next start
//	X.log.cleaned, any of its indexes             removed; the originals were not touched
//	X.index.swap, X.log.cleaned                   both removed: the rename to ".swap" was not finished
//	X.log.swap, X.log, Y.log                      X.log and Y.log removed, ".swap" taken off
//	X.log.swap, X.log.deleted, Y.log              the same
//	X.log.swap, X.index                           X.index removed, and rebuilt from X.log
//	X.log, Y.log.deleted                          done; ".deleted" removed
//
// The first ".cleaned" that is there decides: the log file is renamed last, so as long as it has the old suffix
// the copy does not count, and nothing of the originals has gone.
func (c *cleaning) swap(g group, f *cleanFile) error {
	l := c.log
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	list := *l.list.Load()
	at := list.floor(g.segments[0].base)
	// The list that the copy was made from may be gone by now: truncation, retention or DeleteRecords do not wait
	// for a cleaner. Then the originals, or what is left of them, are the truth.
	if l.guarded.truncations != c.cuts || list[at] != g.segments[0] || at+len(g.segments) >= len(list) {
		return errors.Join(ErrInterrupted, c.abandon(g.segments[0].base))
	}
	if err := l.exchange(g, f.segment.base); err != nil {
		// Half of the names are changed: only a restart can go on from here, whatever the reason.
		l.fail(fmt.Errorf("compact: %w", err))
		return l.Err()
	}
	f.describe()
	fresh := append(append(list[:at:at], f.segment), list[at+len(g.segments):]...)
	l.list.Store(&fresh)
	l.guarded.changed = true
	c.stats.SegmentsAfter++
	c.stats.BytesWritten += f.size
	return nil
}

// exchange gives the files of the cleaned segment at base the names of the group's.
//
// Snapshots of the group's later segments go with them; that of the first stays, as the new segment has its base. The
// state before an offset does not change by compaction.
func (l *Log) exchange(g group, base protocol.Offset) error {
	if err := l.rename(base, cleanedSuffix, swapSuffix); err != nil {
		return err
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return err
	}
	if err := l.markSegments(g.segments, l.now(), false); err != nil {
		return err
	}
	for _, old := range g.segments {
		if old.base == base {
			continue // its snapshot is that of the new one
		}
		if err := l.markSnapshot(old.base, l.now()); err != nil {
			return err
		}
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return err
	}
	return l.rename(base, swapSuffix, "")
}

// describe makes the segment's state that of its files.
func (f *cleanFile) describe() {
	s := f.segment
	s.size.Store(f.size)
	s.firstTime = f.firstTime
	s.maxTimeOffset = s.base + protocol.Offset(f.maxTimeOffset)
	s.maxTime.Store(f.maxTime)
	s.aborted.Store(int32(len(f.aborted) / abortedSize))
}

// rename exchanges one suffix for another on the files of a segment, its indexes first: the log file comes
// last, so that it does not lose its old suffix while an index still has it.
func (l *Log) rename(base protocol.Offset, from, to string) error {
	for i := len(segmentSuffixes) - 1; i >= 0; i-- {
		path := l.path(base, segmentSuffixes[i])
		err := l.fs.Rename(path+from, path+to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
