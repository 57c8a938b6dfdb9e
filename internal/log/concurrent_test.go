package log

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestConcurrent lets everything that may happen at once happen at once: what is read is always whole, in
// order, and says its own offset.
func TestConcurrent(t *testing.T) {
	now := testTime
	o := compactable(vfs.NewMemory(), &now)
	o.Config.Delete, o.Config.FileDeleteDelay = true, 0
	o.Files = NewFileCache(2)
	o.Files.indexBytes = 64
	l := open(t, o)
	const rounds = 400
	done := make(chan struct{})
	var work sync.WaitGroup
	background := func(f func(*rand.Rand)) {
		work.Go(func() {
			rng := rand.New(rand.NewPCG(1, rand.Uint64()))
			for {
				select {
				case <-done:
					return
				default:
					f(rng)
				}
			}
		})
	}
	for range 3 {
		background(func(rng *rand.Rand) { readSome(t, l, rng) })
	}
	background(func(*rand.Rand) {
		_, err := l.Compact(context.Background(), CompactOptions{Buffer: 1 << 12})
		if err != nil && !errors.Is(err, ErrInterrupted) {
			t.Error(err)
		}
	})
	background(func(rng *rand.Rand) {
		c := l.Config()
		c.RetentionBytes = 4096 + rng.Int64N(8192)
		l.SetConfig(c)
		if _, _, err := l.Retain(now); err != nil {
			t.Error(err)
		}
	})
	background(func(*rand.Rand) {
		if err := l.Flush(); err != nil {
			t.Error(err)
		}
		l.Rest()
		l.files.CloseIdle()
	})
	background(func(rng *rand.Rand) {
		if _, _, err := l.OffsetForTime(testTime.UnixMilli() + rng.Int64N(rounds)); err != nil {
			t.Error(err)
		}
		if _, err := l.MaxTimestamp(); err != nil {
			t.Error(err)
		}
		if _, err := l.Aborted(l.StartOffset(), l.EndOffset()); err != nil {
			t.Error(err)
		}
	})
	for i := range rounds {
		mustAppend(t, l, keyed(record.BuilderOptions{Idempotent: true, ProducerID: 3, BaseSequence: int32(i)}, fmt.Sprintf("k%d=%d", i%7, l.EndOffset())), 0)
		l.SetHighWatermark(l.EndOffset())
	}
	close(done)
	work.Wait()
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	if n := o.Files.Open(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
}

// readSome reads from somewhere and checks what it gets.
func readSome(t *testing.T, l *Log, rng *rand.Rand) {
	start, end := l.StartOffset(), l.EndOffset()
	if start == end {
		return
	}
	from := start + protocol.Offset(rng.Int64N(int64(end-start)))
	s, err := l.Read(from, 1+rng.IntN(2000), end, rng.IntN(2) == 0)
	if protocol.CodeOf(err) == protocol.OffsetOutOfRange {
		return // deleted meanwhile
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Release()
	b := make([]byte, s.Length)
	if err := s.ReadInto(b); err != nil {
		t.Error(err)
		return
	}
	for e, err := range record.Entries(b) {
		if err != nil || !e.ValidCRC() || e.LastOffset < from || e.NextOffset() > end {
			t.Errorf("read from %d: batch %d-%d, %v", from, e.BaseOffset, e.LastOffset, err)
			return
		}
		from = e.NextOffset()
		for r, err := range e.Records(nil) {
			if err != nil || string(r.Value) != fmt.Sprint(r.Offset) {
				t.Errorf("record at %d holds %q %v", r.Offset, r.Value, err)
			}
		}
	}
}

// TestGroupCommit: with flush.messages=1 a sync is due after each append, and those that wait for one share the next.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs int
		faulty := vfs.NewFaulty(vfs.NewMemory())
		o := testOptions(faulty)
		o.Config.FlushMessages = 1
		l := open(t, o)
		if done := mustAppend(t, l, plain(1, 1), 0); !done.SyncDue || l.Sync(1) != nil || l.RecoveryPoint() != 1 {
			t.Fatalf("%+v, recovery point %d", done, l.RecoveryPoint())
		}
		free := make(chan struct{})
		faulty.Inject(vfs.Fault{Op: vfs.OpSync, Hook: func(vfs.Op, string) {
			syncs++ // one at a time
			<-free
		}})
		for range 21 {
			go func() {
				done, err := l.AppendLeader(validated(plain(1, 1)), 0)
				if err != nil || !done.SyncDue {
					t.Errorf("%+v %v", done, err)
				}
				if err := l.Sync(done.Last + 1); err != nil || l.RecoveryPoint() <= done.Last {
					t.Errorf("%v, recovery point %d", err, l.RecoveryPoint())
				}
			}()
		}
		synctest.Wait() // the first syncs, the others are appended and wait
		if l.EndOffset() != 22 || l.RecoveryPoint() != 1 {
			t.Errorf("end %d, recovery point %d", l.EndOffset(), l.RecoveryPoint())
		}
		close(free)
		synctest.Wait()
		if syncs > 3 {
			t.Errorf("%d syncs for 21 appends", syncs)
		}
	})
}

// TestFlushOfALogThatIsRenamed: a sync that runs while the directory gets another name looks for files where they are not
// any more. That is no fault of the disk: a log that goes on is synced in its new place, one that is deleted is closed.
func TestFlushOfALogThatIsRenamed(t *testing.T) {
	for name, c := range map[string]struct {
		rename  func(*Log) error
		flushed bool
	}{
		"moved":   {func(l *Log) error { return l.Rename("/data/other-0") }, true},
		"deleted": {(*Log).MarkDeleted, false},
	} {
		t.Run(name, func(t *testing.T) {
			faulty := vfs.NewFaulty(vfs.NewMemory())
			l := open(t, testOptions(faulty))
			mustAppend(t, l, plain(3, 1), 0)
			remove := faulty.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Times: 1, Hook: func(vfs.Op, string) {
				if err := c.rename(l); err != nil {
					t.Error(err)
				}
			}})
			defer remove()
			if err := l.Flush(); (err == nil) != c.flushed {
				t.Errorf("flush: %v", err)
			}
			if l.Err() != nil || c.flushed && l.RecoveryPoint() != 3 {
				t.Errorf("the log has failed with %v, recovery point %d", l.Err(), l.RecoveryPoint())
			}
		})
	}
}

// TestFileCache: the limit holds but for pinned files, and idle files go.
func TestFileCache(t *testing.T) {
	fs := vfs.NewMemory()
	files := NewFileCache(3)
	var logs []*Log
	for i := range 10 {
		o := testOptions(fs)
		o.Dir, o.Files = fmt.Sprintf("/data/t-%d", i), files
		l := open(t, o)
		mustAppend(t, l, plain(2, 1), 0)
		logs = append(logs, l)
	}
	if n := files.Open(); n != 3 {
		t.Fatalf("%d files open", n)
	}
	var pinned []Slice
	for _, l := range logs {
		s, err := l.Read(0, 1000, everything, true)
		if err != nil {
			t.Fatal(err)
		}
		pinned = append(pinned, s)
	}
	if n := files.Open(); n != 3 {
		t.Fatalf("%d files open", n)
	}
	for _, s := range pinned {
		if err := s.ReadInto(make([]byte, s.Length)); err != nil {
			t.Fatal(err)
		}
		s.Release()
	}
	files.CloseIdle()
	files.CloseIdle()
	if n := files.Open(); n != 0 {
		t.Fatalf("%d files open", n)
	}
	for _, l := range logs {
		mustAppend(t, l, plain(2, 1), 0)
		if got := readBytes(t, l, 0, everything); len(got) == 0 {
			t.Fatal("nothing to read")
		}
	}
}
