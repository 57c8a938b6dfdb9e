// Package vfs is the seam to files: everything that the broker stores goes through an [FS], so that tests
// can keep it in memory, cut the power after any operation, and inject errors and latency.
//
// Paths are those of the operating system. What an FS promises about a crash is what POSIX does: data is
// durable after File.Sync, a created, renamed or removed name after SyncDir of its directory, and until
// then any subset may survive.
package vfs

import (
	"io"
	"os"
)

// FS is a file system. All methods may be called concurrently. Errors are those of package os, so that
// errors.Is(err, fs.ErrNotExist) and syscall.ENOSPC work on every implementation.
//
//	to make durable              it takes
//	bytes, a new length          File.Sync
//	a new file                   File.Sync, and SyncDir of its directory
//	a new directory              SyncDir of its parent; what is synced below a name that is lost is lost with it
//	a rename, a removal          SyncDir of the directory, or of both
//	all of that at once          Volume.Sync
//
//	[OS]          the operating system
//	[Memory]      tests, and a broker without a data directory; CrashClone cuts the power
//	[Faulty]      any of them, with errors and latency
type FS interface {
	// OpenFile opens name with the flags of package os; os.O_APPEND is not supported, since writers know
	// their position.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// Remove deletes a file or an empty directory. Open files go on working.
	Remove(name string) error
	// RemoveAll deletes name and what is below it; a missing name is no error.
	RemoveAll(name string) error
	// Rename replaces to by from, atomically.
	Rename(from, to string) error
	// MkdirAll makes a directory and its missing parents.
	MkdirAll(name string, perm os.FileMode) error
	// ReadDir lists a directory in the order of names.
	ReadDir(name string) ([]os.DirEntry, error)
	// Stat describes a name, following links.
	Stat(name string) (os.FileInfo, error)
	// SyncDir makes the names in a directory durable. It does nothing on systems that cannot (Windows).
	SyncDir(name string) error
	// OpenVolume opens the volume that holds name, to sync it as a whole. It fails with errors.ErrUnsupported where
	// that would promise less than a sync of each file.
	OpenVolume(name string) (Volume, error)
	// Lock takes an exclusive lock on name, creating it. It fails with ErrLocked if another process, or
	// another owner in this one, has it. Closing releases it; the file stays.
	Lock(name string) (io.Closer, error)
	// Space tells the size of the volume that holds name, and what is free for us, in bytes.
	Space(name string) (total, free uint64, err error)
}

// Volume is an open volume. All methods may be called concurrently, except Close.
type Volume interface {
	io.Closer
	// Sync makes durable all that was written to the volume until now, by anybody: data, lengths and names. It fails
	// where something that was written since OpenVolume could not be stored, whoever has written it.
	Sync() error
	// Holds reports whether a directory and all files in it are on the volume, and none is on another one that is mounted
	// there or that a link leads to.
	Holds(dir string) (bool, error)
}

// File is an open file. All methods may be called concurrently, except Close.
//
// ReadAt and WriteAt are whole: fewer bytes than asked for only with an error, io.EOF at the end of the file. A file
// that was removed, or renamed, can be used until Close.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the path that it was opened with.
	Name() string
	// Size is its length in bytes now.
	Size() (int64, error)
	// Truncate cuts or extends (with zeros) to size bytes.
	Truncate(size int64) error
	// Sync makes its data and length durable.
	Sync() error
	// Preallocate reserves space for length bytes from offset without changing the file's size; it does
	// nothing on systems that cannot.
	Preallocate(offset, length int64) error
	// Descriptor is the operating system's descriptor for sendfile; false where there is none. It is
	// valid until Close.
	Descriptor() (fd uintptr, ok bool)
}
