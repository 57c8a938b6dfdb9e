//go:build linux || darwin

package vfs

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// osFile is an open file as a bare descriptor. After Close the descriptor is -1, so that a late use fails
// instead of reaching whatever file got the number next. That is a net and no licence: a call that has loaded the
// descriptor before Close stores -1 still uses the number. Whoever shares a file counts its users.
type osFile struct {
	fd   atomic.Int64
	name string
}

// openFile opens name with a plain system call. Package os would register the descriptor with the runtime's
// poller first, which refuses regular files: a system call for nothing on every open.
func openFile(name string, flag int, perm os.FileMode) (*osFile, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, pathError("open", name, err)
	}
	f := &osFile{name: name}
	f.fd.Store(int64(fd))
	return f, nil
}

// again repeats a system call that a signal interrupted. The runtime preempts threads by signals, so this
// happens in ordinary operation on file systems whose waits can be interrupted (network ones).
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// use is the descriptor, or os.ErrClosed.
func (f *osFile) use() (int, error) {
	if fd := f.fd.Load(); fd >= 0 {
		return int(fd), nil
	}
	return -1, os.ErrClosed
}

// maxTransfer is the most that one system call moves: a little below what Linux allows, page aligned.
const maxTransfer = 1 << 30

// ReadAt reads as io.ReaderAt says: fewer bytes than asked for only at the end or with an error.
//
// It allocates nothing and makes one system call in the usual case; Pread has no position, so any number of readers may
// share a descriptor.
func (f *osFile) ReadAt(p []byte, off int64) (n int, err error) {
	fd, err := f.use()
	if err != nil || off < 0 {
		return 0, f.fault("read", err)
	}
	for n < len(p) {
		m, err := unix.Pread(fd, p[n:min(len(p), n+maxTransfer)], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, pathError("read", f.name, err)
		case m == 0:
			return n, io.EOF // also where a truncation was faster than this read
		default:
			n += m
		}
	}
	return n, nil
}

// WriteAt writes all of p, or fails; a write that was cut short by a full disk is tried again for the rest,
// which then gives the reason.
//
// What was stored before an error stays, and n says how much.
func (f *osFile) WriteAt(p []byte, off int64) (n int, err error) {
	fd, err := f.use()
	if err != nil || off < 0 {
		return 0, f.fault("write", err)
	}
	for n < len(p) {
		m, err := unix.Pwrite(fd, p[n:min(len(p), n+maxTransfer)], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, pathError("write", f.name, err)
		case m == 0:
			return n, pathError("write", f.name, io.ErrShortWrite)
		default:
			n += m
		}
	}
	return n, nil
}

// fault is err with the file's name, or os.ErrInvalid where a caller passed a negative position.
func (f *osFile) fault(op string, err error) error {
	if err == nil {
		err = os.ErrInvalid
	}
	return pathError(op, f.name, err)
}

// Name is the path that it was opened with; see [File].
func (f *osFile) Name() string { return f.name }

// Size asks the system; see [File].
func (f *osFile) Size() (int64, error) {
	fd, err := f.use()
	if err != nil {
		return 0, pathError("stat", f.name, err)
	}
	var st unix.Stat_t
	err = again(func() error { return unix.Fstat(fd, &st) })
	return st.Size, pathError("stat", f.name, err)
}

// Truncate cuts or extends; on Linux, cutting to the present size gives preallocated space back. See [File].
func (f *osFile) Truncate(size int64) error {
	return f.call("truncate", func(fd int) error { return unix.Ftruncate(fd, size) })
}

// Sync makes data and length durable; see [File].
func (f *osFile) Sync() error {
	return f.call("sync", syncDescriptor)
}

// Preallocate reserves space, where the file system can; see [File].
func (f *osFile) Preallocate(offset, length int64) error {
	return f.call("preallocate", func(fd int) error {
		err := preallocate(fd, offset, length)
		if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			return nil // a help for the file system, not a promise to the caller
		}
		return err
	})
}

// call runs one system call on the descriptor.
func (f *osFile) call(op string, do func(fd int) error) error {
	fd, err := f.use()
	if err == nil {
		err = again(func() error { return do(fd) })
	}
	return pathError(op, f.name, err)
}

// Close gives the descriptor back; a lock on it goes with it.
// Retrying after EINTR would close a file of another goroutine that has got the number since.
func (f *osFile) Close() error {
	fd := f.fd.Swap(-1)
	if fd < 0 {
		return pathError("close", f.name, os.ErrClosed)
	}
	err := unix.Close(int(fd))
	if err == unix.EINTR {
		err = nil // the descriptor is gone all the same
	}
	return pathError("close", f.name, err)
}

// Descriptor is for sendfile; see [File].
func (f *osFile) Descriptor() (uintptr, bool) {
	fd := f.fd.Load()
	return uintptr(fd), fd >= 0
}

// syncDir syncs a directory by way of a descriptor of its own. Errors of the sync are those of its names.
func syncDir(name string) error {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return pathError("open", name, err)
	}
	err = again(func() error { return unix.Fsync(fd) })
	if e := unix.Close(fd); err == nil && e != unix.EINTR {
		err = e
	}
	return pathError("sync", name, err)
}

// lockFile opens name and locks it as lockDescriptor does; the lock dies with the descriptor, so also with
// the process.
func lockFile(name string) (io.Closer, error) {
	f, err := openFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = f.call("lock", lockDescriptor)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = pathError("lock", name, ErrLocked)
	}
	if err != nil {
		_ = f.Close() // nothing was written through it
		return nil, err
	}
	return f, nil
}

// space counts what is free for an ordinary user: the reserve of the administrator is not ours.
func space(name string) (total, free uint64, err error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Statfs(name, &st) }); err != nil {
		return 0, 0, pathError("statfs", name, err)
	}
	block := uint64(st.Bsize)
	return st.Blocks * block, st.Bavail * block, nil
}

// isQuota reports whether a user's or project's quota is used up.
func isQuota(err error) bool { return errors.Is(err, syscall.EDQUOT) }
