package logdir

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestMove(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m, "/a", "/b")
	w.topic.SegmentBytes = 1000
	tp := partition("t", 0)
	var want []string
	bubble(t, w, func(t *testing.T, s *Set) {
		old := w.make(t, s, tp)
		for i := range 50 {
			want = append(want, fmt.Sprint(i), strings.Repeat("x", 200))
			must(t, appendValues(old, want[len(want)-2:]...))
		}
		must(t, old.AdvanceStart(5)) // inside a batch
		want = want[5:]
		must(t, s.Move(tp, "/b"))
		must(t, s.Move(tp, "/b"))
		if got := <-s.CaughtUp(); got != tp {
			t.Errorf("%s caught up", got)
		}
		if l, dir := s.Future(tp); dir != "/b" || l.EndOffset() != old.EndOffset() || len(s.Dirs()[1].Futures) != 1 {
			t.Errorf("copy in %q", dir)
		}
		must(t, appendValues(old, "late"))
		want = append(want, "late")
		reading, err := old.Read(50, 100, 1000, true)
		must(t, err)

		l, err := s.Swap(tp)
		must(t, err)
		wantValues(t, l, want...)
		if l.HighWatermark() != old.HighWatermark() || l.StartOffset() != 5 || s.Get(tp) != l {
			t.Errorf("bounds %d, %d", l.StartOffset(), l.HighWatermark())
		}
		if dir, _ := s.DirOf(tp); dir != "/b" {
			t.Errorf("in %s", dir)
		}
		if appendValues(old, "stray") == nil {
			t.Error("the old log took an append")
		}
		must(t, reading.ReadInto(make([]byte, reading.Length)))
		reading.Release()
		must(t, appendValues(l, "new"))
		want = append(want, "new")
		if _, err := s.Swap(tp); err == nil {
			t.Error("swapped twice")
		}
		after(2 * time.Minute)
		entries, err := m.ReadDir("/a")
		must(t, err)
		for _, e := range entries {
			if e.IsDir() {
				t.Errorf("left in /a: %s", e.Name())
			}
		}
	})
	s := w.start(t)
	wantValues(t, s.Get(tp), want...)
}

func TestMoveErrors(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	w := newWorld(t, f, "/a", "/b")
	s := w.start(t)
	tp, long := partition("t", 0), partition(strings.Repeat("n", protocol.TopicNameMax), 0)
	w.make(t, s, tp)
	w.make(t, s, long)
	for err, want := range map[error]protocol.Code{
		s.Move(tp, "/c"):                   protocol.LogDirNotFound,
		s.Move(partition("none", 0), "/b"): protocol.ReplicaNotAvailable,
		s.Move(long, "/a"):                 protocol.InvalidTopic,
		s.Move(tp, "/a"):                   protocol.None,
	} {
		if protocol.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want.Name())
		}
	}
	must(t, s.Move(tp, "/b"))
	if _, dir := s.Future(tp); dir != "/b" {
		t.Error("no copy")
	}
	must(t, s.Move(tp, "/a")) // to where it is: ends the move
	if l, _ := s.Future(tp); l != nil {
		t.Error("the copy is still there")
	}
	must(t, s.Move(tp, "/b"))
	must(t, s.Delete(tp))
	if l, _ := s.Future(tp); l != nil {
		t.Error("the copy of a deleted partition is still there")
	}
	s.removeDue(t.Context())
	tp = partition("t", 1)
	w.make(t, s, tp)
	from, _ := s.DirOf(tp)
	to := map[string]string{"/a": "/b", "/b": "/a"}[from]
	f.Inject(vfs.Fault{Path: to, Err: syscall.EIO})
	if err := s.Move(tp, to); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Errorf("got %v", err)
	}
	if s.Err(tp) != nil {
		t.Error("the partition itself is well")
	}
	if err := s.Move(tp, to); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Errorf("to an offline directory: %v", err)
	}
}

func TestMoveGoesOnAfterARestart(t *testing.T) {
	for _, clean := range []bool{true, false} {
		w := newWorld(t, vfs.NewMemory(), "/a", "/b")
		tp := partition("t", 0)
		s := w.start(t)
		must(t, appendValues(w.make(t, s, tp), "a", "b"))
		must(t, s.Move(tp, "/b"))
		s.move(t.Context())
		if clean {
			stop(t, s)
		} else {
			kill(s)
		}
		bubble(t, w, func(t *testing.T, s *Set) {
			must(t, appendValues(s.Get(tp), "c"))
			<-s.CaughtUp()
			l, err := s.Swap(tp)
			must(t, err)
			wantValues(t, l, "a", "b", "c")
		})
	}
}

func TestMoveIsThrottled(t *testing.T) {
	w := newWorld(t, vfs.NewMemory(), "/a", "/b")
	w.options.Config = brokerConfig(t, "replica.alter.log.dirs.io.max.bytes.per.second=100000")
	bubble(t, w, func(t *testing.T, s *Set) {
		tp := partition("t", 0)
		l := w.make(t, s, tp)
		for range 40 {
			must(t, appendValues(l, strings.Repeat("x", 100_000)))
		}
		began := time.Now()
		must(t, s.Move(tp, "/b"))
		<-s.CaughtUp()
		if took := time.Since(began); took < 35*time.Second || took > 60*time.Second {
			t.Errorf("4 MB at 100 kB/s took %s", took)
		}
	})
}

func TestMoveOfATruncatedLog(t *testing.T) {
	w := newWorld(t, vfs.NewMemory(), "/a", "/b")
	s := w.start(t)
	tp := partition("t", 0)
	l := w.make(t, s, tp)
	for _, value := range []string{"a", "b", "c"} {
		must(t, appendValues(l, value))
	}
	must(t, s.Move(tp, "/b"))
	s.move(t.Context())
	must(t, l.Flush())
	must(t, s.Checkpoint())
	must(t, s.TruncateTo(tp, 1))
	from, _ := s.DirOf(tp)
	if got := get(t, w.options.FS, from+"/recovery-point-offset-checkpoint"); got != "0\n1\nt 0 1\n" {
		t.Errorf("recovery points: %q", got)
	}
	must(t, appendValues(l, "x"))
	s.move(t.Context())
	moved, err := s.Swap(tp)
	must(t, err)
	wantValues(t, moved, "a", "x")
	must(t, s.TruncateFullyAndStartAt(tp, 7))
	if moved.StartOffset() != 7 || moved.EndOffset() != 7 {
		t.Errorf("from %d to %d", moved.StartOffset(), moved.EndOffset())
	}
}

func TestCrashAtEveryOperationOfAMove(t *testing.T) {
	clones := crashWorld(t, func(w *world, p *promise) {
		s := w.start(t)
		tp := partition("t", 0)
		w.makeBoth(t, s, p, "t")
		p.append(t, s, tp, "a", "b")
		p.flush(t, s, tp)
		must(t, s.Checkpoint())
		must(t, s.Move(tp, "/b"))
		s.move(t.Context())
		p.append(t, s, tp, "c")
		p.flush(t, s, tp)
		_, err := s.Swap(tp)
		must(t, err)
		p.append(t, s, tp, "d")
		p.flush(t, s, tp)
		s.mu.Lock()
		for i := range s.mu.deletions {
			s.mu.deletions[i].due = time.Now()
		}
		s.mu.Unlock()
		s.removeDue(t.Context())
		must(t, s.Checkpoint())
		stop(t, s)
	})
	for i := range clones {
		clones[i].check(t)
	}
}
