package sim

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// diskErrorFault makes operations on some files of a disk fail for a while; a write may store a part of its bytes. What
// a broker has given up for it is its own again after a restart, which follows.
func diskErrorFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(50*time.Millisecond, 3*time.Second, "disk error", n)
	ops := [...]vfs.Op{vfs.OpWrite, vfs.OpSync, vfs.OpRead, vfs.OpRename, vfs.OpCreate, vfs.OpTruncate}
	paths := [...]string{"*.log", "*.index", "*checkpoint*", "/data"}
	f := vfs.Fault{
		Op: ops[d.throw("disk operation", n)%uint64(len(ops))], Path: paths[d.throw("disk path", n)%uint64(len(paths))],
		Skip: int(d.throw("disk skip", n) % 4), Times: int(d.throw("disk times", n) % 3), Err: syscall.EIO, Short: int(d.throw("disk short", n) % 200),
	}
	text := fmt.Sprintf("on broker %d for %v: %s of %s", id, lasts, f.Op, f.Path)
	return fault{kind: "disk error", text: text, do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		m.breakDisk(f)
		w.after(lasts, func() { m.repair(ctx) })
	}}
}

// fullDiskFault fills a disk for a while.
func fullDiskFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(50*time.Millisecond, 4*time.Second, "full disk", n)
	left := int64(d.throw("left", n) % 20000)
	return fault{kind: "full disk", text: fmt.Sprintf("on broker %d for %v, %d bytes are left", id, lasts, left), do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		m.limitDisk(left)
		w.after(lasts, func() { m.freeDisk(ctx) })
	}}
}

// breakDisk injects a fault into the disk, also for the lives that follow.
func (m *machine) breakDisk(f vfs.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.broken = true
	m.files.Inject(f)
}

// repair ends the faults of the disk. Directories that the broker has given up come back with its restart.
func (m *machine) repair(ctx context.Context) {
	m.mu.Lock()
	broken := m.mu.broken
	m.mu.broken = false
	m.files.Heal()
	m.mu.Unlock()
	if broken {
		m.crash(true, 1)
		m.revive(ctx)
	}
}

// limitDisk leaves some bytes of the disk.
func (m *machine) limitDisk(left int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.full = true
	m.disk.SetLimit(m.disk.Used() + left)
}

// freeDisk ends limitDisk. A broker goes on by itself, unless it has started on the full disk: what it could not open then
// is its own again after another start.
func (m *machine) freeDisk(ctx context.Context) {
	m.mu.Lock()
	m.mu.full = false
	m.disk.SetLimit(0)
	restart := m.mu.life != nil && m.mu.life.cramped
	m.mu.Unlock()
	if restart {
		m.crash(true, 1)
		m.revive(ctx)
	}
}
