package logdir

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Found is a partition's folder, as it was when the directories were opened.
type Found struct {
	// Partition is whose it is; in the names of long deleted and stray ones the topic may be cut short.
	Partition protocol.TopicPartition
	// TopicID is what partition.metadata says, zero where there is none.
	TopicID protocol.TopicID
	// State is what the folder's name says.
	State State
	// Dir is the log directory, Folder the folder's name in it.
	Dir, Folder string
	// Err is why partition.metadata could not be read.
	Err error

	unique string
}

// How a start takes the directories, and why in this order:
//
//	arrange    the list from the configuration
//	lock       .lock of each, the one of metadata.log.dir first: nothing of a directory is read, let alone
//	           written, while another broker may be at it
//	identify   meta.properties of all are compared before any is written: a directory of another cluster
//	           stops the start with nothing changed anywhere
//	format     meta.properties for those that have none
//	list       marker, boot file and folders; no log is opened, so that the caller can compare what there
//	           is with what its store knows, and stop, with everything as it was found
//
// Load then opens the logs, and only its end takes the marker away.

// Open takes the directories: locks them, reads or writes whose they are, and lists their partitions
// without opening any. Directories that are missing are made, empty ones formatted.
//
// A directory that belongs to somebody else or is in use fails the whole. One whose disk fails is left
// offline, unless it is the one of metadata.log.dir or none is left.
//
// An Open that fails leaves nothing behind but directories that were missing, .lock files and, where the comparison
// was passed, new identities.
func Open(o Options) (*Set, error) {
	o = o.withDefaults()
	s := &Set{
		options: o, files: o.FS, logger: o.Logger, steady: NewSteady(o.Now),
		changing: newGate(), wake: newWakes(), failed: make(chan string, len(o.Dirs)+1),
		caughtUp: make(chan protocol.TopicPartition, 1),
	}
	s.config.Store(o.Config)
	s.epoch.Store(int64(protocol.NoBrokerEpoch))
	s.mu.logs = map[protocol.TopicPartition]*entry{}
	s.mu.futures = map[protocol.TopicPartition]*future{}
	s.mu.unverified = map[*log.Log]bool{}
	s.mu.preferred = map[protocol.TopicPartition]*directory{}
	if err := s.arrange(); err != nil {
		return nil, err
	}
	if err := s.take(); err != nil {
		s.unlock() // or a second attempt of this process would be refused
		return nil, err
	}
	s.ended = s.howEnded()
	return s, nil
}

// arrange makes the list of directories from the options.
func (s *Set) arrange() error {
	for _, path := range s.options.Dirs {
		if slices.ContainsFunc(s.dirs, func(d *directory) bool { return samePath(d.path, path) }) {
			return fmt.Errorf("log.dirs names %s twice", path)
		}
		d := newDirectory(filepath.Clean(path))
		d.logs = true
		s.dirs = append(s.dirs, d)
	}
	if len(s.dirs) == 0 {
		return errors.New("log.dirs names no directory")
	}
	for _, d := range s.dirs {
		if samePath(d.path, s.options.MetadataDir) {
			s.metadata = d
		}
	}
	if s.metadata == nil {
		// It is locked, identified and remembered like the others, but holds no partitions.
		s.metadata = newDirectory(filepath.Clean(s.options.MetadataDir))
		s.dirs = append(s.dirs, s.metadata)
	}
	return nil
}

// take locks and reads the directories, the one of the metadata first, and decides whose they are.
func (s *Set) take() error {
	if err := s.lockDirectory(s.metadata, nil); err != nil {
		return err
	}
	known, err := readKnown(s.files, s.metadata.path)
	if err != nil {
		return err
	}
	for _, d := range s.dirs {
		if d == s.metadata {
			continue
		}
		if err := s.lockDirectory(d, known); errors.Is(err, vfs.ErrLocked) {
			return err // two brokers of one configuration, not a disk that fails
		} else if err != nil {
			s.startOffline(d, err)
		}
	}
	if err := s.identify(); err != nil {
		return err
	}
	if err := s.list(); err != nil {
		return err
	}
	if !slices.ContainsFunc(s.dirs, func(d *directory) bool { return d.logs && d.err() == nil }) {
		return fmt.Errorf("no log directory works: %w", s.dirs[0].err())
	}
	return s.writeKnown(known)
}

// startOffline fences a directory that failed before it was used. Unlike fail it is not sent on Failed: the
// caller of Open has not begun to listen, and finds it in Dirs.
func (s *Set) startOffline(d *directory, err error) {
	d.fence(err)
	s.logger.Error("log directory is offline", "dir", d.path, "error", err)
}

// lockDirectory makes a directory where it is missing, unless it was known, locks it and reads its identity,
// whose Version is -1 where it has none yet.
func (s *Set) lockDirectory(d *directory, known []string) error {
	_, err := s.files.Stat(d.path)
	if missing(err) {
		if slices.Contains(known, d.path) {
			return s.unmounted(d)
		}
		err = s.makeDirectory(d.path)
	}
	if err != nil {
		return err
	}
	if d.lock, err = s.files.Lock(d.file(".lock")); errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%s is in use by another broker (Barnabas or Kafka), which holds its %s: %w", d.path, ".lock", vfs.ErrLocked)
	} else if err != nil {
		return err
	}
	if volume, err := s.files.OpenVolume(d.path); err == nil {
		d.volume = volume // from the start: a later one would not be told of what fails until then
	}
	d.identity, err = ReadIdentity(s.files, d.path)
	if missing(err) {
		d.identity = Identity{Version: -1}
		if slices.Contains(known, d.path) {
			return s.unmounted(d)
		}
		return nil
	}
	return err
}

// makeDirectory makes a directory and its parents, durably: what is synced below a name that a power cut
// takes back is lost all the same.
func (s *Set) makeDirectory(path string) error {
	parent := filepath.Dir(path)
	if _, err := s.files.Stat(parent); missing(err) && parent != path {
		if err := s.makeDirectory(parent); err != nil {
			return err
		}
	}
	if err := s.files.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return s.files.SyncDir(parent)
}

// unmounted is the error of a directory that was in use in an earlier life, and has nothing now.
func (s *Set) unmounted(d *directory) error {
	return fmt.Errorf("%s was in use before and is empty now: is its disk mounted? (To use it as an empty one, delete its line in %s)",
		d.path, s.metadata.file(knownFile))
}

// identify compares the identities that were found with each other and with the options, and gives one to
// the directories that have none.
func (s *Set) identify() error {
	s.broker, s.cluster = s.options.BrokerID, s.options.ClusterID
	var formatted *directory
	for _, d := range s.dirs {
		if d.err() != nil || d.identity.Version < 0 {
			continue
		}
		if err := d.identity.check(d.path, s.broker, s.cluster); err != nil {
			return err
		}
		if s.broker == protocol.NoBroker {
			s.broker = d.identity.Node
		}
		s.cluster = cmp.Or(s.cluster, d.identity.Cluster)
		formatted = d
	}
	if formatted != nil && s.metadata.identity.Version < 0 {
		// The list of known directories is missing with it, so that this case needs a rule of its own: a
		// new store in an empty metadata directory would know none of the partitions of the others.
		return fmt.Errorf("%s is metadata.log.dir and empty, while %s belongs to the cluster %s: is its disk mounted, and metadata.log.dir right?",
			s.metadata.path, formatted.path, formatted.identity.Cluster)
	}
	if s.broker == protocol.NoBroker {
		s.broker = defaultBroker
	}
	if s.cluster == "" {
		s.cluster = protocol.NewTopicID().String()
	}
	for _, d := range s.dirs {
		if d.err() != nil || d.identity.Version >= 0 {
			continue
		}
		if err := s.format(d); err != nil {
			if d == s.metadata {
				return err
			}
			s.startOffline(d, err)
		}
	}
	return nil
}

// defaultBroker is the id of a broker that was given none, as in Kafka's own example configuration.
const defaultBroker protocol.BrokerID = 1

// format writes the identity of an empty directory. One with partitions in it has lost its own.
func (s *Set) format(d *directory) error {
	entries, err := s.files.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, _, _, ok := parseFolder(e.Name()); ok && e.IsDir() {
			return fmt.Errorf("%s has partitions (%s) but no %s: put it back, or move them away", d.path, e.Name(), identityFile)
		}
	}
	d.identity = Identity{Version: 1, Node: s.broker, Cluster: s.cluster, Directory: protocol.NewTopicID()}
	s.logger.Info("formatting an empty log directory", "dir", d.path, "cluster", s.cluster, "broker", s.broker)
	return WriteIdentity(s.files, d.path, d.identity, s.options.Now())
}

// list reads what is in the directories. The one of the metadata must be readable, as the store in it has to
// be; any other may fail.
func (s *Set) list() error {
	for _, d := range s.dirs {
		if d.err() != nil {
			continue
		}
		if err := s.listDirectory(d); err != nil {
			if d == s.metadata {
				return err
			}
			s.startOffline(d, err)
		}
	}
	return nil
}

// listDirectory reads one directory's marker, boot file and folders.
func (s *Set) listDirectory(d *directory) (err error) {
	if d.clean, _, err = readMarker(s.files, d.path); err != nil {
		return err
	}
	if d.boot, err = readBoot(s.files, d.path); err != nil || !d.logs {
		return err
	}
	entries, err := s.files.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		// Kafka's metadata log has the form of a partition, and is not one of this broker's.
		tp, state, unique, ok := parseFolder(e.Name())
		if ok && tp.Topic != protocol.ClusterMetadataTopic {
			d.found = append(d.found, Found{Partition: tp, State: state, Dir: d.path, Folder: e.Name(), unique: unique})
		} else if !ignoredFolder(e.Name()) {
			s.logger.Info("ignoring a folder that is no partition", "dir", d.path, "folder", e.Name())
		}
	}
	s.readTopicIDs(d)
	return nil
}

// ignoredFolder names the folders of others that are found in log directories: what a file system check
// leaves, what tiered storage of Kafka caches, and the metadata log of KRaft.
func ignoredFolder(name string) bool {
	return name == "lost+found" || name == "remote-log-index-cache" || name == protocol.ClusterMetadataTopic+"-0"
}

// topicIDReaders is how many partition.metadata are read at a time: they are small files in many folders, so
// that a cold disk is waited for more than it works.
const topicIDReaders = 8

// readTopicIDs reads the topic ids of a directory's folders, several at a time.
func (s *Set) readTopicIDs(d *directory) {
	var wg sync.WaitGroup
	work := make(chan *Found)
	for range min(topicIDReaders, len(d.found)) {
		wg.Go(func() {
			for f := range work {
				f.TopicID, f.Err = log.ReadTopicID(s.files, filepath.Join(f.Dir, f.Folder))
			}
		})
	}
	for i := range d.found {
		work <- &d.found[i]
	}
	close(work)
	wg.Wait()
}

// Found lists the folders of partitions that were there at Open, in the order of directories and names.
func (s *Set) Found() []Found {
	s.changing.lock()
	defer s.changing.unlock()
	var all []Found
	for _, d := range s.dirs {
		all = append(all, d.found...)
	}
	return all
}

// unlock gives the directories back. Their .lock files stay, as Kafka's do: removing one would let two
// brokers hold a lock each, on two files of one name.
func (s *Set) unlock() {
	for _, d := range s.dirs {
		if d.volume != nil {
			_ = d.volume.Close() // nothing was written through it
			d.volume = nil
		}
		if d.lock != nil {
			_ = d.lock.Close() // likewise
			d.lock = nil
		}
	}
}
