package log

import (
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// FileCache bounds what all logs of a process hold open: segment files, and the offset indexes of closed
// segments in memory. Both are opened when needed and given back least recently used first (as a clock
// keeps it). It is safe for concurrent use; no lock is held across I/O.
type FileCache struct {
	files      int
	indexBytes int64
	buffers    sync.Pool // of *[walkBuffer]byte
	// saidFull is when one of the logs has last said that a disk is full, in ns since 1970.
	saidFull atomic.Int64

	mu struct {
		sync.Mutex
		ring  []*openFile // what is open and not evicted
		hand  int
		bytes int64 // of indexes that ring members' segments keep
	}
}

// defaultIndexBytes holds the indexes of 32 GiB of closed segments.
const defaultIndexBytes = 64 << 20

// NewFileCache makes a cache that keeps at most files segment files open, beside those pinned by slices
// that are being sent.
func NewFileCache(files int) *FileCache {
	invariant.That(files > 0, "a file cache must be able to hold a file")
	c := &FileCache{files: files, indexBytes: defaultIndexBytes}
	c.buffers.New = func() any { return new([walkBuffer]byte) }
	return c
}

// Open is how many files the cache keeps open, pinned ones that it has let go of excepted.
func (c *FileCache) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.ring)
}

// openFile is a segment's open file. It is counted: the cache holds one reference, each slice and each
// operation another, and it is closed when the last one goes.
//
//	        add                 acquire ⇄ release             removeLocked, letGo          release
//	(open) ──▶ refs 2, in ring ──────────────▶ refs 1..n ──────────────────▶ refs n-1, slot -1 ──▶ 0: closed
//
// A count that has reached 0 never rises again (acquire fails), so a closed file is not handed out; whoever fails
// opens the file anew. A pinned file that leaves the ring is not closed but merely not counted any more: the bound
// on open files is one on those that nobody uses.
type openFile struct {
	vfs.File
	refs atomic.Int32
	// used is the clock's mark: set by every acquire, cleared as the hand passes.
	used    atomic.Bool
	segment *segment
	slot    int   // place in the ring, -1 once evicted; guarded by the cache
	bytes   int64 // of the segment's index in memory; guarded by the cache
}

// acquire takes a reference, unless the file is already closed.
func (f *openFile) acquire() bool {
	for {
		n := f.refs.Load()
		if n == 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			f.used.Store(true)
			return true
		}
	}
}

// release drops a reference. A close error says nothing that a failed write or sync has not said.
func (f *openFile) release() {
	n := f.refs.Add(-1)
	invariant.That(n >= 0, "file released more often than acquired")
	if n == 0 {
		_ = f.Close()
	}
}

// add takes file into the cache for s and returns it with a reference for the caller; if another goroutine
// was faster, file is closed and theirs returned. The file of a segment that has just gone is the caller's
// alone: nobody would drop it.
func (c *FileCache) add(s *segment, file vfs.File) *openFile {
	f := &openFile{File: file, segment: s}
	f.refs.Store(2) // the cache's and the caller's
	f.used.Store(true)
	c.mu.Lock()
	if other := s.file.Load(); other != nil && other.acquire() {
		c.mu.Unlock()
		_ = file.Close() // nothing was written through it
		return other
	}
	if s.gone.Load() {
		c.mu.Unlock()
		f.slot = -1
		f.refs.Store(1)
		return f
	}
	f.slot = len(c.mu.ring)
	c.mu.ring = append(c.mu.ring, f)
	s.file.Store(f)
	victims := c.overLocked(nil)
	c.mu.Unlock()
	letGo(victims)
	return f
}

// charge notes that the open file's segment now keeps bytes of index in memory.
//
// An index that was loaded for a file that is no longer in the ring is let go at once: nobody would take it away
// later.
func (c *FileCache) charge(f *openFile, bytes int64) {
	c.mu.Lock()
	var victims []*openFile
	if f.slot >= 0 {
		c.mu.bytes += bytes - f.bytes
		f.bytes = bytes
		victims = c.overLocked(f)
	} else {
		f.segment.dropIndex()
	}
	c.mu.Unlock()
	letGo(victims)
}

// drop takes a segment's file out of the cache: the segment went, or its log is closed.
func (c *FileCache) drop(s *segment) {
	c.mu.Lock()
	f := s.file.Load()
	if f != nil && f.slot >= 0 {
		c.removeLocked(f)
	} else {
		f = nil
	}
	c.mu.Unlock()
	if f != nil {
		f.release()
	}
}

// CloseIdle closes the files that were not used since the last call, and lets their indexes go.
func (c *FileCache) CloseIdle() {
	c.mu.Lock()
	var idle []*openFile
	for i := len(c.mu.ring) - 1; i >= 0; i-- {
		if f := c.mu.ring[i]; !f.used.Swap(false) {
			c.removeLocked(f)
			idle = append(idle, f)
		}
	}
	c.mu.Unlock()
	letGo(idle)
}

// overLocked takes out what is over the limits, keep excepted: the least recently used, unpinned first.
func (c *FileCache) overLocked(keep *openFile) (victims []*openFile) {
	for len(c.mu.ring) > c.files || c.mu.bytes > c.indexBytes && len(c.mu.ring) > 1 {
		f := c.victimLocked(keep)
		if f == nil {
			break
		}
		c.removeLocked(f)
		victims = append(victims, f)
	}
	return victims
}

// victimLocked moves the hand over the ring, at most three times: the first passes clear the used marks,
// the last takes pinned files too.
//
//	round 1    clears used where it is set, takes the first unpinned file where it is not
//	round 2    the same: what round 1 has cleared goes, unless it was used meanwhile
//	round 3    all are pinned or in use: takes a pinned one, which stays open with its users
//
// nil means that all were used again while the hand passed; then the cache is over its limit until the next time. It
// is O(1) a file over time, and at worst three rounds.
func (c *FileCache) victimLocked(keep *openFile) *openFile {
	n := len(c.mu.ring)
	for step := range 3 * n {
		c.mu.hand = (c.mu.hand + 1) % n
		f := c.mu.ring[c.mu.hand]
		if f == keep || f.used.Swap(false) {
			continue
		}
		if f.refs.Load() == 1 || step >= 2*n {
			return f
		}
	}
	return nil
}

// removeLocked takes f out of the ring; the caller then drops the cache's reference outside the lock.
func (c *FileCache) removeLocked(f *openFile) {
	last := len(c.mu.ring) - 1
	moved := c.mu.ring[last]
	c.mu.ring[f.slot] = moved
	moved.slot = f.slot
	c.mu.ring[last] = nil
	c.mu.ring = c.mu.ring[:last]
	c.mu.bytes -= f.bytes
	f.slot, f.bytes = -1, 0
	f.segment.file.CompareAndSwap(f, nil)
	f.segment.dropIndex()
}

// letGo drops the cache's references to files that are out of the ring.
func letGo(files []*openFile) {
	for _, f := range files {
		f.release()
	}
}

// buffer lends a buffer for walking over batch headers; giveBack ends the loan.
func (c *FileCache) buffer() *[walkBuffer]byte { return c.buffers.Get().(*[walkBuffer]byte) }

func (c *FileCache) giveBack(b *[walkBuffer]byte) { c.buffers.Put(b) }
