package vfs

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// inode is a file's data. links counts names and opens counts open files; the memory goes when both are
// zero.
type inode struct {
	fs     *Memory
	links  atomic.Int32
	opens  atomic.Int32
	locked atomic.Bool

	mu       sync.RWMutex
	size     int64
	pages    []page
	modified time.Time
	freed    bool
	durable  durableState
}

// page is up to a page size of bytes, nil for a hole. What it lacks at its end reads as zeros; an empty
// one that is not nil is preallocated.
//
//	live page       in dirty   durable page        a write to it
//	nil             -          nil                 takes a new page
//	[]byte{}        -          nil                 takes bytes; the volume was charged before
//	p               no         p, the same bytes   copies p first
//	p               yes        another, or nil     changes p in place
type page []byte

// durableState is what a crash certainly leaves of a file.
type durableState struct {
	size  int64
	pages []page
	// dirty holds the pages that differ; their live bytes are not shared with the durable ones.
	dirty map[int]struct{}
	// cut is the smallest size that the file was truncated to since the last sync.
	cut int64
	// ends are the last sizes that writes gave the file since then: beside page boundaries, those are
	// what a crash can leave.
	ends []int64
}

// endsMax bounds durableState.ends.
const endsMax = 64

// uncut is the value of durableState.cut where there was no truncation.
const uncut = int64(1)<<62 - 1

// newInode is an empty file without a name.
func newInode(m *Memory) *inode {
	return &inode{fs: m, modified: time.Now(), durable: durableState{cut: uncut}}
}

// unlink drops one name.
func (n *inode) unlink() {
	if n.links.Add(-1) == 0 && n.opens.Load() == 0 {
		n.free()
	}
}

// release drops one open file.
func (n *inode) release() {
	if n.opens.Add(-1) == 0 && n.links.Load() == 0 {
		n.free()
	}
}

// free gives the live pages back. The durable ones stay reachable as long as a crash could bring back a
// name of them.
//
// A file that is removed while it is open goes on like one with a name, and is freed by its last Close.
func (n *inode) free() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.freed {
		return
	}
	n.freed = true
	n.fs.used.Add(-n.chargedFrom(0))
	if !n.fs.tracking {
		n.pages = nil
	}
}

// chargedFrom is what the pages from index first on take of the volume.
func (n *inode) chargedFrom(first int) int64 {
	var pages int64
	for _, p := range n.pages[min(first, len(n.pages)):] {
		if p != nil {
			pages++
		}
	}
	return pages * int64(n.fs.pageSize)
}

// readAt copies out of the pages; reads of one file go on side by side.
//
// Holes and the missing ends of pages are cleared in p, which may have old bytes in it.
func (n *inode) readAt(p []byte, off int64) (int, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if off >= n.size {
		return 0, io.EOF
	}
	want := p
	if int64(len(p)) > n.size-off {
		want = p[:n.size-off]
	}
	size := int64(n.fs.pageSize)
	for done := 0; done < len(want); {
		at := off + int64(done)
		in := int(at % size)
		part := want[done:min(len(want), done+int(size)-in)]
		var from page
		if i := int(at / size); i < len(n.pages) && in < len(n.pages[i]) {
			from = n.pages[i][in:]
		}
		clear(part[copy(part, from):])
		done += len(part)
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(p), nil
}

// writeAt copies into the pages. Where the volume is full it stores what fits, as a disk does.
func (n *inode) writeAt(p []byte, off int64) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	size := int64(n.fs.pageSize)
	done := 0
	for done < len(p) {
		at := off + int64(done)
		in := int(at % size)
		part := p[done:min(len(p), done+int(size)-in)]
		to, ok := n.writable(int(at/size), in+len(part))
		if !ok {
			break
		}
		done += copy(to[in:], part)
	}
	n.grow(off + int64(done))
	if done < len(p) {
		return done, syscall.ENOSPC
	}
	return done, nil
}

// grow notes that something was written up to end.
func (n *inode) grow(end int64) {
	n.modified = time.Now()
	if end <= n.size {
		return
	}
	n.size = end
	if n.fs.tracking {
		if len(n.durable.ends) == endsMax {
			n.durable.ends = append(n.durable.ends[:0], n.durable.ends[1:]...)
		}
		n.durable.ends = append(n.durable.ends, end)
	}
}

// writable makes page i private to the live side and at least length bytes long; it fails where the volume
// is full.
func (n *inode) writable(i, length int) (page, bool) {
	for len(n.pages) <= i {
		n.pages = append(n.pages, nil)
	}
	p := n.pages[i]
	if p == nil && !n.fs.charge(int64(n.fs.pageSize)) {
		return nil, false
	}
	// A page that the durable side has too is copied first; so is one that needs more room. Growth doubles,
	// so that many small appends cost few copies, and a small file little memory.
	shared := n.markDirty(i)
	if !shared && length <= len(p) {
		return p, true
	}
	if !shared && length <= cap(p) {
		n.pages[i] = p[:length] // bytes between length and capacity are zero: pages are cut by copying
		return n.pages[i], true
	}
	room := min(n.fs.pageSize, max(length, len(p), 2*cap(p), 512))
	grown := make(page, max(length, len(p)), room)
	copy(grown, p)
	n.pages[i] = grown
	return grown, true
}

// markDirty notes that page i is about to change, and reports whether its bytes are still shared with the
// durable side.
func (n *inode) markDirty(i int) (shared bool) {
	if !n.fs.tracking {
		return false
	}
	if _, ok := n.durable.dirty[i]; ok {
		return false
	}
	if n.durable.dirty == nil {
		n.durable.dirty = map[int]struct{}{}
	}
	n.durable.dirty[i] = struct{}{}
	return i < len(n.durable.pages) && n.durable.pages[i] != nil
}

// truncate cuts or extends the file. What is cut is gone: it reads as zeros when the file grows again.
//
// Pages that are cut are marked dirty, or the clone would take the durable ones for what the file had afterwards.
func (n *inode) truncate(size int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pageSize := int64(n.fs.pageSize)
	keep := int((size + pageSize - 1) / pageSize)
	if keep < len(n.pages) {
		// Whole pages go; that they were there matters to a crash only as far as they had been synced.
		n.fs.used.Add(-n.chargedFrom(keep))
		for i := keep; i < len(n.pages); i++ {
			n.markDirty(i)
		}
		clear(n.pages[keep:])
		n.pages = n.pages[:keep]
	}
	if in := int(size % pageSize); in > 0 && keep <= len(n.pages) && len(n.pages[keep-1]) > in {
		n.markDirty(keep - 1)
		n.pages[keep-1] = append(make(page, 0, in), n.pages[keep-1][:in]...)
	}
	if size < n.size {
		n.durable.cut = min(n.durable.cut, size)
	}
	n.size = size
	n.modified = time.Now()
}

// preallocate charges the pages of a range, so that writes there cannot find the volume full.
//
// Whole pages are charged, and kept by an empty one that is not nil; Truncate gives those behind the size back.
func (n *inode) preallocate(offset, length int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	size := int64(n.fs.pageSize)
	for i := offset / size; i*size < offset+length; i++ {
		for int64(len(n.pages)) <= i {
			n.pages = append(n.pages, nil)
		}
		if n.pages[i] == nil {
			if !n.fs.charge(size) {
				return syscall.ENOSPC
			}
			n.pages[i] = page{}
		}
	}
	return nil
}

// sync makes data and size durable: the dirty pages become shared.
//
// It costs a step for each page that was written since the last one, and copies no bytes: the pages are shared until
// one of them is written again (see writable).
func (n *inode) sync() {
	if !n.fs.tracking {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	d := &n.durable
	for len(d.pages) < len(n.pages) {
		d.pages = append(d.pages, nil)
	}
	for i := range d.dirty {
		if i < len(n.pages) && len(n.pages[i]) > 0 {
			d.pages[i] = n.pages[i]
		} else if i < len(d.pages) {
			d.pages[i] = nil
		}
	}
	clear(d.pages[len(n.pages):])
	d.pages = d.pages[:len(n.pages)]
	clear(d.dirty)
	d.size, d.cut, d.ends = n.size, uncut, d.ends[:0]
}

// memoryFile is an open file of a [Memory].
type memoryFile struct {
	node      *inode
	name      string
	readable  bool
	writable  bool
	holdsLock bool
	closed    atomic.Bool
}

// check refuses the use of a closed file, of one opened in the other direction, and negative positions.
func (f *memoryFile) check(op string, allowed bool, off int64) error {
	switch {
	case f.closed.Load():
		return pathError(op, f.name, os.ErrClosed)
	case !allowed:
		return pathError(op, f.name, syscall.EBADF)
	case off < 0:
		return pathError(op, f.name, os.ErrInvalid)
	}
	return nil
}

// ReadAt reads; see [File].
func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.check("read", f.readable, off); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	return f.node.readAt(p, off)
}

// WriteAt writes; see [File].
func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.check("write", f.writable, off); err != nil || len(p) == 0 {
		return 0, err
	}
	n, err := f.node.writeAt(p, off)
	return n, pathError("write", f.name, err)
}

// Name is the path that it was opened with, whatever the file is called now.
func (f *memoryFile) Name() string { return f.name }

// Size is the length now; see [File].
func (f *memoryFile) Size() (int64, error) {
	if err := f.check("stat", true, 0); err != nil {
		return 0, err
	}
	f.node.mu.RLock()
	defer f.node.mu.RUnlock()
	return f.node.size, nil
}

// Truncate cuts or extends, and gives preallocated pages behind the size back; see [File].
func (f *memoryFile) Truncate(size int64) error {
	if err := f.check("truncate", f.writable, size); err != nil {
		return err
	}
	f.node.truncate(size)
	return nil
}

// Sync makes data and length durable, as far as a crash clone is concerned; see [File].
func (f *memoryFile) Sync() error {
	if err := f.check("sync", true, 0); err != nil {
		return err
	}
	f.node.sync()
	return nil
}

// Preallocate charges the volume for a range; see [File].
func (f *memoryFile) Preallocate(offset, length int64) error {
	if err := f.check("preallocate", f.writable, min(offset, length)); err != nil {
		return err
	}
	return pathError("preallocate", f.name, f.node.preallocate(offset, length))
}

// Close ends the use; a lock that the file stands for goes with it.
func (f *memoryFile) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, os.ErrClosed)
	}
	if f.holdsLock {
		f.node.locked.Store(false)
	}
	f.node.release()
	return nil
}

// Descriptor is none; see [File].
func (f *memoryFile) Descriptor() (uintptr, bool) { return 0, false }
