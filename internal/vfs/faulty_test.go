package vfs_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestFaultsByOperationAndPath(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory(), vfs.Fault{Op: vfs.OpSync, Path: "*.log", Err: syscall.EIO, Skip: 1, Times: 2})
	must(t, f.MkdirAll("/d/e", 0o755))
	log, index := create(t, f, "/d/0.log", ""), create(t, f, "/d/0.index", "")
	must(t, log.Sync())
	wantError(t, log.Sync(), syscall.EIO)
	must(t, index.Sync())
	wantError(t, log.Sync(), syscall.EIO)
	must(t, log.Sync())

	remove := f.Inject(vfs.Fault{Path: "/d", Err: syscall.EROFS})
	_, err := f.OpenFile("/d/e/x", os.O_RDWR|os.O_CREATE, 0o644)
	wantError(t, err, syscall.EROFS)
	wantError(t, f.Rename("/z", "/d/z"), syscall.EROFS)
	_, err = f.Stat("/")
	must(t, err)
	remove()
	must(t, f.SyncDir("/d"))
	f.Inject(vfs.Fault{Err: syscall.EIO})
	_, err = f.ReadDir("/d")
	wantError(t, err, syscall.EIO)
	f.Heal()
	_, err = f.ReadDir("/d")
	must(t, err)
}

func TestFaultsCutShort(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	file := create(t, f, "/a", "0123")
	f.Inject(vfs.Fault{Op: vfs.OpWrite, Err: syscall.ENOSPC, Short: 2, Times: 1})
	n, err := file.WriteAt([]byte("abcd"), 4)
	wantError(t, err, syscall.ENOSPC)
	if got := content(t, file); n != 2 || got != "0123ab" {
		t.Errorf("wrote %d: %q", n, got)
	}
	f.Inject(vfs.Fault{Op: vfs.OpRead, Err: syscall.EIO, Short: 1, Times: 1})
	p := make([]byte, 4)
	n, err = file.ReadAt(p, 0)
	wantError(t, err, syscall.EIO)
	if n != 1 || p[0] != '0' {
		t.Errorf("read %d", n)
	}
	if _, ok := file.Descriptor(); ok {
		t.Error("a descriptor would go around the faults")
	}
}

func TestFaultLatencyAndHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hooked []vfs.Op
		f := vfs.NewFaulty(vfs.NewMemory(), vfs.Fault{Op: vfs.OpSyncDir, Latency: 3 * time.Second,
			Hook: func(op vfs.Op, _ string) { hooked = append(hooked, op) }})
		start := time.Now()
		must(t, f.SyncDir("/"))
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
		if !slices.Equal(hooked, []vfs.Op{vfs.OpSyncDir}) {
			t.Errorf("hooked %v", hooked)
		}
	})
}

// TestCrashBeforeEveryOperation is the pattern of the crash tests: a file that is replaced by way of a
// temporary one is, after a cut before any operation, the old or the new one, whole.
func TestCrashBeforeEveryOperation(t *testing.T) {
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	must(t, replace(f, "old"))
	var clones []*vfs.Memory
	f.BeforeMutation(func(n int64, _ vfs.Op, _ string) {
		for seed := range uint64(8) {
			clones = append(clones, m.CrashClone(rand.New(rand.NewPCG(seed, uint64(n))), 0.5))
		}
	})
	before := f.Mutations()
	must(t, replace(f, "new"))
	if ops := f.Mutations() - before; ops != 5 || len(clones) != 5*8 {
		t.Fatalf("%d operations, %d clones", ops, len(clones))
	}
	seen := map[string]int{}
	for _, clone := range clones {
		seen[named(t, clone, "/a")]++
	}
	if len(seen) != 2 || seen["old"] == 0 || seen["new"] == 0 {
		t.Errorf("seen %v", seen)
	}
}

func replace(f vfs.FS, data string) error {
	file, err := f.OpenFile("/a.tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(data), 0)
	return errors.Join(err, file.Sync(), file.Close(), f.Rename("/a.tmp", "/a"), f.SyncDir("/"))
}
