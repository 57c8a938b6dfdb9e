package vfs

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Op is a kind of operation on a file system.
type Op string

// The operations. Those from OpCreate on change what is on the disk, and are counted by
// [Faulty.Mutations]; opening a file counts as OpCreate where the flags say that it may be created or
// truncated, and as OpOpen otherwise.
const (
	OpOpen    Op = "open"
	OpRead    Op = "read"
	OpSize    Op = "size"
	OpClose   Op = "close"
	OpReadDir Op = "readdir"
	OpStat    Op = "stat"
	OpLock    Op = "lock"
	OpSpace   Op = "space"
	OpHolds   Op = "holds"

	OpCreate      Op = "create"
	OpWrite       Op = "write"
	OpTruncate    Op = "truncate"
	OpSync        Op = "sync"
	OpPreallocate Op = "preallocate"
	OpRemove      Op = "remove"
	OpRemoveAll   Op = "removeall"
	OpRename      Op = "rename"
	OpMkdir       Op = "mkdir"
	OpSyncDir     Op = "syncdir"
	OpSyncVolume  Op = "syncvolume"
)

// mutates reports whether op changes what a crash could leave.
func (op Op) mutates() bool {
	switch op {
	case OpCreate, OpWrite, OpTruncate, OpSync, OpPreallocate, OpRemove, OpRemoveAll, OpRename, OpMkdir, OpSyncDir, OpSyncVolume:
		return true
	}
	return false
}

// Fault says what goes wrong with which operations.
type Fault struct {
	// Op is the operation; empty means all.
	Op Op
	// Path is a pattern as of path/filepath.Match for the whole path or its last part, or the path of a
	// directory, which stands for everything in it; empty means all. A rename matches by either name.
	Path string
	// Skip is how many matching operations pass first.
	Skip int
	// Times is how many fail after that; 0 means all from then on.
	Times int
	// Err is what they fail with, such as syscall.EIO; nil leaves the operation to succeed.
	Err error
	// Short is how many bytes a failing write stores, or a failing read returns, before the error.
	Short int
	// Latency passes before the operation runs or fails.
	Latency time.Duration
	// Hook runs before the operation, without locks, and may block.
	Hook func(op Op, path string)
}

// Faulty wraps a file system and makes operations fail, short or late. Its files have no descriptor, so
// that no read goes around it.
//
//	files := NewFaulty(memory, Fault{Op: OpSync, Path: "*.log", Skip: 2, Times: 1, Err: syscall.EIO})
//
// fails the third sync of any segment, and no other. A write with Short stores that much and fails, as one that
// the disk has torn. The order of things in an operation is: count and match under the lock, then BeforeMutation, hooks
// and latency without it, then the operation below, if no fault has an error.
type Faulty struct {
	under FS

	mu        sync.Mutex
	faults    []*injected
	mutations int64
	before    func(n int64, op Op, path string)
}

var _ FS = (*Faulty)(nil)

// injected is a Fault with the number of operations that it matched.
type injected struct {
	Fault
	matched int
}

// NewFaulty wraps under; without faults it only counts.
func NewFaulty(under FS, faults ...Fault) *Faulty {
	f := &Faulty{under: under}
	for _, fault := range faults {
		f.Inject(fault)
	}
	return f
}

// Inject adds a fault; calling the result takes it away. Of several faults that match an operation all
// take their time, and the first with an error decides.
func (f *Faulty) Inject(fault Fault) (remove func()) {
	in := &injected{Fault: fault}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, in)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults = slices.DeleteFunc(f.faults, func(have *injected) bool { return have == in })
	}
}

// Heal takes all faults away.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Mutations is the number of mutating operations so far, failed ones included.
func (f *Faulty) Mutations() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mutations
}

// BeforeMutation sets a function that runs before every mutating operation with its number, from 1. A crash
// test clones the memory below in it. Operations of other goroutines go on meanwhile; it must not call the
// Faulty itself.
func (f *Faulty) BeforeMutation(hook func(n int64, op Op, path string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = hook
}

// pass lets an operation on paths wait and says how it fails: after short bytes, with err.
//
// A mutation counts before it runs and whether or not it fails, so the numbers of two runs with the same operations
// agree, and a test can cut the power before each of them in turn.
func (f *Faulty) pass(op Op, paths ...string) (short int, err error) {
	f.mu.Lock()
	var hooks []func(Op, string)
	var latency time.Duration
	for _, in := range f.faults {
		if !in.hits(op, paths) {
			continue
		}
		latency += in.Latency
		if in.Hook != nil {
			hooks = append(hooks, in.Hook)
		}
		if err == nil && in.Err != nil {
			short, err = in.Short, &os.PathError{Op: string(op), Path: paths[0], Err: in.Err}
		}
	}
	before := f.before
	if op.mutates() {
		f.mutations++
	} else {
		before = nil
	}
	n := f.mutations
	f.mu.Unlock()

	// Without the lock: hooks may take their time, and operations of other goroutines go on.
	if before != nil {
		before(n, op, paths[0])
	}
	for _, hook := range hooks {
		hook(op, paths[0])
	}
	if latency > 0 {
		time.Sleep(latency)
	}
	return short, err
}

// hits counts a matching operation and reports whether the fault applies to it.
func (in *injected) hits(op Op, paths []string) bool {
	if in.Op != "" && in.Op != op || !slices.ContainsFunc(paths, in.matches) {
		return false
	}
	in.matched++
	n := in.matched - in.Skip
	return n > 0 && (in.Times == 0 || n <= in.Times)
}

// matches compares a path with the fault's pattern.
func (in *injected) matches(path string) bool {
	if in.Path == "" || in.Path == path || strings.HasPrefix(path, in.Path+string(filepath.Separator)) {
		return true
	}
	whole, _ := filepath.Match(in.Path, path) // a bad pattern matches nothing
	last, _ := filepath.Match(in.Path, filepath.Base(path))
	return whole || last
}

// OpenFile opens or creates a file; see [FS].
func (f *Faulty) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	op := OpOpen
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		op = OpCreate
	}
	if _, err := f.pass(op, name); err != nil {
		return nil, err
	}
	file, err := f.under.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, fs: f}, nil
}

// Remove deletes a file or an empty directory; see [FS].
func (f *Faulty) Remove(name string) error {
	if _, err := f.pass(OpRemove, name); err != nil {
		return err
	}
	return f.under.Remove(name)
}

// RemoveAll deletes name and what is below it; see [FS]. It is one operation here.
func (f *Faulty) RemoveAll(name string) error {
	if _, err := f.pass(OpRemoveAll, name); err != nil {
		return err
	}
	return f.under.RemoveAll(name)
}

// Rename replaces to by from; see [FS].
func (f *Faulty) Rename(from, to string) error {
	if _, err := f.pass(OpRename, from, to); err != nil {
		return err
	}
	return f.under.Rename(from, to)
}

// MkdirAll makes a directory and its missing parents; see [FS].
func (f *Faulty) MkdirAll(name string, perm os.FileMode) error {
	if _, err := f.pass(OpMkdir, name); err != nil {
		return err
	}
	return f.under.MkdirAll(name, perm)
}

// ReadDir lists a directory; see [FS].
func (f *Faulty) ReadDir(name string) ([]os.DirEntry, error) {
	if _, err := f.pass(OpReadDir, name); err != nil {
		return nil, err
	}
	return f.under.ReadDir(name)
}

// Stat describes a name; see [FS].
func (f *Faulty) Stat(name string) (os.FileInfo, error) {
	if _, err := f.pass(OpStat, name); err != nil {
		return nil, err
	}
	return f.under.Stat(name)
}

// SyncDir makes the names in a directory durable; see [FS].
func (f *Faulty) SyncDir(name string) error {
	if _, err := f.pass(OpSyncDir, name); err != nil {
		return err
	}
	return f.under.SyncDir(name)
}

// OpenVolume opens the volume below; see [FS].
func (f *Faulty) OpenVolume(name string) (Volume, error) {
	if _, err := f.pass(OpOpen, name); err != nil {
		return nil, err
	}
	v, err := f.under.OpenVolume(name)
	if err != nil {
		return nil, err
	}
	return &faultyVolume{Volume: v, fs: f, name: name}, nil
}

// faultyVolume is an open volume of a [Faulty].
type faultyVolume struct {
	Volume
	fs   *Faulty
	name string
}

// Sync syncs the volume below, or fails and leaves what was written unsynced.
func (v *faultyVolume) Sync() error {
	if _, err := v.fs.pass(OpSyncVolume, v.name); err != nil {
		return err
	}
	return v.Volume.Sync()
}

// Holds asks the volume below; see [Volume].
func (v *faultyVolume) Holds(dir string) (bool, error) {
	if _, err := v.fs.pass(OpHolds, dir); err != nil {
		return false, err
	}
	return v.Volume.Holds(dir)
}

// Lock takes an exclusive lock on name; see [FS].
func (f *Faulty) Lock(name string) (io.Closer, error) {
	if _, err := f.pass(OpLock, name); err != nil {
		return nil, err
	}
	return f.under.Lock(name)
}

// Space tells the size of the volume and what is free of it; see [FS].
func (f *Faulty) Space(name string) (total, free uint64, err error) {
	if _, err := f.pass(OpSpace, name); err != nil {
		return 0, 0, err
	}
	return f.under.Space(name)
}

// faultyFile is an open file of a [Faulty].
type faultyFile struct {
	File
	fs *Faulty
}

// ReadAt reads, or fails after as many bytes as the fault says.
func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	short, err := f.fs.pass(OpRead, f.Name())
	if err == nil {
		return f.File.ReadAt(p, off)
	}
	n, _ := f.File.ReadAt(p[:min(short, len(p))], off) // the injected error is the one to report
	return n, err
}

// WriteAt writes, or fails after having stored as many bytes as the fault says.
func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	short, err := f.fs.pass(OpWrite, f.Name())
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	n, _ := f.File.WriteAt(p[:min(short, len(p))], off) // the injected error is the one to report
	return n, err
}

// Size asks the file below, or fails.
func (f *faultyFile) Size() (int64, error) {
	if _, err := f.fs.pass(OpSize, f.Name()); err != nil {
		return 0, err
	}
	return f.File.Size()
}

// Truncate cuts the file below, or fails and leaves it.
func (f *faultyFile) Truncate(size int64) error {
	if _, err := f.fs.pass(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync syncs the file below, or fails and leaves what was written unsynced.
func (f *faultyFile) Sync() error {
	if _, err := f.fs.pass(OpSync, f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}

// Preallocate reserves space below, or fails.
func (f *faultyFile) Preallocate(offset, length int64) error {
	if _, err := f.fs.pass(OpPreallocate, f.Name()); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

// Close closes the file below even where a fault reports an error, as the operating system does.
func (f *faultyFile) Close() error {
	_, injected := f.fs.pass(OpClose, f.Name())
	err := f.File.Close()
	if injected != nil {
		return injected
	}
	return err
}

// Descriptor is none, so that every read meets the faults.
func (f *faultyFile) Descriptor() (uintptr, bool) { return 0, false }
