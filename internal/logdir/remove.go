package logdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A deleted partition goes in two steps, of which only the first is waited for:
//
//	1. its folder is renamed to -delete and the log directory synced: from now on no start finds it
//	2. after file.delete.delay.ms the files are removed, one name at a time; a stop in between leaves a
//	   smaller -delete folder, which the next start takes up
//
// The caller tells the store only after the first: were the name not durable, a power cut would bring back a
// partition of a topic that nobody knows any more. Reads under way keep their files open over both steps.

// deletion is a folder whose files go when it is due.
type deletion struct {
	dir    *directory
	folder string
	due    time.Time // by the monotonic clock
}

// Delete takes partitions away: their folders are renamed to -delete, durably, and their files go after
// file.delete.delay.ms. Reads under way go on. One that is not here is no error. It returns the first
// error; a directory whose disk fails goes offline.
func (s *Set) Delete(partitions ...protocol.TopicPartition) error {
	return s.setAside(Deleted, partitions)
}

// MarkStray keeps partitions aside that should not be here: their folders are renamed to -stray, durably,
// and stay until [Set.RemoveStray]. It also takes folders that were found and not loaded.
func (s *Set) MarkStray(partitions ...protocol.TopicPartition) error {
	return s.setAside(Stray, partitions)
}

// setAside renames folders to the names of a state, and syncs each directory once.
func (s *Set) setAside(state State, partitions []protocol.TopicPartition) error {
	s.changing.lock()
	defer s.changing.unlock()
	if err := s.open(); err != nil {
		return err
	}
	var errs []error
	touched := map[*directory][]deletion{}
	for _, tp := range partitions {
		s.cancelMove(tp)
		d, gone, err := s.setOneAside(state, tp)
		errs = append(errs, err)
		if err == nil && d != nil {
			touched[d] = append(touched[d], gone)
		}
	}
	for d, gone := range touched {
		if err := s.report(d, s.files.SyncDir(d.path)); err != nil {
			errs = append(errs, err)
		} else if state == Deleted {
			s.schedule(gone...)
		}
	}
	return errors.Join(errs...)
}

// setOneAside renames the folder of one partition. The directory is nil where there is none.
//
// A panic or a kill between the table and the rename leaves the folder under its name: the next start opens it, and
// the caller, who was not told of success, deletes it again.
func (s *Set) setOneAside(state State, tp protocol.TopicPartition) (*directory, deletion, error) {
	e := s.entry(tp)
	if e == nil {
		d, folder := s.foundAt(tp)
		if d == nil {
			return nil, deletion{}, nil
		}
		return s.rename(d, folder, tp, state, s.config.Load().Duration("log.segment.delete.delay.ms"))
	}
	if err := e.dir.err(); err != nil {
		return nil, deletion{}, err
	}
	// Out of the table first: whoever asks from now on gets no log, rather than one that is closed.
	s.replace(tp, e, nil)
	delay := s.config.Load().Duration("log.segment.delete.delay.ms")
	if e.log != nil {
		delay = e.log.Config().FileDeleteDelay
		e.log.CloseUnclean()
	}
	d, gone, err := s.rename(e.dir, tp.String(), tp, state, delay)
	if err != nil {
		// The folder is still there: so is the partition, offline, and the caller may try again.
		s.replace(tp, nil, &entry{partition: tp, dir: e.dir, err: err})
	}
	return d, gone, err
}

// rename sets a folder aside that nobody has open.
func (s *Set) rename(d *directory, folder string, tp protocol.TopicPartition, state State, delay time.Duration) (*directory, deletion, error) {
	name, err := folderName(tp, state, newUnique())
	if err != nil {
		return nil, deletion{}, err
	}
	if err := s.report(d, s.files.Rename(d.file(folder), d.file(name))); err != nil {
		return nil, deletion{}, offline(tp, err)
	}
	d.forget(tp)
	d.found = slices.DeleteFunc(d.found, func(f Found) bool { return f.Folder == folder })
	s.logger.Info("partition is set aside", "partition", tp, "dir", d.path, "folder", name)
	return d, deletion{d, name, time.Now().Add(delay)}, nil
}

// RemoveStray deletes the files of a stray folder at once.
func (s *Set) RemoveStray(f Found) error {
	if f.State != Stray {
		return fmt.Errorf("%s in %s is not a stray folder", f.Folder, f.Dir)
	}
	d, err := s.directory(f.Dir)
	if err != nil {
		return err
	}
	return s.report(d, s.files.RemoveAll(d.file(f.Folder)))
}

// scheduleLeftovers lets the folders go that an earlier process had set aside for deletion. Not while a
// directory is offline: it may hold the copy that replaces one of them, and the folder here is the proof
// that the copy is whole.
func (s *Set) scheduleLeftovers() {
	if d := s.blind(); d != nil {
		s.logger.Warn("keeping the folders of deleted partitions while a log directory is offline", "offline", d.path)
		return
	}
	delay := s.config.Load().Duration("log.segment.delete.delay.ms")
	for _, d := range s.dirs {
		for _, f := range d.found {
			if f.State == Deleted && d.err() == nil {
				s.schedule(deletion{d, f.Folder, time.Now().Add(delay)})
			}
		}
	}
}

// schedule adds folders to those that the background removes.
func (s *Set) schedule(gone ...deletion) {
	s.mu.Lock()
	s.mu.deletions = append(s.mu.deletions, gone...)
	s.mu.Unlock()
	s.wake.deletions.poke()
}

// removalRetry is when a folder is tried again that could not be removed.
const removalRetry = time.Minute

// removeDue removes the folders whose time has come, and says how long it is to the next.
func (s *Set) removeDue(ctx context.Context) (next time.Duration) {
	next = forever
	for _, g := range s.takeDue() {
		if ctx.Err() != nil || g.dir.err() != nil {
			s.putBack(g)
			continue
		}
		if err := s.files.RemoveAll(g.dir.file(g.folder)); s.report(g.dir, err) != nil {
			s.logger.Warn("cannot remove a deleted partition, will try again", "dir", g.dir.path, "folder", g.folder, "error", err)
			g.due = time.Now().Add(removalRetry)
			s.putBack(g)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, g := range s.mu.deletions {
		if g.dir.err() == nil {
			next = min(next, max(0, time.Until(g.due)))
		}
	}
	return next
}

// takeDue takes the folders off the list whose time has come.
func (s *Set) takeDue() []deletion {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var due []deletion
	s.mu.deletions = slices.DeleteFunc(s.mu.deletions, func(g deletion) bool {
		if g.due.After(now) {
			return false
		}
		due = append(due, g)
		return true
	})
	return due
}

// putBack returns one that could not be removed.
func (s *Set) putBack(g deletion) {
	s.mu.Lock()
	s.mu.deletions = append(s.mu.deletions, g)
	s.mu.Unlock()
}
