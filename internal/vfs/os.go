package vfs

import (
	"io"
	"os"
)

// osFS is the operating system's file system. What differs between systems is in os_*.go.
type osFS struct{}

var _ FS = osFS{}

// OS is the operating system's file system. Its files are plain descriptors that never go through the
// runtime's poller: a read from the page cache costs one system call and no allocation.
//
// What differs: on Linux Sync is fdatasync, a [Volume] is synced by syncfs on ext4, XFS and btrfs, Lock an open-file-description lock, which Java's lock and a
// second owner in this process both run into, and Preallocate fallocate. macOS syncs with F_FULLFSYNC. On
// Windows SyncDir does nothing, and a directory in which a file is open cannot be renamed.
func OS() FS { return osFS{} }

// OpenFile opens or creates a file; see [FS].
func (osFS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, pathError("open", name, os.ErrInvalid)
	}
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err // not f: a nil pointer in an interface is not nil
	}
	return f, nil
}

// Remove deletes a file or an empty directory; see [FS].
func (osFS) Remove(name string) error { return os.Remove(name) }

// RemoveAll deletes name and what is below it; see [FS].
func (osFS) RemoveAll(name string) error { return os.RemoveAll(name) }

// Rename replaces to by from; see [FS].
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

// MkdirAll makes a directory and its missing parents; see [FS].
func (osFS) MkdirAll(name string, perm os.FileMode) error { return os.MkdirAll(name, perm) }

// ReadDir lists a directory; see [FS].
func (osFS) ReadDir(name string) ([]os.DirEntry, error) { return os.ReadDir(name) }

// Stat describes a name; see [FS].
func (osFS) Stat(name string) (os.FileInfo, error) { return os.Stat(name) }

// SyncDir makes the names in a directory durable; see [FS].
func (osFS) SyncDir(name string) error { return syncDir(name) }

// OpenVolume opens the volume that holds name; see [FS].
func (osFS) OpenVolume(name string) (Volume, error) { return openVolume(name) }

// Lock takes an exclusive lock on name; see [FS].
func (osFS) Lock(name string) (io.Closer, error) { return lockFile(name) }

// Space tells the size of the volume and what is free of it; see [FS].
func (osFS) Space(name string) (total, free uint64, err error) { return space(name) }

// pathError gives err its operation and path; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}
