package vfs

import (
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// osFile wraps the standard library's file, whose ReadAt and WriteAt are positional on Windows too.
type osFile struct{ *os.File }

// openFile shares reading, writing and deleting, so that a segment can be renamed and removed while a
// fetch reads it.
//
// Renaming a file that others have open works with these flags; renaming a directory in which one is open does not.
func openFile(name string, flag int, perm os.FileMode) (*osFile, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	access := uint32(windows.GENERIC_READ)
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		access |= windows.GENERIC_WRITE
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	handle, err := windows.CreateFile(path, access, share, nil, disposition(flag), windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &osFile{os.NewFile(uintptr(handle), name)}, nil
}

// disposition is Windows' form of the flags that say what happens to a missing or an existing file.
func disposition(flag int) uint32 {
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return windows.CREATE_NEW
	case flag&(os.O_CREATE|os.O_TRUNC) == os.O_CREATE|os.O_TRUNC:
		return windows.CREATE_ALWAYS
	case flag&os.O_CREATE != 0:
		return windows.OPEN_ALWAYS
	case flag&os.O_TRUNC != 0:
		return windows.TRUNCATE_EXISTING
	}
	return windows.OPEN_EXISTING
}

// Size asks the system; see [File].
func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Preallocate does nothing here; see [File].
func (f *osFile) Preallocate(_, _ int64) error { return nil }

// Descriptor is none: handles are not what sendfile takes. See [File].
func (f *osFile) Descriptor() (uintptr, bool) { return 0, false }

// syncDir does nothing: NTFS journals names by itself, and directories cannot be flushed.
func syncDir(string) error { return nil }

// lockFile locks the whole range, as Java's FileChannel.tryLock does on Windows.
func lockFile(name string) (io.Closer, error) {
	f, err := openFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, math.MaxUint32, math.MaxInt32, &windows.Overlapped{})
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		err = ErrLocked
	}
	if err != nil {
		_ = f.Close() // nothing was written through it
		return nil, pathError("lock", name, err)
	}
	return f, nil
}

// space counts what is free for this user, quotas included.
func space(name string) (total, free uint64, err error) {
	path, err := windows.UTF16PtrFromString(name)
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(path, &free, &total, nil)
	}
	return total, free, pathError("statfs", name, err)
}

// isQuota reports Windows' own errors for a full disk.
func isQuota(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// openVolume knows no way to sync a volume as a whole.
func openVolume(name string) (Volume, error) {
	return nil, pathError("open volume", name, errors.ErrUnsupported)
}
