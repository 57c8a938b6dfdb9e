package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// crashOptions are for a store that rolls and compacts often.
func crashOptions(fs vfs.FS) Options {
	return Options{FS: fs, Dir: "/var/lib/data", NodeID: 1, SnapshotBytes: 600, segmentBytes: 500}
}

// history is what a workload was answered.
type history struct {
	created atomic.Int64 // nodes /n0 … answered
	set     atomic.Int64 // highest value of /counter answered
	asked   atomic.Int64 // highest value of /counter asked for
}

// work creates nodes, counts up a node, and makes ephemeral ones, until the store fails or all is done.
func (h *history) work(s *Store, rounds int) error {
	session, err := s.Open(ctx, coordination.SessionOptions{})
	if err != nil {
		return err
	}
	if _, _, err := session.Create(ctx, "/counter", []byte("0"), coordination.CreateOptions{}); err != nil {
		return err
	}
	for i := range rounds {
		path := "/n" + strconv.Itoa(i)
		if _, _, err := session.Create(ctx, path, []byte(strings.Repeat("x", i%60)), coordination.CreateOptions{}); err != nil {
			return err
		}
		h.created.Add(1)
		h.asked.Add(1)
		if _, err := session.Txn(ctx,
			coordination.Set("/counter", []byte(strconv.Itoa(i+1)), int32(i)),
			coordination.Create("/e"+strconv.Itoa(i), nil, coordination.CreateOptions{Ephemeral: true}),
		); err != nil {
			return err
		}
		h.set.Add(1)
	}
	return nil
}

// answers are what had been answered at some moment.
type answers struct{ created, set int64 }

func (h *history) answers() answers { return answers{h.created.Load(), h.set.Load()} }

// verify opens what a crash left, and demands everything that was answered before it.
func (h *history) verify(fs vfs.FS, before answers) error {
	s, err := Open(crashOptions(fs))
	if err != nil {
		return err
	}
	defer s.Close()
	session, err := s.Open(ctx, coordination.SessionOptions{})
	if err != nil {
		return err
	}
	for i := range before.created {
		data, _, err := session.Get(ctx, "/n"+strconv.Itoa(int(i)))
		if err != nil || len(data) != int(i)%60 {
			return fmt.Errorf("node %d of %d: %d bytes, %w", i, before.created, len(data), err)
		}
	}
	data, stat, err := session.Get(ctx, "/counter")
	if errors.Is(err, coordination.ErrNoNode) && before.created == 0 {
		return nil
	}
	counter, atoi := strconv.ParseInt(string(data), 10, 32)
	asked := h.asked.Load()
	if err != nil || atoi != nil || counter < before.set || counter > asked || stat.Version != int32(counter) {
		return fmt.Errorf("counter %q of version %d, want %d to %d (%w)", data, stat.Version, before.set, asked, err)
	}
	names, _, err := session.Children(ctx, "/")
	if err == nil && slices.ContainsFunc(names, func(name string) bool { return name[0] == 'e' }) {
		err = fmt.Errorf("ephemeral nodes outlived their session: %v", names)
	}
	return err
}

// TestCrashAtEveryOperation cuts the power before every operation on a file, with nothing, some, or all of
// what was not synced surviving, and opens the store again.
func TestCrashAtEveryOperation(t *testing.T) {
	memory := vfs.NewMemory()
	faulty := vfs.NewFaulty(memory)
	var h history
	var mu sync.Mutex // snapshots are written beside the log
	kinds := map[string]int{}
	faulty.BeforeMutation(func(n int64, op vfs.Op, path string) {
		mu.Lock()
		defer mu.Unlock()
		kinds[kindOf(op, path)]++
		before := h.answers()
		for i, keep := range []float64{0, 0.5, 1} {
			clone := memory.CrashClone(rand.New(rand.NewPCG(uint64(n), uint64(i))), keep)
			if err := h.verify(clone, before); err != nil {
				t.Errorf("crash %d.%d before %s of %s: %v", n, i, op, path, err)
			}
		}
	})
	s, err := Open(crashOptions(faulty))
	check(t, err)
	check(t, h.work(s, 40))
	check(t, s.Close())
	for _, kind := range []string{
		"create log", "write log", "sync log", "remove log", "create snapshot", "write snapshot",
		"sync snapshot", "rename snapshot", "remove snapshot", "write state", "sync state", "syncdir",
	} {
		if kinds[kind] == 0 {
			t.Errorf("no crash before %q: %v", kind, kinds)
		}
	}
}

// kindOf names an operation and the file that it is on.
func kindOf(op vfs.Op, path string) string {
	for _, kind := range []string{"log", "snapshot", "state", "lock"} {
		if strings.Contains(path, namePrefix+kind) {
			return string(op) + " " + kind
		}
	}
	return string(op)
}

// crashedStore is what a crash left, and what had been answered.
type crashedStore struct {
	fs     *vfs.Memory
	before answers
}

// TestCrashWhileRecovering crashes, and crashes again before every operation of the recovery.
func TestCrashWhileRecovering(t *testing.T) {
	memory := vfs.NewMemory()
	faulty := vfs.NewFaulty(memory)
	var h history
	var mu sync.Mutex
	var crashed []crashedStore
	faulty.BeforeMutation(func(n int64, op vfs.Op, path string) {
		mu.Lock()
		defer mu.Unlock()
		if n%5 == 0 {
			before := h.answers()
			clone := memory.CrashClone(rand.New(rand.NewPCG(uint64(n), 9)), 0.5)
			crashed = append(crashed, crashedStore{clone, before})
		}
	})
	s, err := Open(crashOptions(faulty))
	check(t, err)
	check(t, h.work(s, 30))
	check(t, s.Close())
	for i, c := range crashed {
		again := vfs.NewFaulty(c.fs)
		again.BeforeMutation(func(n int64, op vfs.Op, path string) {
			mu.Lock()
			defer mu.Unlock()
			clone := c.fs.CrashClone(rand.New(rand.NewPCG(uint64(n), uint64(i))), 0.5)
			if err := h.verify(clone, c.before); err != nil {
				t.Errorf("crash %d, and %d before %s of %s: %v", i, n, op, path, err)
			}
		})
		if err := h.verify(again, c.before); err != nil {
			t.Errorf("crash %d: %v", i, err)
		}
	}
}

// TestErrorAtEveryOperation lets every operation on a file fail once with an I/O error or a full disk: the
// store answers with an error or fails, and what it answered before is there when it is opened again.
func TestErrorAtEveryOperation(t *testing.T) {
	for _, kind := range []error{errIO, errFull} {
		for _, op := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpRemove, vfs.OpSyncDir, vfs.OpTruncate} {
			for skip := 0; ; skip++ {
				if !failOnce(t, op, kind, skip) {
					break
				}
			}
		}
	}
}

// failOnce runs the workload with one operation failing; false means that there were not so many.
func failOnce(t *testing.T, op vfs.Op, kind error, skip int) bool {
	t.Helper()
	memory := vfs.NewMemory()
	faulty := vfs.NewFaulty(memory)
	var hit atomic.Bool
	faulty.Inject(vfs.Fault{
		Op: op, Skip: skip, Times: 1, Err: kind, Short: 7, Hook: func(vfs.Op, string) { hit.Store(true) },
	})
	var h history
	s, err := Open(crashOptions(faulty))
	if err == nil {
		err = h.work(s, 8)
		s.Close()
	}
	if err != nil && !hit.Load() {
		t.Fatalf("%s %d with %v: %v", op, skip, kind, err)
	}
	for i, keep := range []float64{0, 0.5, 1} {
		clone := memory.CrashClone(rand.New(rand.NewPCG(uint64(skip), uint64(i))), keep)
		if err := h.verify(clone, h.answers()); err != nil {
			t.Errorf("%s %d with %v, crash %d: %v", op, skip, kind, i, err)
		}
	}
	return hit.Load()
}
