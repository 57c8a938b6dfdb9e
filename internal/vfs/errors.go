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

// IsExhausted reports whether err says that something is used up for the moment: space, descriptors or memory.
// What failed can be tried again later, and nothing about the volume is wrong.
func IsExhausted(err error) bool {
	return IsFull(err) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
