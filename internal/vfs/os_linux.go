package vfs

import "golang.org/x/sys/unix"

// syncDescriptor leaves out the times of the inode, which nobody reads after a crash; the size is synced with
// the data that it covers.
func syncDescriptor(fd int) error { return unix.Fdatasync(fd) }

// preallocate reserves blocks without writing them and without a new size: an append into them then changes no
// metadata but the size, which makes its sync cheaper, and cannot find the disk full.
func preallocate(fd int, offset, length int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

// lockDescriptor takes an open-file-description lock on the whole file: it conflicts with the POSIX lock
// that a Java broker takes, which flock would not see, and with other descriptors of this process, which a
// POSIX lock would not.
func lockDescriptor(fd int) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
}
