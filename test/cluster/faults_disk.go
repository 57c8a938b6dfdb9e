package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// emptied is a round in which a broker loses its disk, and comes back with an empty one and its old id.
func emptied(ctx context.Context, t *trial, round int) error {
	b := t.brokers[round%3]
	t.kill(b)
	if err := os.RemoveAll(filepath.Join(b.Dir, "data")); err != nil {
		return err
	}
	t.fault("empty disk")
	if round%2 == 0 { // else it is back before anybody has missed it
		if err := t.servedAgain(ctx, fmt.Sprintf("broker %d is down", b.id)); err != nil {
			return err
		}
	}
	if err := b.Start(); err != nil {
		return err
	}
	return t.servedAgain(ctx, fmt.Sprintf("broker %d has lost its disk", b.id))
}

// spare is what is left on a disk that is about to be full.
const spare = 1 << 20

// full is a round in which a broker's disk has no space for some seconds.
func full(ctx context.Context, t *trial, round int) error {
	b := t.brokers[round%3]
	dir := filepath.Join(b.Dir, "data")
	ballast := filepath.Join(dir, ".ballast")
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return err
	}
	free := int64(disk.Bavail)*disk.Bsize - spare
	if err := allocate(ballast, free); err != nil && !errors.Is(err, syscall.ENOSPC) { // brokers write meanwhile
		return err
	}
	t.fault("disk nearly full")
	if err := t.load.until(ctx, "the disk to be full", func(context.Context) error {
		if err := syscall.Statfs(dir, &disk); err != nil {
			return err
		}
		if left := int64(disk.Bavail) * disk.Bsize; left > 128<<10 {
			return fmt.Errorf("%d bytes are left", left)
		}
		return nil
	}); err != nil {
		return err
	}
	t.fault("disk full")
	if err := t.pause(ctx, second(2), 2*t.settings.lag); err != nil {
		return err
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	return t.servedAgain(ctx, "there is space again")
}

// allocate makes a file of zeros.
func allocate(path string, size int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zeros := make([]byte, 1<<20)
	for size > 0 {
		n, err := f.Write(zeros[:min(size, int64(len(zeros)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}
