package logdir

import (
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// directory is one log directory.
//
//	states    opened ── Load ──▶ loaded ── Close ──▶ closed (marker, if all its logs were synced)
//	             │                 │
//	             └──── failure ────┴──▶ offline, until the next start
type directory struct {
	// Fixed by Open.
	path     string
	logs     bool       // whether it is one of log.dirs; a metadata directory need not be
	lock     io.Closer  // nil where it could not be taken
	volume   vfs.Volume // nil where it cannot be synced as a whole
	identity Identity
	clean    bool // the marker was there

	// found are its folders; guarded by Set.changing after Open. Entries go when a folder is opened by
	// Create, renamed or moved; those that Load opened stay, since Found tells of them.
	found []Found

	failure    atomic.Pointer[error] // why it is offline
	loaded     atomic.Bool           // all its partitions were opened, or found damaged
	membership atomic.Int64          // counts changes of which logs are here

	// writing is held around writing the small files, and guards what follows.
	writing gate
	boot    boot    // as the file has it
	carried carried // what checkpoints said of partitions that are not open
	checkpoints
}

// newDirectory is a directory that nobody has looked at yet.
func newDirectory(path string) *directory { return &directory{path: path, writing: newGate()} }

// err is why the directory is offline, or nil.
func (d *directory) err() error {
	if err := d.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fence marks the directory as failed; false where it already was.
func (d *directory) fence(err error) bool {
	err = protocol.Errorf(protocol.KafkaStorageError, "log directory %s is offline: %w", d.path, err)
	return d.failure.CompareAndSwap(nil, &err)
}

// file is the path of a file in the directory.
func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// report fences a directory if err is its disk's, and returns err. Every error of an operation on files goes
// through it, so that an I/O error is final wherever it comes up: after a failed sync the kernel may have
// dropped the pages that it could not write, and a second sync would succeed without them.
func (s *Set) report(d *directory, err error) error {
	if isDiskFault(err) {
		s.fail(d, err)
	}
	return err
}

// fail takes a directory offline: its partitions answer KAFKA_STORAGE_ERROR from now on, and its logs are
// closed without writing. What the disk had accepted before may be lost although the kernel runs on, so
// that the next start shall scan: the boot file goes, if the disk still lets it.
//
//	1 fence             whoever looks at err from now on stops; the first cause stays
//	2 table             partitions answer KAFKA_STORAGE_ERROR
//	3 wake, dropFutures whoever serves partitions stops; moves from and to here end
//	4 in the background logs are closed without a write, the boot file goes
//	5 failed            the broker hears of it: the controller moves leadership, or the process stops
//
// Other directories go on. There is no way back but a restart: nobody can say which of the writes that the kernel
// took has reached the disk.
func (s *Set) fail(d *directory, cause error) {
	if !d.fence(cause) {
		return
	}
	s.logger.Error("log directory is offline", "dir", d.path, "error", cause, "metadata", d == s.metadata)
	// From the table first, so that new requests fail at once; those under way run into the closed log.
	var closing []*entry
	for _, e := range s.entries(d) {
		if s.replace(e.partition, e, &entry{partition: e.partition, dir: d, err: offline(e.partition, d.err())}) {
			closing = append(closing, e)
		}
	}
	s.wake.offline.poke()
	futures := s.dropFutures(d)
	// Closing waits for appends under way, which may hang in the very disk: not here.
	s.failing.Go(func() {
		for _, e := range closing {
			if e.log != nil {
				e.log.CloseUnclean()
			}
		}
		for _, f := range futures {
			f.log.CloseUnclean()
		}
		_ = s.files.Remove(d.file(bootFile)) // the directory has failed already
	})
	s.failed <- d.path // has room for every directory
}

// isDiskFault reports whether an error says that a volume cannot be used any more: whatever the operating
// system reports, but for errors that pass (no space, no descriptors, no memory) and those that speak of
// one name.
func isDiskFault(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok || vfs.IsExhausted(err) {
		return false
	}
	switch errno {
	case syscall.EINTR, syscall.EAGAIN,
		syscall.ENOENT, syscall.EEXIST, syscall.ENOTEMPTY, syscall.ENAMETOOLONG, syscall.EISDIR, syscall.EINVAL:
		return false
	}
	return true
}

// samePath compares two paths as texts: whether they are one directory by way of a link is left to .lock.
func samePath(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }
