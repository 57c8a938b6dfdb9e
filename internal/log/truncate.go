package log

import (
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// TruncateTo cuts the log so that it ends at offset, or before it where a batch spans it. High watermark,
// recovery point, leader epochs, producer state and last stable offset follow. An offset at or behind the
// end cuts no records, but drops leader epochs that begin there (BR-123); one before the first segment
// restarts the log there.
func (l *Log) TruncateTo(offset protocol.Offset) error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if offset >= l.EndOffset() {
		return l.truncateEpochs(offset)
	}
	l.guarded.changed = true
	l.guarded.truncations++
	var err error
	if list := *l.list.Load(); offset < list[0].base {
		err = l.restartAt(offset)
	} else {
		err = l.truncate(offset)
	}
	if err != nil {
		return l.ioError("truncate", err)
	}
	return l.truncateEpochs(l.EndOffset())
}

// TruncateFullyAndStartAt drops all records, so that the log is empty and begins at offset, which may be
// where it began before (BR-209).
func (l *Log) TruncateFullyAndStartAt(offset protocol.Offset) error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	l.guarded.changed = true
	l.guarded.truncations++
	if err := l.restartAt(offset); err != nil {
		return l.ioError("truncate", err)
	}
	return nil
}

// truncate cuts within the log: later segments first, the highest before the others, so that the rest is a
// prefix wherever the power fails; then the segment that holds the offset.
//
//	memory     end, watermark and the others fall               readers stop short of what will go
//	disk       later segments, the highest first; each durable
//	           the segment that holds the offset, cut and synced
//	           its indexes, made from what is left
//	           snapshots above the end, durable
//	memory     producer state of the new end
//
// A stop anywhere leaves a prefix of the old log, no shorter than it was to become. The follower then finds again
// where it parts from its leader, and truncates anew. No step may be left to the page cache: bytes that come back
// after a power cut, behind records that were appended since, would be a history that no leader has written.
func (l *Log) truncate(offset protocol.Offset) error {
	list := *l.list.Load()
	i := list.floor(offset)
	s := list[i]
	position, end, err := l.cutAt(s, offset)
	if err != nil {
		return err
	}
	kept, err := l.keptIndexes(s, end)
	if err != nil {
		return err
	}
	// Readers must not find the end before it is cut; what they have found already is not committed.
	l.end.Store(int64(end))
	l.watermark.Store(min(l.watermark.Load(), int64(end)))
	l.recovery.Store(min(l.recovery.Load(), int64(end)))
	l.cleaned.Store(min(l.cleaned.Load(), int64(end)))
	l.start.Store(min(l.start.Load(), int64(end)))
	for j := len(list) - 1; j > i; j-- {
		if err := l.removeSegmentFiles(list[j]); err != nil {
			return err
		}
	}
	if err := l.truncateFile(s, position); err != nil {
		return err
	}
	if err := l.reactivate(list[:i+1], kept); err != nil {
		return err
	}
	if err := l.dropSnapshotsAbove(end); err != nil {
		return err
	}
	if err := l.replay(&recovery{end: end, trusted: end, checked: end, settled: l.HighWatermark()}); err != nil {
		return err
	}
	l.guarded.producers.txns.release(l.HighWatermark())
	return nil
}

// cutAt finds where to cut a segment so that nothing at or behind offset is left, and the end that the log
// has then.
func (l *Log) cutAt(s *segment, offset protocol.Offset) (position int64, end protocol.Offset, err error) {
	f, err := l.open(s)
	if err != nil {
		return 0, 0, err
	}
	defer f.release()
	size := s.size.Load()
	if position, err = l.position(s, f, offset, size); err != nil || position >= size {
		return position, offset, err
	}
	w := walk(f, position, size, make([]byte, record.HeaderSize))
	h, err := w.next()
	if err != nil {
		return 0, 0, l.damaged(s, &w, err)
	}
	return position, min(offset, h.BaseOffset), nil
}

// keptIndexes are the entries of a segment's indexes that stay when it is cut at end.
func (l *Log) keptIndexes(s *segment, end protocol.Offset) (built, error) {
	if s.active.Load() {
		if err := l.writeIndexFiles(s, false); err != nil {
			return built{}, err
		}
	}
	f, err := l.open(s)
	if err != nil {
		return built{}, err
	}
	defer f.release()
	return l.resume(s, f, end)
}

// reactivate makes the last segment of list, which has been cut, the active one, with the indexes that it
// has now.
func (l *Log) reactivate(list segments, kept built) error {
	s := list.last()
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	b, err := l.rebuildFrom(s, f, kept)
	if err != nil {
		return err
	}
	if err := l.storeIndexes(s, &b); err != nil {
		return err
	}
	s.recent.Store(nil)
	s.suspect.Store(false)
	s.index.Store(newOffsetIndex(b.entries))
	s.firstTime = b.firstTime
	s.maxTimeOffset = s.base + protocol.Offset(b.maxTimeOffset)
	s.maxTime.Store(b.maxTime)
	if s.size.Load() == 0 {
		s.created = l.now()
	}
	l.install(list)
	l.guarded.tail = b.tail()
	return nil
}

// dropSnapshotsAbove removes the snapshots of a history that is gone, durably: they would be believed by
// their CRC once the log has grown past them again.
func (l *Log) dropSnapshotsAbove(end protocol.Offset) error {
	dropped := false
	for n := len(l.guarded.snapshots); n > 0 && l.guarded.snapshots[n-1] > end; n = len(l.guarded.snapshots) {
		if err := l.removeSnapshot(l.guarded.snapshots[n-1]); err != nil {
			return err
		}
		dropped = true
	}
	l.guarded.wholeTo = min(l.guarded.wholeTo, end)
	if !dropped {
		return nil
	}
	return l.fs.SyncDir(l.Dir())
}

// restartAt drops everything and makes one empty segment at offset. The highest segment goes first, as in
// truncate.
//
// A stop in the middle leaves a prefix, or no segment at all: then the next Open makes an empty one at the log start of
// the checkpoint, and the follower restarts the log again.
func (l *Log) restartAt(offset protocol.Offset) error {
	list := *l.list.Load()
	// An empty range for readers while files go, wherever they look.
	l.end.Store(int64(offset))
	l.start.Store(int64(offset))
	l.watermark.Store(int64(offset))
	l.recovery.Store(int64(offset))
	l.cleaned.Store(int64(offset))
	for j := len(list) - 1; j >= 0; j-- {
		if err := l.removeSegmentFiles(list[j]); err != nil {
			return err
		}
	}
	if err := l.dropSnapshotsAbove(-1); err != nil {
		return err
	}
	s, err := l.createSegment(offset)
	if err != nil {
		return err
	}
	l.guarded.namesDirty = true
	l.install(segments{s})
	l.guarded.producers.reset(offset, nil)
	l.epochs.Store(&epochs{})
	return l.writeEpochs()
}

// truncateEpochs drops the epochs that begin at end or behind it.
//
// Also where no records went: epochs without records at the end would otherwise be offered to the leader again and
// again, and the follower never got done (KAFKA-10706).
func (l *Log) truncateEpochs(end protocol.Offset) error {
	list, changed := l.epochs.Load().truncateEnd(end)
	if !changed {
		return nil
	}
	l.epochs.Store(&list)
	return l.writeEpochs()
}
