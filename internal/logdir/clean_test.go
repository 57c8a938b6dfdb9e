package logdir

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// appendKeys appends one batch of records with keys, and closes the segment.
func appendKeys(t testing.TB, l *log.Log, value string, keys ...string) {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{})
	for _, key := range keys {
		b.Append(time.Now().UnixMilli(), []byte(key), []byte(key+value))
	}
	_, err := l.AppendLeader(record.Validated{Batch: b.Build(), Count: len(keys)}, 0)
	must(t, err)
	l.SetHighWatermark(l.EndOffset())
	must(t, l.Roll())
}

func TestCompaction(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	w.topic.Compact, w.topic.Delete = true, false
	tp := partition("t", 0)
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, tp)
		appendKeys(t, l, "1", "a", "b", "c")
		appendKeys(t, l, "2", "a", "b")
		after(50 * time.Second)
		wantValues(t, l, "c1", "a2", "b2")
		if got := get(t, m, "/data/cleaner-offset-checkpoint"); got != "0\n1\nt 0 5\n" {
			t.Errorf("cleaner checkpoint %q", got)
		}
		appendKeys(t, l, "3", "x")
		after(time.Minute)
		if l.CleanedTo() != 5 {
			t.Errorf("cleaned to %d although little of it is dirty", l.CleanedTo())
		}
		after(time.Hour)
		must(t, s.Checkpoint())
	})
	s := w.start(t)
	if got := s.Get(tp).CleanedTo(); got != 5 {
		t.Errorf("cleaned to %d after a restart", got)
	}
	wantValues(t, s.Get(tp), "c1", "a2", "b2", "x3")
}

func TestFilthiestLogsFirst(t *testing.T) {
	w := newWorld(t, vfs.NewMemory())
	w.topic.Compact = true
	s := w.start(t)
	for i, dirty := range []int{1, 3, 2, 0} {
		l := w.make(t, s, partition("t", int32(i)))
		appendKeys(t, l, "1", "a", "b", "c", "d", "e", "f", "g", "h")
		_, err := l.Compact(t.Context(), log.CompactOptions{Buffer: 1 << 20})
		must(t, err)
		for range dirty {
			appendKeys(t, l, strings.Repeat("x", 100), "a", "b")
		}
	}
	w.topic.Compact = false
	appendKeys(t, w.make(t, s, partition("plain", 0)), "1", "a")
	var got []string
	for _, e := range newCleaner(s).filthiest(t.Context(), 2) {
		got = append(got, e.partition.String())
	}
	if fmt.Sprint(got) != "[t-1 t-2]" {
		t.Errorf("picked %v", got)
	}
}

func TestCompactionIsThrottled(t *testing.T) {
	w := newWorld(t, vfs.NewMemory())
	w.topic.Compact = true
	w.options.Config = brokerConfig(t, "log.cleaner.io.max.bytes.per.second=1000")
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, partition("t", 0))
		for range 10 {
			appendKeys(t, l, strings.Repeat("x", 1000), "a")
		}
		after(32 * time.Second)
		if l.CleanedTo() > 0 {
			t.Error("10 kB at 1 kB/s took no time")
		}
		after(time.Minute)
		if l.CleanedTo() != 10 {
			t.Errorf("cleaned to %d", l.CleanedTo())
		}
	})
}

func TestCompactionOnAFullDisk(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	w := newWorld(t, f)
	w.topic.Compact = true
	bubble(t, w, func(t *testing.T, s *Set) {
		l := w.make(t, s, partition("t", 0))
		appendKeys(t, l, "1", "a", "b")
		appendKeys(t, l, "2", "a", "b")
		f.Inject(vfs.Fault{Op: vfs.OpWrite, Path: "*.cleaned", Err: syscall.ENOSPC})
		after(2 * time.Minute)
		if s.Err(l.Partition()) != nil || l.CleanedTo() > 0 {
			t.Errorf("full disk: %v, cleaned to %d", s.Err(l.Partition()), l.CleanedTo())
		}
		wantValues(t, l, "a1", "b1", "a2", "b2")
		f.Heal()
		after(time.Minute)
		wantValues(t, l, "a2", "b2")
	})
}

// damage inverts a byte of a value in the log of t-0.
func damageLog(t *testing.T, m *vfs.Memory, value string) {
	t.Helper()
	path := "/data/t-0/00000000000000000000.log"
	at := strings.Index(get(t, m, path), value)
	if at < 0 {
		t.Fatalf("no %q in the log", value)
	}
	f, err := m.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{^value[0]}, int64(at))
	must(t, err)
	must(t, f.Close())
}

func TestVerificationAfterAKill(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	tp, well := partition("t", 0), partition("well", 0)
	s := w.start(t)
	w.make(t, s, well)
	l := w.make(t, s, tp)
	long := strings.Repeat("-", 5000) // an index entry a batch, so that only the last is the tail
	for _, value := range []string{"one", "two", "three", "four"} {
		must(t, appendValues(l, value+long))
	}
	must(t, appendValues(s.Get(well), "x"))
	l.Rest() // index entries go to the file
	kill(s)
	damageLog(t, m, "two-")

	bubble(t, w, func(t *testing.T, s *Set) {
		if l := s.Get(tp); l == nil || s.verified(l) || s.verified(s.Get(well)) {
			t.Fatalf("after a kill the log serves at once; %v", s.Err(tp))
		}
		after(10 * time.Second)
		if err := s.Err(tp); s.Get(tp) != nil || protocol.CodeOf(err) != protocol.KafkaStorageError || !strings.Contains(err.Error(), "position") {
			t.Errorf("the damage was not found: %v", err)
		}
		if s.Get(well) == nil || !s.verified(s.Get(well)) {
			t.Error("the other log is well")
		}
		after(2 * time.Minute)
		if s.Get(well).RecoveryPoint() != 1 {
			t.Error("a verified log is not synced any more")
		}
	})
	for range 2 {
		s = w.start(t)
		if s.Get(tp) != nil || s.Get(well) == nil {
			t.Error("the next start does not know of the damage")
		}
		stop(t, s)
	}
	damageLog(t, m, string([]byte{^byte('t')})+"wo-") // repaired
	s = w.start(t)
	if s.Get(tp) == nil || s.Get(tp).EndOffset() != 4 {
		t.Errorf("the repaired log: %v", s.Err(tp))
	}
}
