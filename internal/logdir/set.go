package logdir

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Options say which directories to open, and for whom.
type Options struct {
	// FS holds the directories.
	FS vfs.FS
	// Dirs are log.dirs; the order decides where placement by count has a tie.
	Dirs []string
	// MetadataDir is metadata.log.dir: where the directories are remembered, and whose failure the broker
	// does not survive. Empty means the first of Dirs; it need not be one of them.
	MetadataDir string
	// BrokerID is this broker, or NoBroker for the one that the directories say.
	BrokerID protocol.BrokerID
	// ClusterID is the cluster, or empty for the one that the directories say, or a new one.
	ClusterID string
	// Config is the broker's configuration at the start; see [Set.SetConfig].
	Config *config.Broker
	// Now is the system's wall clock; nil means time.Now.
	Now func() time.Time
	// Logger hears of repairs and failures; nil means silence.
	Logger *slog.Logger
	// BootID is [KernelBootID], or empty where nothing shall be trusted after the kill of a process.
	BootID string
	// Files bounds the open files of all logs; nil means a cache of its own.
	Files *log.FileCache
}

// ownFiles is how many segment files a Set without a shared cache keeps open.
const ownFiles = 1000

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.MetadataDir == "" && len(o.Dirs) > 0 {
		o.MetadataDir = o.Dirs[0]
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Files == nil {
		o.Files = log.NewFileCache(ownFiles)
	}
	return o
}

// Set is all logs of one broker. All methods are safe for concurrent use. Its life is Open, Load, Run (in a
// goroutine of the caller's), Close.
//
// Locks, in this order: changing is held, also across file I/O, by whatever adds, removes or moves
// partitions; a directory's writing around its small files; mu guards the table and is never held across
// anything slow. Nothing of all this is on the way of a record: whoever serves a partition keeps the log
// that Get gave out.
type Set struct {
	options  Options
	files    vfs.FS
	logger   *slog.Logger
	steady   *Steady
	dirs     []*directory // in the order of the options; the metadata directory last where it has no logs
	metadata *directory
	ended    ended // how the life before ended
	config   atomic.Pointer[config.Broker]
	broker   protocol.BrokerID
	cluster  string

	failed     chan string
	failing    sync.WaitGroup // goroutines that close the logs of failed directories
	changing   gate
	wake       wakes
	caughtUp   chan protocol.TopicPartition
	moves      pacer
	background background
	epoch      atomic.Int64 // broker epoch for the marker
	loaded     atomic.Bool
	closed     atomic.Bool

	mu struct {
		sync.RWMutex
		// logs is the table: every partition that this broker has, offline ones included.
		logs map[protocol.TopicPartition]*entry
		// sorted is the table in the order of partitions; nil after a change, until somebody asks.
		sorted []*entry
		// futures are the copies that catch up in another directory.
		futures map[protocol.TopicPartition]*future
		// preferred is where partitions are to be made that are not here yet.
		preferred map[protocol.TopicPartition]*directory
		// deletions are folders that wait for their end.
		deletions []deletion
		// unverified are the logs that were trusted after the kill of a process, and not read since.
		unverified map[*log.Log]bool
	}
}

// entry is one partition of this broker. It is replaced, never changed, but for what was written.
//
//	log   err   the partition
//	set   nil   works, unless log.Err or dir.err say otherwise
//	nil   set   is offline: damaged, poisoned, or with its directory
//
// Replaced and never changed means that a pointer to an entry is a picture: whoever acts on it later asks replace,
// which refuses if another has come since.
type entry struct {
	partition protocol.TopicPartition
	dir       *directory
	log       *log.Log // nil where err says why
	err       error
	wrote     written
	rest      rest
}

// gate is a lock that may be held across file I/O: a one-slot channel, since a goroutine that waits for a
// sync.Mutex would stop the virtual clock of testing/synctest.
type gate chan struct{}

// newGate makes one that is free.
func newGate() gate { return make(gate, 1) }

// lock takes it, and waits for whoever has it.
func (g gate) lock() { g <- struct{}{} }

// unlock gives it back.
func (g gate) unlock() { <-g }

// ClusterID is the cluster that the directories belong to.
func (s *Set) ClusterID() string { return s.cluster }

// BrokerID is the broker that the directories belong to.
func (s *Set) BrokerID() protocol.BrokerID { return s.broker }

// Steady is the clock for decisions that delete by age.
func (s *Set) Steady() *Steady { return s.steady }

// Failed tells the path of each directory that fails after Open; those that failed before are in Dirs.
// Where it is MetadataDir, the broker must stop.
func (s *Set) Failed() <-chan string { return s.failed }

// WentOffline is readable after partitions went offline: by damage, by a bug, or with their directory. Whoever
// serves them must stop, reads included; [Set.Err] tells which they are.
func (s *Set) WentOffline() <-chan struct{} { return s.wake.offline }

// MetadataDir is the directory of metadata.log.dir.
func (s *Set) MetadataDir() string { return s.metadata.path }

// SetConfig puts a new broker configuration in force. Those of topics go to their logs.
func (s *Set) SetConfig(c *config.Broker) { s.config.Store(c) }

// SetBrokerEpoch sets what a clean stop writes into its marker.
func (s *Set) SetBrokerEpoch(epoch protocol.BrokerEpoch) { s.epoch.Store(int64(epoch)) }

// entry is what the table has of a partition, or nil.
func (s *Set) entry(tp protocol.TopicPartition) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.logs[tp]
}

// Get is the log of a partition, or nil where there is none that works; [Set.Err] tells the two apart.
func (s *Set) Get(tp protocol.TopicPartition) *log.Log {
	if e := s.entry(tp); e != nil {
		return e.log
	}
	return nil
}

// Err is why a partition that this broker has is offline, as KAFKA_STORAGE_ERROR; nil where it works or is
// not here.
func (s *Set) Err(tp protocol.TopicPartition) error {
	e := s.entry(tp)
	switch {
	case e == nil:
		return nil
	case e.log == nil:
		return e.err
	}
	return e.log.Err()
}

// All lists the logs that work, in the order of their partitions.
func (s *Set) All() []*log.Log {
	entries := s.entries(nil)
	logs := make([]*log.Log, 0, len(entries))
	for _, e := range entries {
		if e.log != nil {
			logs = append(logs, e.log)
		}
	}
	return logs
}

// Offline lists the partitions that this broker has but cannot serve, in order.
func (s *Set) Offline() []protocol.TopicPartition {
	var out []protocol.TopicPartition
	for _, e := range s.entries(nil) {
		if e.log == nil || e.log.Err() != nil {
			out = append(out, e.partition)
		}
	}
	return out
}

// entries lists the partitions of one directory, or of all, in order. The result is shared, and must not be
// changed: the background work asks every second, and the table seldom changes.
func (s *Set) entries(of *directory) []*entry {
	s.mu.RLock()
	sorted := s.mu.sorted
	s.mu.RUnlock()
	if sorted == nil {
		sorted = s.sort()
	}
	if of == nil {
		return sorted
	}
	var some []*entry
	for _, e := range sorted {
		if e.dir == of {
			some = append(some, e)
		}
	}
	return some
}

// sort fills the sorted form of the table.
func (s *Set) sort() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.sorted == nil {
		s.mu.sorted = slices.AppendSeq(make([]*entry, 0, len(s.mu.logs)), maps.Values(s.mu.logs))
		slices.SortFunc(s.mu.sorted, func(a, b *entry) int { return comparePartitions(a.partition, b.partition) })
	}
	return s.mu.sorted
}

// replace puts a new entry where old is, unless something else is there by now; either may be nil. Whoever
// changes the table in the background thereby loses against a failure of the directory that came first.
func (s *Set) replace(tp protocol.TopicPartition, old, next *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.logs[tp] != old {
		return false
	}
	s.mu.sorted = nil
	if next == nil {
		delete(s.mu.logs, tp)
	} else {
		s.mu.logs[tp] = next
		next.dir.membership.Add(1)
	}
	if old != nil {
		delete(s.mu.unverified, old.log)
		old.dir.membership.Add(1)
	}
	return true
}

// DirInfo describes a directory.
type DirInfo struct {
	// Path is the directory, as configured.
	Path string
	// ID is its own id, zero where meta.properties has none.
	ID DirectoryID
	// Err is why it is offline, as KAFKA_STORAGE_ERROR; nil where it works.
	Err error
	// Cordoned directories get no new partitions (cordoned.log.dirs).
	Cordoned bool
	// Total and Usable are the size of its volume and what is free of it for us, in bytes.
	Total, Usable uint64
	// Logs are the partitions in it that work, in order, and Futures the copies that catch up in it.
	Logs, Futures []*log.Log
}

// Dirs describes all log directories, in the order of the options.
func (s *Set) Dirs() []DirInfo {
	var infos []DirInfo
	for _, d := range s.dirs {
		if d.logs {
			infos = append(infos, s.describe(d))
		}
	}
	return infos
}

// describe looks at one directory. A volume that cannot even be asked has failed.
func (s *Set) describe(d *directory) DirInfo {
	info := DirInfo{Path: d.path, ID: d.identity.Directory, Err: d.err(), Cordoned: s.cordoned(d)}
	if info.Err != nil {
		return info
	}
	total, usable, err := s.files.Space(d.path)
	if err != nil {
		_ = s.report(d, err)
		info.Err = d.err()
		return info
	}
	info.Total, info.Usable = total, usable
	for _, e := range s.entries(d) {
		if e.log != nil {
			info.Logs = append(info.Logs, e.log)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, tp := range slices.SortedFunc(maps.Keys(s.mu.futures), comparePartitions) {
		if f := s.mu.futures[tp]; f.dir == d {
			info.Futures = append(info.Futures, f.log)
		}
	}
	return info
}

// DirOf is the directory of a partition; false where this broker does not have it.
func (s *Set) DirOf(tp protocol.TopicPartition) (string, bool) {
	if e := s.entry(tp); e != nil {
		return e.dir.path, true
	}
	return "", false
}

// cordoned reports whether a directory gets no new partitions.
func (s *Set) cordoned(d *directory) bool {
	return slices.ContainsFunc(s.config.Load().List("cordoned.log.dirs"), func(path string) bool {
		return path == "*" || samePath(path, d.path)
	})
}

// directory finds an online log directory by its path.
func (s *Set) directory(path string) (*directory, error) {
	for _, d := range s.dirs {
		if d.logs && samePath(d.path, path) {
			return d, d.err()
		}
	}
	return nil, protocol.Errorf(protocol.LogDirNotFound, "%s is not one of this broker's log directories", path)
}

// Report tells the Set that an operation on a partition failed: where the error is the disk's, the
// directory goes offline. Errors of writes are found without it, a second later.
func (s *Set) Report(tp protocol.TopicPartition, err error) {
	e := s.entry(tp)
	if e != nil {
		_ = s.report(e.dir, err)
	}
}

// offline makes what a partition answers that cannot be served.
func offline(tp protocol.TopicPartition, err error) error {
	return protocol.Errorf(protocol.KafkaStorageError, "partition %s is offline: %w", tp, err)
}

// open is false once Close has begun.
func (s *Set) open() error {
	if s.closed.Load() {
		return fmt.Errorf("the log directories are closed: %w", context.Canceled)
	}
	return nil
}
