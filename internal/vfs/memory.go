package vfs

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Page sizes of a [Memory]. A disk writes and tears by pages of 4 KiB, so that is what a crash keeps or
// loses; a volatile one is only read and written, and wants few large pieces.
const (
	crashPage    = 4 << 10
	volatilePage = 64 << 10
)

// Memory is a file system in memory: the data of tests, and of a broker without a data directory. Names
// are cleaned and taken from the root; there are no links, no permissions and no current directory.
//
//	root ── dir ── dir ── inode ── pages: nil (a hole), or up to one page size of bytes
//	         │             │
//	         │             └ durable: the pages and the size of the last Sync   ┐ what [Memory.CrashClone]
//	         └ pending: changes of names since the last SyncDir                 ┘ starts from
//
// Pages are shared between the two sides and copied when written after a Sync. One lock guards all names;
// each inode has its own, so that reads and writes of different files do not meet.
type Memory struct {
	pageSize int
	tracking bool // remembers what is durable
	used     atomic.Int64
	limit    atomic.Int64

	names struct {
		sync.RWMutex
		root    *directory
		pending []rename // in the order in which they were made
	}
}

var _ FS = (*Memory)(nil)

// defaultSpace is the size of the volume that a Memory without a limit claims to be on.
const defaultSpace = 1 << 40

// NewMemory makes an empty file system that can be crash-cloned.
//
// A write to a page that was synced copies that page, 4 KiB; reads and other writes copy nothing. What is remembered of
// names grows until the next SyncDir of a directory that they are in.
func NewMemory() *Memory { return newMemory(crashPage, true) }

// NewVolatile makes an empty file system that does not remember what was synced: it uses less memory, gives
// back that of removed files at once, and has no CrashClone.
func NewVolatile() *Memory { return newMemory(volatilePage, false) }

func newMemory(pageSize int, tracking bool) *Memory {
	m := &Memory{pageSize: pageSize, tracking: tracking}
	m.limit.Store(math.MaxInt64)
	m.names.root = newDirectory()
	return m
}

// SetLimit sets the size of the volume in bytes: what would make it larger fails with ENOSPC. Files are
// charged by pages. 0 or less lifts the limit.
func (m *Memory) SetLimit(bytes int64) {
	if bytes <= 0 {
		bytes = math.MaxInt64
	}
	m.limit.Store(bytes)
}

// Used is what all files take, in bytes, removed ones that are open included.
func (m *Memory) Used() int64 { return m.used.Load() }

// charge takes n bytes of the volume, or reports that it is full.
//
// It adds first and takes back: two writers at the limit may both be refused where one would have fitted, but never
// both let through.
func (m *Memory) charge(n int64) bool {
	if m.used.Add(n) <= m.limit.Load() {
		return true
	}
	m.used.Add(-n)
	return false
}

// OpenFile opens or creates a file; see [FS].
func (m *Memory) OpenFile(name string, flag int, _ os.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, pathError("open", name, os.ErrInvalid)
	}
	m.names.Lock()
	defer m.names.Unlock()
	node, err := m.openLocked(name, flag)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	node.opens.Add(1)
	f := &memoryFile{node: node, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0, readable: flag&os.O_WRONLY == 0}
	if flag&os.O_TRUNC != 0 && f.writable {
		node.truncate(0)
	}
	return f, nil
}

// openLocked finds or creates the inode of name. The number of its open files rises under the same lock, lest
// a Remove in between takes it for unused.
//
// It is for OpenFile, which holds the lock of names for writing: opening may create.
func (m *Memory) openLocked(name string, flag int) (*inode, error) {
	parent, base, err := m.parentLocked(name)
	if err != nil {
		return nil, err
	}
	switch child := parent.live[base].(type) {
	case *inode:
		if flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL {
			return nil, os.ErrExist
		}
		return child, nil
	case *directory:
		return nil, syscall.EISDIR
	}
	if base == "" {
		return nil, syscall.EISDIR
	}
	if flag&os.O_CREATE == 0 {
		return nil, os.ErrNotExist
	}
	node := newInode(m)
	m.changeLocked(change{parent, base, node})
	return node, nil
}

// Remove deletes a file or an empty directory; see [FS].
func (m *Memory) Remove(name string) error {
	m.names.Lock()
	defer m.names.Unlock()
	parent, base, err := m.parentLocked(name)
	if err != nil {
		return pathError("remove", name, err)
	}
	child, ok := parent.live[base]
	if !ok {
		return pathError("remove", name, os.ErrNotExist)
	}
	if dir, ok := child.(*directory); ok && len(dir.live) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	m.changeLocked(change{parent, base, nil})
	return nil
}

// RemoveAll deletes name and what is below it; see [FS].
func (m *Memory) RemoveAll(name string) error {
	m.names.Lock()
	defer m.names.Unlock()
	parent, base, err := m.parentLocked(name)
	if err != nil || base == "" {
		return nil // as with package os, nothing to remove is no error
	}
	if dir, ok := parent.live[base].(*directory); ok {
		m.emptyLocked(dir)
	}
	if _, ok := parent.live[base]; ok {
		m.changeLocked(change{parent, base, nil})
	}
	return nil
}

// emptyLocked removes everything below dir, one name at a time, as the operating system does.
//
// Names go in their order, children before parents, so that a crash in the middle can leave any of them.
func (m *Memory) emptyLocked(dir *directory) {
	for _, name := range dir.sorted() {
		if below, ok := dir.live[name].(*directory); ok {
			m.emptyLocked(below)
		}
		m.changeLocked(change{dir, name, nil})
	}
}

// Rename replaces to by from, atomically; see [FS].
func (m *Memory) Rename(from, to string) error {
	m.names.Lock()
	defer m.names.Unlock()
	fail := func(err error) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: err} }
	oldParent, oldBase, err := m.parentLocked(from)
	if err != nil {
		return fail(err)
	}
	newParent, newBase, err := m.parentLocked(to)
	if err != nil {
		return fail(err)
	}
	child, ok := oldParent.live[oldBase]
	if !ok {
		return fail(os.ErrNotExist)
	}
	if err := mayReplace(child, newParent.live[newBase]); err != nil {
		return fail(err)
	}
	if oldParent == newParent && oldBase == newBase {
		return nil
	}
	// One change: a crash leaves the old name or the new one, never both and never none.
	m.changeLocked(change{newParent, newBase, child}, change{oldParent, oldBase, nil})
	return nil
}

// mayReplace holds the rules of rename(2): files replace files, directories replace empty directories.
func mayReplace(from, to any) error {
	_, isDir := from.(*directory)
	switch to := to.(type) {
	case *inode:
		if isDir {
			return syscall.ENOTDIR
		}
	case *directory:
		if !isDir {
			return syscall.EISDIR
		}
		if len(to.live) > 0 && to != from {
			return syscall.ENOTEMPTY
		}
	}
	return nil
}

// MkdirAll makes a directory and its missing parents; see [FS].
func (m *Memory) MkdirAll(name string, _ os.FileMode) error {
	m.names.Lock()
	defer m.names.Unlock()
	dir := m.names.root
	for _, part := range split(name) {
		switch child := dir.live[part].(type) {
		case *directory:
			dir = child
		case *inode:
			return pathError("mkdir", name, syscall.ENOTDIR)
		default:
			made := newDirectory()
			m.changeLocked(change{dir, part, made})
			dir = made
		}
	}
	return nil
}

// ReadDir lists a directory in the order of names; see [FS].
func (m *Memory) ReadDir(name string) ([]os.DirEntry, error) {
	m.names.RLock()
	defer m.names.RUnlock()
	dir, err := m.directoryLocked(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	entries := make([]os.DirEntry, 0, len(dir.live))
	for _, base := range dir.sorted() {
		entries = append(entries, describe(base, dir.live[base]))
	}
	return entries, nil
}

// Stat describes a name; see [FS].
func (m *Memory) Stat(name string) (os.FileInfo, error) {
	m.names.RLock()
	defer m.names.RUnlock()
	parent, base, err := m.parentLocked(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	if base == "" {
		return describe(string(filepath.Separator), parent), nil
	}
	child, ok := parent.live[base]
	if !ok {
		return nil, pathError("stat", name, os.ErrNotExist)
	}
	return describe(base, child), nil
}

// Lock takes an exclusive lock on name; see [FS].
//
// The lock is the inode's: it holds under every name of the file, and not for a new file of the same name.
func (m *Memory) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	file := f.(*memoryFile)
	if !file.node.locked.CompareAndSwap(false, true) {
		_ = f.Close() // closing memory does not fail
		return nil, pathError("lock", name, ErrLocked)
	}
	file.holdsLock = true
	return file, nil
}

// Space tells the limit, or a large volume where there is none, and what is free of it.
func (m *Memory) Space(name string) (total, free uint64, err error) {
	if _, err := m.Stat(name); err != nil {
		return 0, 0, err
	}
	limit := m.limit.Load()
	if limit == math.MaxInt64 {
		limit = defaultSpace
	}
	return uint64(limit), uint64(max(0, limit-m.used.Load())), nil
}

// parentLocked finds the directory that name is in, and its last part, which is empty for the root.
func (m *Memory) parentLocked(name string) (*directory, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return m.names.root, "", nil
	}
	dir, err := walk(m.names.root, parts[:len(parts)-1])
	return dir, parts[len(parts)-1], err
}

// directoryLocked finds a directory.
func (m *Memory) directoryLocked(name string) (*directory, error) {
	return walk(m.names.root, split(name))
}

// walk goes down from dir.
func walk(dir *directory, parts []string) (*directory, error) {
	for _, part := range parts {
		switch child := dir.live[part].(type) {
		case *directory:
			dir = child
		case *inode:
			return nil, syscall.ENOTDIR
		default:
			return nil, os.ErrNotExist
		}
	}
	return dir, nil
}

// split cuts a path into its parts below the root.
func split(name string) []string {
	name = filepath.Clean(name)
	return slices.DeleteFunc(strings.Split(name, string(filepath.Separator)), func(part string) bool {
		return part == "" || part == "."
	})
}

// nodeInfo describes a node as os.FileInfo and os.DirEntry.
type nodeInfo struct {
	name     string
	size     int64
	mode     os.FileMode
	modified time.Time
}

// describe looks at a node; names must be locked.
func describe(name string, node any) nodeInfo {
	if f, ok := node.(*inode); ok {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return nodeInfo{name: name, size: f.size, mode: 0o644, modified: f.modified}
	}
	return nodeInfo{name: name, mode: os.ModeDir | 0o755}
}

// Name is the last part of the path.
func (i nodeInfo) Name() string { return i.name }

// Size is the length of a file, as it was when it was looked at.
func (i nodeInfo) Size() int64 { return i.size }

// Mode has the same permissions for every file and for every directory.
func (i nodeInfo) Mode() os.FileMode { return i.mode }

// Type is the directory bit.
func (i nodeInfo) Type() os.FileMode { return i.mode.Type() }

// ModTime is when a file was last written or truncated.
func (i nodeInfo) ModTime() time.Time { return i.modified }

// IsDir tells directories from files.
func (i nodeInfo) IsDir() bool { return i.mode.IsDir() }

// Sys is nothing.
func (i nodeInfo) Sys() any { return nil }

// Info is itself: unlike the operating system's it describes the moment of the listing.
func (i nodeInfo) Info() (os.FileInfo, error) { return i, nil }
