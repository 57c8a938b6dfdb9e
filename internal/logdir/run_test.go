package logdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// bubble runs a test on a virtual clock with a broker whose background work runs.
func bubble(t *testing.T, w *world, test func(t *testing.T, s *Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := w.start(t)
		var running sync.WaitGroup
		running.Go(func() { s.Run(t.Context()) })
		test(t, s)
		kill(s)
		running.Wait()
	})
}

// after lets time pass, and the work that is due then be done.
func after(d time.Duration) {
	pass(d)
	synctest.Wait()
}

func TestCheckpointsAndSyncByTheClock(t *testing.T) {
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	w := newWorld(t, f)
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, partition("t", 0))
		must(t, appendValues(l, "a", "b"))
		after(6 * time.Second)
		if got := get(t, m, "/data/replication-offset-checkpoint"); got != "0\n1\nt 0 2\n" {
			t.Errorf("high watermarks after 6 s: %q", got)
		}
		if l.RecoveryPoint() != 0 {
			t.Error("synced too early")
		}
		after(2 * time.Minute)
		if l.RecoveryPoint() != 2 {
			t.Errorf("recovery point %d: nothing has synced in the background", l.RecoveryPoint())
		}
		if got := get(t, m, "/data/recovery-point-offset-checkpoint"); got != "0\n1\nt 0 2\n" {
			t.Errorf("recovery points: %q", got)
		}
		after(time.Minute)
		idle := f.Mutations()
		after(3 * time.Hour)
		if now := f.Mutations(); now != idle {
			t.Errorf("an idle broker wrote %d times", now-idle)
		}
		if s.options.Files.Open() != 0 {
			t.Errorf("an idle broker keeps %d files open", s.options.Files.Open())
		}
	})
}

func TestFlushInterval(t *testing.T) {
	w := newWorld(t, vfs.NewMemory())
	bubble(t, w, func(t *testing.T, s *Set) {
		w.topic.FlushInterval = 3 * time.Second
		l := w.make(t, s, partition("t", 0))
		after(time.Minute)
		must(t, appendValues(l, "a"))
		after(2 * time.Second)
		must(t, appendValues(l, "b"))
		after(2 * time.Second)
		if l.RecoveryPoint() != 2 {
			t.Errorf("recovery point %d", l.RecoveryPoint())
		}
	})
}

func TestDeletedFilesGoAfterTheirDelay(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	w.topic.FileDeleteDelay = 10 * time.Second
	folders := func() (all []string) {
		entries, err := m.ReadDir("/data")
		must(t, err)
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, e.Name())
			}
		}
		return all
	}
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, partition("t", 0))
		must(t, appendValues(l, "a"))
		reading, err := l.Read(0, 100, 1, true)
		must(t, err)
		must(t, s.Delete(partition("t", 0), partition("unknown", 0)))
		if s.Get(partition("t", 0)) != nil || appendValues(l, "b") == nil {
			t.Error("the deleted log still works")
		}
		again := w.make(t, s, partition("t", 0))
		must(t, appendValues(again, "new"))
		after(9 * time.Second)
		if got := folders(); len(got) != 2 || !strings.HasSuffix(got[1], "-delete") {
			t.Errorf("folders %v", got)
		}
		after(2 * time.Second)
		if got := folders(); !slices.Equal(got, []string{"t-0"}) {
			t.Errorf("folders %v", got)
		}
		data := make([]byte, reading.Length)
		must(t, reading.ReadInto(data))
		reading.Release()
		wantValues(t, again, "new")
		must(t, s.Delete(partition("t", 0)))
	})
	bubble(t, w, func(t *testing.T, s *Set) {
		after(50 * time.Second)
		if got := folders(); len(got) != 1 || len(s.All()) != 0 {
			t.Errorf("folders %v: a folder of the last life waits for the broker's delay", got)
		}
		after(11 * time.Second)
		if got := folders(); len(got) != 0 {
			t.Errorf("folders %v", got)
		}
	})
}

// TestRetentionAfterAClockStep holds a broker whose clock steps by a day to one whose clock does not.
func TestRetentionAfterAClockStep(t *testing.T) {
	starts := func(step time.Duration) (starts []protocol.Offset) {
		w := newWorld(t, vfs.NewMemory())
		w.topic.RetentionAge = time.Hour
		w.topic.FileDeleteDelay = time.Minute
		var offset atomic.Int64
		w.options.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		bubble(t, w, func(t *testing.T, s *Set) {
			l := w.make(t, s, partition("t", 0))
			for i := range 12 {
				must(t, appendValues(l, fmt.Sprint(i)))
				must(t, l.Roll())
				after(10 * time.Minute)
			}
			after(30 * time.Second)
			offset.Store(int64(step))
			for range 10 {
				after(time.Minute)
				starts = append(starts, l.StartOffset())
			}
			after(20 * time.Minute)
			if step > 0 && l.StartOffset() != l.EndOffset() {
				t.Errorf("a step that lasts is believed in the end; the log starts at %d", l.StartOffset())
			}
		})
		return starts
	}
	want := starts(0)
	if want[9] == 0 || want[0] == want[9] {
		t.Fatalf("retention has nothing to do in this test: %v", want)
	}
	for _, step := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		if got := starts(step); !slices.Equal(got, want) {
			t.Errorf("step of %s: log starts %v, without it %v", step, got, want)
		}
	}
}

func TestPanicTakesOnePartitionOffline(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	w := newWorld(t, f)
	bad, good := partition("bad", 0), partition("good", 0)
	bubble(t, w, func(t *testing.T, s *Set) {
		w.make(t, s, bad)
		w.make(t, s, good)
		must(t, appendValues(s.Get(bad), "a"))
		must(t, appendValues(s.Get(good), "a"))
		remove := f.Inject(vfs.Fault{Op: vfs.OpSync, Path: "/data/bad-0", Hook: func(vfs.Op, string) { panic("a bug of ours") }})
		after(2 * time.Minute)
		remove()
		if s.Get(bad) != nil || protocol.CodeOf(s.Err(bad)) != protocol.KafkaStorageError || !w.journal.has("a bug of ours") {
			t.Errorf("partition with the panic: %v", s.Err(bad))
		}
		if s.Err(good) != nil || s.Get(good).RecoveryPoint() != 1 || s.Dirs()[0].Err != nil {
			t.Error("the others must go on")
		}
		must(t, appendValues(s.Get(good), "b"))
	})
	s := w.start(t)
	wantValues(t, s.Get(bad), "a")
	wantValues(t, s.Get(good), "a", "b")
}

func TestPanicInAJobEndsOnlyItsRun(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	w := newWorld(t, f)
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, partition("t", 0))
		must(t, appendValues(l, "a"))
		remove := f.Inject(vfs.Fault{Path: "*-checkpoint.tmp", Hook: func(vfs.Op, string) { panic("a bug of ours") }})
		after(10 * time.Second)
		remove()
		after(10 * time.Minute)
		if got := get(t, w.options.FS, "/data/replication-offset-checkpoint"); got != "0\n1\nt 0 1\n" {
			t.Errorf("the job did not come again: %q", got)
		}
	})
}

func TestDiskThatFailsInTheBackground(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	w := newWorld(t, f, "/a", "/b")
	bubble(t, w, func(t *testing.T, s *Set) {
		must(t, appendValues(w.make(t, s, partition("t", 0)), "a"))
		must(t, appendValues(w.make(t, s, partition("t", 1)), "a"))
		f.Inject(vfs.Fault{Op: vfs.OpSync, Path: "/b", Err: syscall.EIO})
		after(10 * time.Second)
		if failed := <-s.Failed(); failed != "/b" {
			t.Errorf("failed %s", failed)
		}
		wantValues(t, s.Get(partition("t", 0)), "a")
		if s.Get(partition("t", 1)) != nil {
			t.Error("the partition on the failed disk serves")
		}
		before := f.Mutations()
		after(time.Hour)
		if s.Get(partition("t", 0)).RecoveryPoint() != 1 || before == f.Mutations() {
			t.Error("background work stopped in the good directory")
		}
	})
}

// withoutVolumes is a file system that can only sync file by file.
type withoutVolumes struct{ vfs.FS }

func (withoutVolumes) OpenVolume(string) (vfs.Volume, error) { return nil, errors.ErrUnsupported }

func TestCloseIsBoundedByItsContext(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	w := newWorld(t, withoutVolumes{f})
	bubble(t, w, func(t *testing.T, s *Set) {
		for i := range int32(100) {
			must(t, appendValues(w.make(t, s, partition("t", i)), "a"))
		}
		must(t, s.Checkpoint())
		f.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Latency: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := s.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "of 100 logs") || strings.Contains(err.Error(), "\n") {
			t.Errorf("not all logs were synced, and what is said of it is: %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
		f.Heal()
	})
	if clean, _, _ := readMarker(f, "/data"); clean {
		t.Error("a marker although not all logs were synced")
	}
	s := w.start(t)
	for _, l := range s.All() {
		wantValues(t, l, "a")
	}
}

func TestProducersExpire(t *testing.T) {
	w := newWorld(t, vfs.NewMemory())
	w.options.Config = brokerConfig(t, "producer.id.expiration.ms=3600000")
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, partition("t", 0))
		b := record.NewBuilder(record.BuilderOptions{ProducerID: 7, Idempotent: true})
		b.Append(time.Now().UnixMilli(), nil, []byte("a"))
		_, err := l.AppendLeader(record.Validated{Batch: b.Build(), Count: 1}, 0)
		must(t, err)
		if len(l.Producers()) != 1 {
			t.Fatal("no producer state")
		}
		after(2 * time.Hour)
		if got := l.Producers(); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}
