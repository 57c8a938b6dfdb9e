package log

import (
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestIdleLogIsSmall holds a log that nobody uses to its limits: 4 KiB of heap, no file, no goroutine.
func TestIdleLogIsSmall(t *testing.T) {
	const logs = 100
	dir := t.TempDir()
	files := NewFileCache(50)
	make1 := func(i int, trust Trust) *Log {
		o := testOptions(vfs.OS())
		o.Dir, o.Files, o.Trust = fmt.Sprintf("%s/t-%d", dir, i), files, trust
		return open(t, o)
	}
	for i := range logs {
		l := make1(i, Clean)
		for range 20 {
			mustAppend(t, l, plain(3, 1000), 0)
		}
		if err := l.CloseClean(); err != nil {
			t.Fatal(err)
		}
	}
	goroutines := goleak.IgnoreCurrent()
	before := heap()
	all := make([]*Log, logs)
	for i := range all {
		all[i] = make1(i, Clean)
	}
	if n := files.Open(); n > 50 {
		t.Errorf("%d files open, the limit is 50", n)
	}
	files.CloseIdle()
	files.CloseIdle()
	opened := (heap() - before) / logs
	for _, l := range all {
		mustAppend(t, l, plain(3, 1000), 0)
		readBytes(t, l, 0, everything)
		l.Rest()
	}
	rested := (heap() - before) / logs
	t.Logf("%d bytes a log when opened, %d when used and at rest", opened, rested)
	if opened > 4096 || rested > 4096 {
		t.Errorf("a log takes %d bytes when opened, %d when used and at rest", opened, rested)
	}
	if n := files.Open(); n > 50 {
		t.Errorf("%d files open", n)
	}
	leaktest.Verify(t, goroutines)
	runtime.KeepAlive(all)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
