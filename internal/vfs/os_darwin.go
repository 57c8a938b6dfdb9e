package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// syncDescriptor asks the drive to empty its own cache too, which fsync on macOS does not; file systems
// that cannot fall back to fsync.
func syncDescriptor(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0); err == nil {
		return nil
	}
	return unix.Fsync(fd)
}

// preallocate reserves from the end of the allocated space, the only mode that macOS has.
func preallocate(fd int, offset, length int64) error {
	return unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, &unix.Fstore_t{
		Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: length,
	})
}

// lockDescriptor uses flock, which belongs to the open file and on this system runs into POSIX locks too.
func lockDescriptor(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }

// openVolume knows no way to sync a volume as a whole.
func openVolume(name string) (Volume, error) {
	return nil, pathError("open volume", name, errors.ErrUnsupported)
}
