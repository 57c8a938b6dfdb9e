package log

import (
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// A sync that finds the volume full may have lost what it was to write: the kernel takes such pages for written, and the
// next sync finds nothing to do. So it is final, unlike a write that finds it full.
func TestSyncOnAFullVolumeIsFinal(t *testing.T) {
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		disk := vfs.NewFaulty(vfs.NewMemory())
		l := open(t, testOptions(disk))
		mustAppend(t, l, idempotent(7, 0, 0, 3), 0)
		disk.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Err: errno, Times: 1})
		if err := l.Flush(); err == nil || vfs.IsFull(err) {
			t.Errorf("%v: %v, which passes for a full disk", errno, err)
		}
		if err := l.Flush(); err == nil || l.RecoveryPoint() != 0 {
			t.Errorf("%v: the next sync ends with %v, and vouches for what is below %d", errno, err, l.RecoveryPoint())
		}
	}
}
