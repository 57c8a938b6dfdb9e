package log

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Flush syncs the log up to its present end, with the indexes and snapshots of closed segments, writes a
// producer snapshot there and moves the recovery point to it. Appends go on meanwhile. An error is final:
// the log then refuses to change.
func (l *Log) Flush() error { return l.flushTo(l.EndOffset(), true) }

// FlushDue reports whether flush.ms asks for a Flush.
func (l *Log) FlushDue(now time.Time) bool {
	if l.RecoveryPoint() >= l.EndOffset() {
		return false
	}
	l.appending.lock()
	defer l.unlock()
	return l.guarded.unflushed > 0 && now.Sub(l.guarded.flushedAt) >= l.config.Load().FlushInterval
}

// Sync makes the records below end durable, which were appended before, as flush.messages asks. Whoever calls it while
// another sync runs shares the next one. An error is final, and the log then refuses to change, unless there is no room for the
// leader epochs, which are written before: that passes, and the records stay in the log.
func (l *Log) Sync(end protocol.Offset) error { return l.flushTo(end, false) }

// flushTo syncs at least up to offset. Those who wait for a sync while another runs share the next one.
//
//	flushing lock  ┌─────────────────────────────────────────────────────────────────────────┐
//	append lock    │ ┌ prepareFlush: what is dirty, ┐          ┌ finishFlush: move the       ┐ │
//	               │ └ snapshot at the end         ┘ sync ... └ recovery point, unless cut  ┘ │
//
// Appends go on during the sync, which is the long part. Ten producers with flush.messages=1 that wait at the
// flushing lock need one sync and not ten: the one that gets it next has all their records below its end.
func (l *Log) flushTo(offset protocol.Offset, whole bool) error {
	l.flushing.lock()
	defer l.flushing.unlock()
	if !whole && l.RecoveryPoint() >= offset {
		return nil
	}
	w, err := l.prepareFlush(whole)
	if err != nil || w.nothing {
		return err
	}
	if err := l.syncInPlace(w); err != nil {
		return err
	}
	return l.finishFlush(w)
}

// syncInPlace makes the work durable, also of a log whose directory is renamed meanwhile: to its place at the end of a
// move, or aside because it is deleted. The sync then looks for files where they are not, which is no fault of the
// disk. It goes on in the new place, and ends where the log has been closed.
func (l *Log) syncInPlace(w flushWork) error {
	for {
		dir := l.Dir()
		failed := l.sync(w)
		if err := l.lock(); err != nil { // whoever renames holds it
			return err
		}
		renamed := l.Dir() != dir
		l.unlock()
		switch {
		case failed != nil && !(renamed && errors.Is(failed, fs.ErrNotExist)):
			return l.ioError("flush", failed)
		case !renamed:
			return nil
		}
	}
}

// flushWork is what a flush has to do, as it was under the append lock.
type flushWork struct {
	end       protocol.Offset
	segments  segments          // with records that are not synced
	snapshots []protocol.Offset // files of closed segments that are not synced
	dir       bool              // whether names, or the topic id, are new
	epochs    int               // how often leader-epoch-checkpoint was written
	epochFile bool              // whether it is to be synced
	id        *protocol.TopicID
	unflushed int64
	cuts      int  // how often the log had been truncated
	whole     bool // with the index files of the active segment
	nothing   bool // everything is synced already
}

// prepareFlush notes what is to be synced, and with whole writes the indexes' tails and a producer snapshot
// at the log end. The snapshot is not synced, as its CRC tells whether it is whole.
//
// The end is taken under the append lock, so everything below it has been written: sync then covers at least that.
func (l *Log) prepareFlush(whole bool) (flushWork, error) {
	if err := l.lock(); err != nil {
		return flushWork{}, err
	}
	defer l.unlock()
	if err := l.settleEpochs(); err != nil {
		return flushWork{}, err
	}
	list := *l.list.Load()
	from := list.floor(l.RecoveryPoint() - 1) // a segment that ends there may have got its last index entries since
	w := flushWork{
		end: l.EndOffset(), segments: list[from:], dir: l.guarded.namesDirty, id: l.topicID.Load(),
		unflushed: l.guarded.unflushed, cuts: l.guarded.truncations, whole: whole,
		epochs: l.guarded.epochsWrote, epochFile: l.guarded.epochsWrote > l.guarded.epochsSync,
	}
	w.dir = w.dir || w.epochFile
	if whole && w.end == l.guarded.wholeTo && w.end == l.RecoveryPoint() && !w.dir {
		w.nothing = true
		return w, nil
	}
	for _, s := range w.segments[1:] {
		w.snapshots = append(w.snapshots, s.base)
	}
	if !whole || w.end == 0 {
		return w, nil
	}
	l.writeIndexes(list.last())
	w.dir = w.dir || l.guarded.namesDirty
	if err := l.writeSnapshot(w.end, false); err != nil {
		return w, l.ioError("flush", err)
	}
	l.guarded.wholeTo = w.end
	return w, nil
}

// sync makes the work durable: data first, names last.
//
// A stop in the middle costs nothing but the work: the recovery point has not moved, and what it promises is less
// than what is there. The directory is synced last, since a name is worth nothing before what it names.
func (l *Log) sync(w flushWork) error {
	for i, s := range w.segments {
		f, err := l.open(s)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		err = syncFailed(f.Sync())
		f.release()
		if err != nil {
			return err
		}
		sideFiles := segmentSuffixes[1:]
		if i == len(w.segments)-1 && !(w.whole && s.size.Load() > lookOverMax) {
			sideFiles = []string{txnIndexSuffix} // recovery makes the others of a short active segment anyway
		}
		for _, suffix := range sideFiles {
			if suffix == txnIndexSuffix && s.aborted.Load() == 0 {
				continue
			}
			if err := l.syncFile(l.path(s.base, suffix)); err != nil {
				return err
			}
		}
	}
	for _, offset := range w.snapshots {
		if err := l.syncFile(l.path(offset, snapshotSuffix)); err != nil {
			return err
		}
	}
	if w.epochFile {
		if err := l.syncFile(filepath.Join(l.Dir(), epochsName)); err != nil {
			return err
		}
	}
	if !w.dir {
		return nil
	}
	// Records without it would be anybody's: also those of a topic that is made anew under the same name.
	if err := l.syncFile(filepath.Join(l.Dir(), metadataName)); err != nil {
		return err
	}
	return l.fs.SyncDir(l.Dir())
}

// syncSideFiles syncs the indexes of a segment.
func (l *Log) syncSideFiles(s *segment) error {
	for _, suffix := range segmentSuffixes[1:] {
		if err := l.syncFile(l.path(s.base, suffix)); err != nil {
			return err
		}
	}
	return nil
}

// syncFile syncs a side file, if it is there.
func (l *Log) syncFile(path string) error {
	f, err := l.fs.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = syncFailed(f.Sync())
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// syncFailed makes the failure of a sync final, also that of a volume that is full. A write that finds it full has written
// nothing and can be tried again; a sync that does has lost what was written: the kernel takes those pages for stored, and the
// next sync finds nothing to do and succeeds.
func syncFailed(err error) error {
	if vfs.IsExhausted(err) {
		return fmt.Errorf("%w: what was to be synced may be lost: %s", syscall.EIO, err.Error()) // not wrapped: it would pass for a full volume
	}
	return err
}

// finishFlush moves the recovery point, unless the log was truncated meanwhile: other records may then be
// where the synced ones were.
//
//	the recovery point        moves in memory here; logdir writes it to its checkpoint from time to time
//	a stop before that        finds the older checkpoint: more to check, nothing lost
//	unflushed                 falls by what it was when the flush began; appends since then count on
//
// The directory is clean again only if no segment was made during the sync, and no topic id given: it may have missed them.
func (l *Log) finishFlush(w flushWork) error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if w.cuts != l.guarded.truncations {
		return nil
	}
	l.recovery.Store(max(l.recovery.Load(), int64(w.end)))
	l.guarded.unflushed = max(0, l.guarded.unflushed-w.unflushed)
	l.guarded.flushedAt = l.now()
	l.guarded.epochsSync = max(l.guarded.epochsSync, w.epochs)
	if w.dir && l.active() == w.segments.last() && l.topicID.Load() == w.id {
		l.guarded.namesDirty = false
	}
	return nil
}

// writeSnapshot writes the producer state as a snapshot file of offset, which must be where the state is.
// The snapshot before it goes, unless it is that of a segment.
func (l *Log) writeSnapshot(offset protocol.Offset, durable bool) error {
	g := &l.guarded
	if i, found := slices.BinarySearch(g.snapshots, offset); !found {
		g.snapshots = slices.Insert(g.snapshots, i, offset)
	}
	path := l.path(offset, snapshotSuffix)
	if err := replaceSmall(l.fs, path, encodeSnapshot(g.producers.byID), durable); err != nil {
		return err
	}
	return l.thinSnapshots()
}

// thinSnapshots removes snapshots that belong to no segment, the newest two excepted: recovery begins at a
// segment or at the recovery point, and the checkpoint of that may be one flush behind.
//
//	segments     0 ─────────────── 4711 ──────────────▶
//	snapshots    (0)               4711    4800   4900      4750 would be the third that is no segment's: it goes
func (l *Log) thinSnapshots() error {
	g, list := &l.guarded, *l.list.Load()
	others := 0
	for i := len(g.snapshots) - 1; i >= 0; i-- {
		offset := g.snapshots[i]
		if list[list.floor(offset)].base == offset {
			continue
		}
		if others++; others <= 2 {
			continue
		}
		if err := l.removeSnapshot(offset); err != nil {
			return err
		}
	}
	return nil
}

// removeSnapshot deletes a snapshot file.
func (l *Log) removeSnapshot(offset protocol.Offset) error {
	g := &l.guarded
	if i, found := slices.BinarySearch(g.snapshots, offset); found {
		g.snapshots = slices.Delete(g.snapshots, i, i+1)
	}
	err := l.fs.Remove(l.path(offset, snapshotSuffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeEpochs brings leader-epoch-checkpoint up to date.
func (l *Log) writeEpochs() error {
	path := filepath.Join(l.Dir(), epochsName)
	if err := replaceSmall(l.fs, path, l.epochs.Load().format(), false); err != nil {
		return l.ioError("write leader epochs of", err)
	}
	l.guarded.epochsDirty = false
	l.guarded.epochsWrote++
	return nil
}

// CloseClean syncs everything, writes the producer snapshot of the log end and closes the log, so that Open
// may trust it as Clean. No append is accepted once it has begun. A log that did not change since it was
// opened costs nothing.
func (l *Log) CloseClean() error { return l.close(true) }

// CloseWritten is CloseClean without its syncs, for many logs whose volume is then synced as a whole. The log is clean
// when that has happened, and [Log.Synced] was told.
func (l *Log) CloseWritten() error { return l.close(false) }

func (l *Log) close(sync bool) error {
	l.flushing.lock()
	defer l.flushing.unlock()
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if l.guarded.changed {
		if err := l.closeFiles(sync); err != nil {
			return l.ioError("close", err)
		}
	}
	l.guarded.closed = true
	l.releaseFiles()
	return nil
}

// Changed reports whether anything was written since the log was opened.
func (l *Log) Changed() bool {
	l.appending.lock()
	defer l.unlock()
	return l.guarded.changed
}

// Synced says that the volume was synced after [Log.CloseWritten].
func (l *Log) Synced() {
	l.appending.lock()
	defer l.unlock()
	if l.guarded.closed && l.guarded.changed {
		l.recovery.Store(l.end.Load())
	}
}

// closeFiles leaves the files as a clean stop leaves them, durable where sync says so.
//
// A failure in the middle leaves the log as it is without a clean stop, and the directory gets no marker.
func (l *Log) closeFiles(sync bool) error {
	list, end := *l.list.Load(), l.EndOffset()
	s := list.last()
	if err := l.finishSegment(s); err != nil {
		return err
	}
	if err := l.settleEpochs(); err != nil {
		return err
	}
	if end > 0 {
		if err := l.writeSnapshot(end, sync); err != nil {
			return err
		}
	}
	if !sync {
		return nil
	}
	w := flushWork{segments: list[list.floor(l.RecoveryPoint()-1):], dir: true, epochFile: true}
	for _, s := range w.segments[1:] {
		w.snapshots = append(w.snapshots, s.base)
	}
	if err := l.syncSideFiles(s); err != nil {
		return err
	}
	if err := l.sync(w); err != nil {
		return err
	}
	l.recovery.Store(int64(end))
	return nil
}

// CloseUnclean closes the log without writing anything, as after a failure of its directory.
func (l *Log) CloseUnclean() {
	l.appending.lock()
	defer l.unlock()
	l.guarded.closed = true
	l.releaseFiles()
}

// releaseFiles gives all open files back, and has no more opened; slices keep theirs until they are released.
func (l *Log) releaseFiles() {
	for _, s := range *l.list.Load() {
		s.gone.Store(true)
		l.files.drop(s)
	}
}
