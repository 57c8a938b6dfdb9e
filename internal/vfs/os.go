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
// What differs: on Linux Sync is fdatasync, Lock an open-file-description lock, which Java's lock and a
// second owner in this process both run into, and Preallocate fallocate. macOS syncs with F_FULLFSYNC. On
// Windows SyncDir does nothing, and a directory in which a file is open cannot be renamed.
func OS() FS { return osFS{} }

func (osFS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, pathError("open", name, os.ErrInvalid)
	}
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) Remove(name string) error                          { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                       { return os.RemoveAll(name) }
func (osFS) Rename(from, to string) error                      { return os.Rename(from, to) }
func (osFS) MkdirAll(name string, perm os.FileMode) error      { return os.MkdirAll(name, perm) }
func (osFS) ReadDir(name string) ([]os.DirEntry, error)        { return os.ReadDir(name) }
func (osFS) Stat(name string) (os.FileInfo, error)             { return os.Stat(name) }
func (osFS) SyncDir(name string) error                         { return syncDir(name) }
func (osFS) Lock(name string) (io.Closer, error)               { return lockFile(name) }
func (osFS) Space(name string) (total, free uint64, err error) { return space(name) }

// pathError gives err its operation and path; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}
