package logdir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// What is durable when a partition has been created is its folder's name in the log directory; one sync of
// that directory covers all partitions that were created together. Its files (the first segment,
// partition.metadata) are synced by the first flush of the log. A power cut in between leaves a folder that
// is empty or has an empty partition.metadata, and opens as an empty log.

// Spec is a partition to create.
type Spec struct {
	// Partition and TopicID name it.
	Partition protocol.TopicPartition
	TopicID   protocol.TopicID
	// Config are its topic's settings.
	Config config.Topic
	// New says that the partition was just made in the cluster. One that is not new may lie in a directory
	// that was offline at the start, and is refused while there is such a directory: an empty log would
	// take the place of its records.
	New bool
}

// Create makes the log of a partition, or opens the folder that was found for it, and makes its name
// durable. It is for partitions that may not be new; see [Spec] and [Set.CreateAll].
func (s *Set) Create(tp protocol.TopicPartition, id protocol.TopicID, topic config.Topic) (*log.Log, error) {
	logs, errs := s.CreateAll([]Spec{{Partition: tp, TopicID: id, Config: topic}})
	return logs[0], errs[0]
}

// CreateAll creates partitions, each in the directory that has the fewest, and syncs each directory once.
// Both results are as long as specs; where there is an error, KAFKA_STORAGE_ERROR if the disks' fault, the
// log is nil. One that exists is returned as it is; where it is another topic's, by its id, the error is
// INCONSISTENT_TOPIC_ID.
//
// It holds the changing gate for as long as the disk takes. Partitions of a topic are created by one call, so
// that they share the sync.
func (s *Set) CreateAll(specs []Spec) ([]*log.Log, []error) {
	s.changing.lock()
	defer s.changing.unlock()
	logs, errs := make([]*log.Log, len(specs)), make([]error, len(specs))
	made := map[*directory][]int{}
	counts := s.counts()
	for i, spec := range specs {
		var d *directory
		if logs[i], d, errs[i] = s.create(spec, counts); d != nil {
			made[d] = append(made[d], i)
		}
	}
	for d, indexes := range made {
		// The logs stay in the table where this fails: their directory is offline then, or full.
		err := s.report(d, s.files.SyncDir(d.path))
		for _, i := range indexes {
			if err != nil {
				logs[i], errs[i] = nil, offline(specs[i].Partition, err)
			}
		}
	}
	return logs, errs
}

// counts is how many partitions each directory has, copies that catch up included.
func (s *Set) counts() map[*directory]int {
	counts := map[*directory]int{}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.mu.logs {
		counts[e.dir]++
	}
	for _, f := range s.mu.futures {
		counts[f.dir]++
	}
	return counts
}

// create makes one partition. The directory is nil where nothing was made.
func (s *Set) create(spec Spec, counts map[*directory]int) (*log.Log, *directory, error) {
	if err := s.open(); err != nil {
		return nil, nil, err
	}
	tp := spec.Partition
	if l := s.Get(tp); l != nil {
		if err := l.AssignTopicID(spec.TopicID); err != nil {
			return nil, nil, err // already with its code
		}
		return l, nil, nil
	}
	if err := s.Err(tp); err != nil {
		return nil, nil, err
	}
	if d, folder := s.foundAt(tp); d != nil {
		// It was there at the start, and the store has learned of it since.
		l, err := s.createIn(d, folder, spec, s.trust(d, folder))
		return l, d, err
	}
	if !spec.New {
		if d := s.blind(); d != nil {
			return nil, nil, offline(tp, fmt.Errorf("it may be in a directory that cannot be read: %w", d.err()))
		}
	}
	var errs []error
	for _, d := range s.candidates(tp, counts) {
		l, err := s.createIn(d, tp.String(), spec, log.Clean)
		if err == nil {
			counts[d]++
			return l, d, nil
		}
		errs = append(errs, err)
		if d.err() == nil && !vfs.IsFull(err) {
			break // not the directory's fault
		}
	}
	return nil, nil, offline(tp, errors.Join(errs...))
}

// foundAt is where a partition lies that was there at Open and was not opened since.
func (s *Set) foundAt(tp protocol.TopicPartition) (*directory, string) {
	for _, d := range s.dirs {
		for i := range d.found {
			if f := &d.found[i]; f.State == Current && f.Partition == tp && d.err() == nil {
				return d, f.Folder
			}
		}
	}
	return nil, ""
}

// blind is a directory whose partitions nobody knows, since it was offline when the others were loaded.
func (s *Set) blind() *directory {
	for _, d := range s.dirs {
		if d.logs && d.err() != nil && !d.loaded.Load() {
			return d
		}
	}
	return nil
}

// Absent reports whether there is for certain no log of a partition: none is known, and no directory that could not be
// read may hold one.
func (s *Set) Absent(tp protocol.TopicPartition) bool {
	d, _ := s.foundAt(tp)
	return s.entry(tp) == nil && d == nil && s.blind() == nil
}

// candidates are the directories that work, in the order in which they are tried: the one that was asked
// for, then by how few partitions they have. Cordoned ones are taken only if there is no other.
func (s *Set) candidates(tp protocol.TopicPartition, counts map[*directory]int) []*directory {
	s.mu.RLock()
	preferred := s.mu.preferred[tp]
	s.mu.RUnlock()
	working := slices.DeleteFunc(slices.Clone(s.dirs), func(d *directory) bool { return !d.logs || d.err() != nil })
	open := slices.DeleteFunc(slices.Clone(working), func(d *directory) bool { return d != preferred && s.cordoned(d) })
	if len(open) == 0 {
		open = working
	}
	slices.SortStableFunc(open, func(a, b *directory) int {
		switch {
		case a == preferred:
			return -1
		case b == preferred:
			return 1
		}
		return cmp.Compare(counts[a], counts[b])
	})
	return open
}

// createIn opens a log in a folder of d and puts it into the table. A folder that it made and could not
// open is removed again.
func (s *Set) createIn(d *directory, folder string, spec Spec, trust log.Trust) (*log.Log, error) {
	_, err := s.files.Stat(d.file(folder))
	fresh := missing(err) // an error of another kind comes again below
	l, err := s.openLog(d, folder, spec.Partition, spec.TopicID, spec.Config, trust)
	if err != nil {
		if _ = s.report(d, err); fresh && d.err() == nil {
			_ = s.report(d, s.files.RemoveAll(d.file(folder)))
		}
		return nil, err
	}
	if err := s.install(&entry{partition: spec.Partition, dir: d, log: l}); err != nil {
		return nil, err
	}
	d.found = slices.DeleteFunc(d.found, func(f Found) bool { return f.Folder == folder })
	s.mu.Lock()
	delete(s.mu.preferred, spec.Partition)
	s.mu.Unlock()
	return l, nil
}
