package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
)

// machine describes what this runs on, in a line.
func machine(dir string) string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fs, _ := exec.Command("df", "--output=fstype", dir).Output() // a heading, and the name
	total, _ := memory("MemTotal")
	return fmt.Sprintf("%s, %d cores, %.1f GB of memory, Linux %s, %s", field("/proc/cpuinfo", "model name"), runtime.NumCPU(),
		float64(total)/1e9, strings.TrimSpace(string(kernel)), cmp.Or(strings.TrimSpace(strings.TrimPrefix(string(fs), "Type")), "unknown file system"))
}

// commit names what is checked out, with "-dirty" where that has been changed.
func commit(root string) string {
	name, err := exec.Command("git", "-C", root, "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}

// field is what stands behind the first "name :" of a file of /proc.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// needDisk fails where the folder of the servers' data has less room than a scenario is going to take: it says so before
// anything is written, not when a side in the middle of its rounds finds the disk full.
func (c *comparison) needDisk(bytes int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(c.place.Dir, &disk); err != nil {
		return fmt.Errorf("room in %s: %w", c.place.Dir, err)
	}
	if free := int64(disk.Bavail * uint64(disk.Bsize)); free < bytes { // the types differ between systems
		return fmt.Errorf("it needs %.1f GB in %s, where %.1f GB are free; -dir names another folder", float64(bytes)/1e9, c.place.Dir, float64(free)/1e9)
	}
	return nil
}

// clean is how many dirty bytes are few enough to begin: other programs write, too.
const clean = 64 << 20

// settle asks the kernel to write what is dirty, and waits until that has been done.
func (c *comparison) settle() error {
	for range 20 {
		if err := exec.CommandContext(c.ctx, "sync").Run(); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		dirty, err := servers.Dirty()
		if err != nil || dirty < clean {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return nil // somebody else keeps writing; the state says how much was dirty
}

// threshold is how many dirty bytes make the kernel begin to write: vm.dirty_background_bytes, or where that is 0
// vm.dirty_background_ratio of what is available.
func threshold() int64 {
	setting := func(name string) int64 {
		text, _ := os.ReadFile("/proc/sys/vm/" + name)
		n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return n
	}
	if bytes := setting("dirty_background_bytes"); bytes > 0 {
		return bytes
	}
	available, _ := memory("MemAvailable")
	return available * setting("dirty_background_ratio") / 100
}

// cost is what a server took while something was done.
type cost struct {
	cpu       float64 // seconds
	elapsed   time.Duration
	rss, peak int64 // bytes, at the end and at most
	dirty     int64 // bytes, at most
	limit     int64 // where the kernel begins to write
	read      int64 // bytes from a disk
}

// state is what the table tells of a round; nothing where nothing was measured.
func (k cost) state() results.State {
	if k.elapsed == 0 {
		return results.State{}
	}
	s := results.State{Rounds: 1, Dirty: k.dirty, Threshold: k.limit, Read: k.read}
	if k.dirty > k.limit {
		s.Above = 1
	}
	return s
}

// measure does something and tells what a server took meanwhile.
func (c *comparison) measure(s *servers.Server, do func() error) (cost, error) {
	if err := s.ResetPeak(); err != nil {
		return cost{}, err
	}
	start, err := s.Usage()
	if err != nil {
		return cost{}, err
	}
	k, err := c.watched(do)
	if err != nil {
		return cost{}, err
	}
	end, err := s.Usage()
	if err != nil {
		return cost{}, err
	}
	k.cpu, k.rss, k.peak, k.read = end.CPU-start.CPU, end.RSS, end.Peak, end.Read-start.Read
	return k, nil
}

// watched does something and tells how long that took and how much was dirty meanwhile, without what a server took.
func (c *comparison) watched(do func() error) (cost, error) {
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	most := make(chan int64, 1)
	go watchDirty(ctx, most)
	k := cost{limit: threshold()}
	began := time.Now()
	if err := do(); err != nil {
		return cost{}, err
	}
	k.elapsed = time.Since(began)
	stop()
	k.dirty = <-most
	return k, nil
}

// watchDirty looks ten times a second at how much is dirty, until ctx ends, and sends the most.
func watchDirty(ctx context.Context, most chan<- int64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	largest := int64(0)
	for {
		dirty, _ := servers.Dirty() // none where /proc has none
		largest = max(largest, dirty)
		select {
		case <-tick.C:
		case <-ctx.Done():
			most <- largest
			return
		}
	}
}
