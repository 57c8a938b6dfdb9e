package logdir

import (
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Swap puts a copy that has caught up in the place of the current log and returns it, open. The caller
// holds appends off: the old log is closed, and refuses any. Reads of it that are under way go on.
func (s *Set) Swap(tp protocol.TopicPartition) (*log.Log, error) {
	s.changing.lock()
	defer s.changing.unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	e, f := s.mu.logs[tp], s.mu.futures[tp]
	s.mu.RUnlock()
	if e == nil || e.log == nil || f == nil {
		return nil, fmt.Errorf("partition %s is not being moved", tp)
	}
	if err := s.copyRest(e, f); err != nil {
		return nil, err
	}
	if !s.takeFuture(f) {
		return nil, f.dir.err()
	}
	// The copy is whole and durable before anything happens to the log that it replaces.
	if err := f.log.CloseClean(); err != nil {
		f.log.CloseUnclean()
		return nil, offline(tp, s.report(f.dir, err))
	}
	e.log.CloseUnclean()
	next := &entry{partition: tp, dir: f.dir}
	if next.log, next.err = s.exchange(e, f); next.err != nil {
		next.err = offline(tp, next.err)
		s.logger.Error("partition is offline", "partition", tp, "error", next.err)
	}
	// If the old directory has failed meanwhile, its offline entry is in the table, and gives way; if the new
	// one has, that failure did not know of this log.
	for !s.replace(tp, s.entry(tp), next) {
	}
	if err := f.dir.err(); err != nil && next.log != nil {
		s.poison(next, err)
		return nil, err
	}
	// The log start must not fall back to what the copied segments begin with.
	_ = s.report(f.dir, s.checkpointDirectory(f.dir, logStarts)) // the job tries again
	s.logger.Info("moved a partition", "partition", tp, "from", e.dir.path, "to", f.dir.path)
	return next.log, next.err
}

// copyRest copies what is left, uncommitted records included, which are not truncated while appends are
// held off.
func (s *Set) copyRest(e *entry, f *future) error {
	buffer := make([]byte, moveChunk)
	for {
		n, err := s.copyChunk(e, f, e.log.EndOffset(), &buffer)
		if err != nil {
			return offline(e.partition, err)
		}
		if n > 0 {
			continue
		}
		if f.log.EndOffset() != e.log.EndOffset() {
			return offline(e.partition, fmt.Errorf("the copy ends at %d, the log at %d", f.log.EndOffset(), e.log.EndOffset()))
		}
		return nil
	}
}

// exchange renames both folders, durably, and opens the copy in its new place. Both logs are closed.
//
//	stopped after                      the next start finds                           and does
//	nothing                            orders-3 and the future copy                   resumeMoves: catches up again
//	the first rename                   -delete and -future with one unique part       finishSwaps: the second rename
//	the second rename                  orders-3 in the new directory, -delete         removes -delete later
//
// Each rename is in one directory and durable before the next. The two directories are two volumes as a rule, so no
// single step could do both.
func (s *Set) exchange(e *entry, f *future) (*log.Log, error) {
	tp := e.partition
	gone, err := folderName(tp, Deleted, f.unique)
	if err != nil {
		return nil, err
	}
	if err := s.renameIn(e.dir, tp.String(), gone); err != nil {
		return nil, err
	}
	if err := s.renameIn(f.dir, f.folder, tp.String()); err != nil {
		return nil, err // the next start completes it
	}
	e.dir.found = slices.DeleteFunc(e.dir.found, func(found Found) bool { return found.Folder == tp.String() })
	s.schedule(deletion{e.dir, gone, time.Now().Add(e.log.Config().FileDeleteDelay)})
	f.dir.carry(tp, [kinds]protocol.Offset{
		recoveryPoints: f.log.EndOffset(), logStarts: e.log.StartOffset(),
		highWatermarks: e.log.HighWatermark(), cleanedTo: e.log.CleanedTo(),
	})
	l, err := s.openLog(f.dir, tp.String(), tp, protocol.TopicID{}, e.log.Config(), log.Clean)
	f.dir.forget(tp)
	return l, s.report(f.dir, err)
}

// renameIn renames a folder of d, durably.
func (s *Set) renameIn(d *directory, from, to string) error {
	err := s.files.Rename(d.file(from), d.file(to))
	if err == nil {
		err = s.files.SyncDir(d.path)
	}
	return s.report(d, err)
}

// finishSwaps completes exchanges that a crash had cut, before the folders are opened.
func (s *Set) finishSwaps() {
	for _, d := range s.dirs {
		for i := range d.found {
			f := &d.found[i]
			if f.State != Future || d.err() != nil || !s.replaced(f) {
				continue
			}
			s.logger.Info("completing a move between directories", "partition", f.Partition, "dir", d.path)
			to := f.Partition.String()
			if err := s.renameIn(d, f.Folder, to); err != nil {
				s.logger.Warn("cannot complete the move", "partition", f.Partition, "error", err)
				continue
			}
			f.Folder, f.State = to, Current
		}
	}
}

// replaced reports whether the folder that a copy was to replace is gone already.
func (s *Set) replaced(future *Found) bool {
	gone := false
	for _, d := range s.dirs {
		for _, f := range d.found {
			if f.State == Current && f.Partition == future.Partition {
				return false
			}
			gone = gone || f.State == Deleted && f.unique == future.unique && f.Partition.Partition == future.Partition.Partition
		}
	}
	return gone
}
