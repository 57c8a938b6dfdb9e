package logdir

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A move takes a partition from one directory to another while it serves:
//
//	Move      makes topic-partition.<unique>-future in the other directory
//	the job   copies committed batches into it, paced, until it has all, and tells so on CaughtUp
//	Swap      called by whoever holds appends off: copies the rest, syncs the copy, renames
//	            1. the current folder to topic-partition.<unique>-delete
//	            2. the future folder to topic-partition
//
// The unique part is the same in both names: a start that finds a future folder, no current one and a
// deleted one with the same unique part was cut between 1 and 2, and does 2. Any other future folder goes
// on catching up if its partition has a log, and is left alone otherwise.

// future is a copy that catches up.
type future struct {
	partition protocol.TopicPartition
	dir       *directory
	folder    string
	unique    string
	log       *log.Log
	told      time.Time // when CaughtUp last said so; for the job alone
}

// moveChunk is how much is copied at once, in bytes; a larger batch is copied whole.
const moveChunk = 1 << 20

// Move starts to move a partition to another directory. To where it is already ends a move under way. A
// partition that is not here will be made there: the error is REPLICA_NOT_AVAILABLE, as in Kafka. A
// directory that is not configured is LOG_DIR_NOT_FOUND, one that is offline KAFKA_STORAGE_ERROR.
//
//	                  Move             the job, CaughtUp            Swap
//	orders-3          serving          serving                      -delete, closed
//	orders-3...-future  empty copy     a prefix of committed        orders-3, serving
//
// A move survives restarts without a record of its own: the future folder is the record.
func (s *Set) Move(tp protocol.TopicPartition, path string) error {
	s.changing.lock()
	defer s.changing.unlock()
	if err := s.open(); err != nil {
		return err
	}
	d, err := s.directory(path)
	if err != nil {
		return err
	}
	e, err := s.movable(tp, d)
	if err != nil {
		return err
	}
	s.mu.RLock()
	f := s.mu.futures[tp]
	s.mu.RUnlock()
	if f != nil && f.dir == d {
		return nil
	}
	s.cancelMove(tp)
	if e.dir == d {
		return nil
	}
	return s.startMove(e, d)
}

// movable finds the entry of a partition that can be moved, or remembers where it is to be made.
func (s *Set) movable(tp protocol.TopicPartition, to *directory) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.mu.logs[tp]
	switch {
	case e == nil:
		s.mu.preferred[tp] = to
		return nil, protocol.Errorf(protocol.ReplicaNotAvailable, "partition %s is not on this broker; it will be made in %s", tp, to.path)
	case e.log == nil:
		return nil, e.err
	}
	return e, e.log.Err()
}

// startMove makes the future folder, empty.
func (s *Set) startMove(e *entry, to *directory) error {
	unique := newUnique()
	folder, err := folderName(e.partition, Future, unique)
	if err != nil {
		return err
	}
	l, err := s.openFuture(to, folder, e, e.log.TopicID(), log.Clean)
	if err == nil {
		err = s.files.SyncDir(to.path)
	}
	if err != nil {
		return offline(e.partition, s.report(to, err))
	}
	s.addFuture(&future{partition: e.partition, dir: to, folder: folder, unique: unique, log: l})
	s.logger.Info("moving a partition", "partition", e.partition, "from", e.dir.path, "to", to.path)
	return nil
}

// openFuture opens, or makes, the log of a copy. Its bounds are the files' own: no checkpoint speaks of copies.
func (s *Set) openFuture(d *directory, folder string, e *entry, id protocol.TopicID, trust log.Trust) (l *log.Log, err error) {
	defer s.recovered("opening "+folder, &err)
	return log.Open(log.Options{
		FS: s.files, Dir: d.file(folder), Partition: e.partition, TopicID: id, Config: e.log.Config(), Now: s.options.Now,
		Files: s.options.Files, Trust: trust, Logger: s.logger,
		RecoveryPoint: protocol.NoOffset, StartOffset: protocol.NoOffset, HighWatermark: protocol.NoOffset, CleanedTo: protocol.NoOffset,
	})
}

// addFuture puts a copy into the table and calls the job.
func (s *Set) addFuture(f *future) {
	s.mu.Lock()
	s.mu.futures[f.partition] = f
	s.mu.Unlock()
	s.wake.moves.poke()
}

// takeFuture takes f out of the table; false where it is not there any more.
func (s *Set) takeFuture(f *future) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.futures[f.partition] != f {
		return false
	}
	delete(s.mu.futures, f.partition)
	return true
}

// Future is the copy of a partition that catches up, and its directory; nil where there is none.
func (s *Set) Future(tp protocol.TopicPartition) (*log.Log, string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if f := s.mu.futures[tp]; f != nil {
		return f.log, f.dir.path
	}
	return nil, ""
}

// cancelMove ends a move. The copy goes at once; its folder gets the name of a deleted one first, lest the
// next start takes the move up again.
func (s *Set) cancelMove(tp protocol.TopicPartition) {
	s.mu.RLock()
	f := s.mu.futures[tp]
	s.mu.RUnlock()
	if f == nil || !s.takeFuture(f) {
		return
	}
	f.log.CloseUnclean()
	s.discard(f.dir, f.folder, tp)
}

// discard lets the folder of a copy go.
func (s *Set) discard(d *directory, folder string, tp protocol.TopicPartition) {
	name, err := folderName(tp, Deleted, newUnique())
	if err == nil {
		err = s.report(d, s.files.Rename(d.file(folder), d.file(name)))
	}
	if err != nil {
		s.logger.Warn("cannot discard a copy", "partition", tp, "dir", d.path, "folder", folder, "error", err)
		return
	}
	s.schedule(deletion{d, name, time.Now()})
}

// dropFutures forgets the copies that a failed directory holds or feeds, for the caller to close. Their
// folders stay.
func (s *Set) dropFutures(d *directory) (dropped []*future) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tp, f := range s.mu.futures {
		if e := s.mu.logs[tp]; f.dir == d || e == nil || e.dir == d {
			delete(s.mu.futures, tp)
			dropped = append(dropped, f)
		}
	}
	return dropped
}

// closeFutures closes the copies for a clean stop; they go on after the next start. It returns the folders
// of those that could not be closed cleanly.
func (s *Set) closeFutures() map[*directory][]string {
	dirty := map[*directory][]string{}
	for _, f := range s.moving() {
		if s.takeFuture(f) && s.report(f.dir, f.log.CloseClean()) != nil {
			f.log.CloseUnclean()
			dirty[f.dir] = append(dirty[f.dir], f.folder)
		}
	}
	return dirty
}

// moving lists the copies in the order of their partitions.
func (s *Set) moving() []*future {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*future, 0, len(s.mu.futures))
	for _, f := range s.mu.futures {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *future) int { return comparePartitions(a.partition, b.partition) })
	return all
}

// resumeMoves takes up the moves that an earlier process had begun.
func (s *Set) resumeMoves() {
	for _, d := range s.dirs {
		for _, f := range d.found {
			if f.State != Future || d.err() != nil {
				continue
			}
			e := s.entry(f.Partition)
			if e == nil || e.log == nil || e.dir == d {
				s.logger.Warn("leaving a copy alone, whose partition has no log in another directory", "dir", d.path, "folder", f.Folder)
				continue
			}
			l, err := s.openFuture(d, f.Folder, e, f.TopicID, s.trust(d, f.Folder))
			if err == nil {
				s.addFuture(&future{partition: f.Partition, dir: d, folder: f.Folder, unique: f.unique, log: l})
			} else if _ = s.report(d, err); d.err() == nil {
				s.logger.Warn("starting a move anew, its copy cannot be used", "partition", f.Partition, "error", err)
				s.discard(d, f.Folder, f.Partition)
				_ = s.report(d, s.startMove(e, d))
			}
		}
	}
}
