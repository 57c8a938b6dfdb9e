package vfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

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

// volume is a directory whose file system syncfs syncs.
type volume struct {
	*osFile
	device uint64
}

// openVolume knows the file systems of disks whose syncfs writes everything and waits for it. Of others, such as those
// of networks and in user space, some leave out what only a sync of the file itself asks their server for.
//
// The kernel compares what has failed since the descriptor was opened, as with a sync of a file; before 5.8 it did
// not. On XFS nothing flushes the disk's own cache where no metadata has changed; a sync of any file behind it does.
func openVolume(name string) (Volume, error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Statfs(name, &st) }); err != nil {
		return nil, pathError("statfs", name, err)
	}
	switch uint32(st.Type) { // some systems have it as an int32, in which that of btrfs is below 0
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
	default:
		return nil, pathError("open volume", name, errors.ErrUnsupported)
	}
	if !syncfsTells() {
		return nil, pathError("open volume", name, errors.ErrUnsupported)
	}
	f, err := openFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var directory unix.Stat_t
	if err := f.call("stat", func(fd int) error { return unix.Fstat(fd, &directory) }); err != nil {
		_ = f.Close() // nothing was written through it
		return nil, err
	}
	return volume{f, directory.Dev}, nil
}

// Holds compares device numbers. A subvolume of btrfs has its own, and counts as another volume although syncfs covers it.
func (v volume) Holds(dir string) (bool, error) {
	if held, err := v.holds(dir); !held || err != nil {
		return false, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		held, err := v.holds(filepath.Join(dir, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed meanwhile
		}
		if !held || err != nil {
			return false, err
		}
	}
	return true, nil
}

// holds is Holds for one name, which may be a link.
func (v volume) holds(name string) (bool, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Stat(name, &st) })
	return err == nil && st.Dev == v.device, pathError("stat", name, err)
}

// syncfsTells reports whether syncfs fails where data could not be stored: from Linux 5.8 on.
var syncfsTells = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 8
})

// Sync makes the volume durable; see [Volume].
func (v volume) Sync() error { return v.call("sync volume", unix.Syncfs) }
