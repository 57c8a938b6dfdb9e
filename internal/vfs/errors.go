package vfs

import (
	"errors"
	"syscall"
)

// ErrLocked is what [FS.Lock] fails with where somebody else holds the lock.
var ErrLocked = errors.New("locked by another process")

// IsFull reports whether err says that a volume or a user's quota on it is full. Such an error goes away
// by itself once space is back; every other error of a write or a sync is final for the directory.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || isQuota(err)
}
