package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// logOptions are for a log of small segments.
func logOptions(fs vfs.FS) Options {
	rng := rand.New(rand.NewPCG(1, 2))
	o := Options{FS: fs, Dir: "/data", Random: rng.Uint64, segmentBytes: 400}
	o.complete()
	return o
}

// failer is what tests and rapid's checks have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// mustOpenLog opens a log.
func mustOpenLog(t failer, fs vfs.FS, snapshot uint64) *logStore {
	t.Helper()
	check(t, makeDirectory(fs, "/data"))
	s, err := openLog(logOptions(fs), upTo(snapshot))
	check(t, err)
	check(t, fs.SyncDir("/data"))
	return s
}

// upTo is a snapshot that holds entries up to an index.
func upTo(index uint64) func() uint64 { return func() uint64 { return index } }

// entry makes an entry that can be told from others.
func entry(index, term uint64, size int) *raft.Log {
	return &raft.Log{
		Index: index, Term: term, Type: raft.LogCommand, AppendedAt: time.Unix(0, int64(index)),
		Data: []byte(strings.Repeat(fmt.Sprintf("%d/%d,", index, term), size)),
	}
}

// contents reads all entries.
func contents(t failer, s *logStore) []raft.Log {
	t.Helper()
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	var logs []raft.Log
	for index := first; index <= last && index > 0; index++ {
		var l raft.Log
		if err := s.GetLog(index, &l); err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	return logs
}

// TestLogModel compares the log with a slice, through appends, cuts at both ends, and reopening.
func TestLogModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMemory()
		s := mustOpenLog(t, fs, 0)
		var want []raft.Log
		next, snapshot := uint64(1), uint64(0)
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				var batch []*raft.Log
				for range rapid.IntRange(1, 5).Draw(t, "batch") {
					batch = append(batch, entry(next, uint64(step), rapid.IntRange(0, 30).Draw(t, "size")))
					next++
				}
				if err := s.StoreLogs(batch); err != nil {
					t.Fatal(err)
				}
				for _, l := range batch {
					want = append(want, *l)
				}
			case 3: // a snapshot covers some
				if len(want) > 0 {
					n := rapid.IntRange(1, len(want)).Draw(t, "covered")
					snapshot = want[n-1].Index
					s.covered = upTo(snapshot)
					first, _ := s.FirstIndex()
					check(t, s.DeleteRange(first, snapshot))
					want = want[n:]
				}
			case 4: // a leader has others
				if len(want) > 0 {
					n := rapid.IntRange(0, len(want)-1).Draw(t, "kept")
					next = want[n].Index
					check(t, s.DeleteRange(next, want[len(want)-1].Index))
					want = want[:n]
				}
			case 5:
				check(t, s.close())
				keep := rapid.Float64Range(0, 1).Draw(t, "keep")
				fs = fs.CrashClone(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "dice"), 0)), keep)
				s = mustOpenLog(t, fs, snapshot)
			}
			got := contents(t, s)
			for len(got) > len(want) && got[0].Index <= snapshot {
				got = got[1:] // those a snapshot covers may be there again
			}
			if !slices.EqualFunc(want, got, sameEntry) {
				t.Fatalf("step %d (-want +got):\n%s", step, cmp.Diff(want, got))
			}
		}
		check(t, s.close())
	})
}

func sameEntry(a, b raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data) &&
		a.AppendedAt.Equal(b.AppendedAt)
}

func check(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// filled makes a log of some segments and closes it.
func filled(t *testing.T) *vfs.Memory {
	t.Helper()
	fs := vfs.NewMemory()
	s := mustOpenLog(t, fs, 0)
	for index := uint64(1); index <= 24; index += 2 {
		check(t, s.StoreLogs([]*raft.Log{entry(index, 1, 8), entry(index+1, 1, 8)}))
	}
	check(t, s.close())
	return fs
}

// flip changes a bit of a file.
func flip(t *testing.T, fs vfs.FS, name string, position int64) {
	t.Helper()
	f, err := fs.OpenFile(name, 2, 0)
	check(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], position)
	check(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], position)
	check(t, err)
	check(t, f.Close())
}

// TestEveryFlippedBit flips one bit in every byte of a log: in the last frame that is a torn write and is
// cut, anywhere else it is damage and refused with file and position.
func TestEveryFlippedBit(t *testing.T) {
	pristine := filled(t)
	segments, err := listNumbered(pristine, "/data", logPrefix)
	check(t, err)
	if len(segments) < 3 {
		t.Fatalf("%d segments", len(segments))
	}
	for i, first := range segments {
		name := numberedName("/data", logPrefix, first)
		info, err := pristine.Stat(name)
		check(t, err)
		var lastFrame int64
		for position := range info.Size() {
			fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
			flip(t, fs, name, position)
			s, err := openLog(logOptions(fs), upTo(0))
			var damage *DamageError
			switch {
			case errors.As(err, &damage):
				if damage.File != name || damage.Position > position || position-damage.Position > 300 {
					t.Fatalf("bit %d of %s: %v", position, name, err)
				}
			case err != nil:
				if position < 8 || position > 10 { // a version that is not known is no damage
					t.Fatalf("bit %d of %s: %v", position, name, err)
				}
			default:
				if lastFrame == 0 {
					lastFrame = position
				}
				if last, _ := s.LastIndex(); i < len(segments)-1 || last != 22 {
					t.Fatalf("bit %d of %s: opened with entries up to %d", position, name, last)
				}
				check(t, s.close())
			}
		}
		if i == len(segments)-1 && info.Size()-lastFrame > 200 {
			t.Fatalf("the torn frame of %d bytes starts at %d", info.Size(), lastFrame)
		}
	}
}

// TestEveryTornTail cuts the newest segment at every byte.
func TestEveryTornTail(t *testing.T) {
	pristine := filled(t)
	segments, err := listNumbered(pristine, "/data", logPrefix)
	check(t, err)
	name := numberedName("/data", logPrefix, segments[len(segments)-1])
	info, err := pristine.Stat(name)
	check(t, err)
	for size := range info.Size() {
		fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
		f, err := fs.OpenFile(name, 2, 0)
		check(t, err)
		check(t, f.Truncate(size))
		s := mustOpenLog(t, fs, 0)
		last, _ := s.LastIndex()
		if last%2 != 0 || last < segments[len(segments)-1]-1 || last > 24 {
			t.Fatalf("cut at %d: entries up to %d", size, last)
		}
		check(t, s.StoreLog(entry(last+1, 2, 3)))
		check(t, s.close())
		again := mustOpenLog(t, fs, 0)
		if got, _ := again.LastIndex(); got != last+1 {
			t.Fatalf("cut at %d and written on: entries up to %d, want %d", size, got, last+1)
		}
		check(t, again.close())
	}
}

// TestMissingSegment takes away one file after the other.
func TestMissingSegment(t *testing.T) {
	pristine := filled(t)
	segments, err := listNumbered(pristine, "/data", logPrefix)
	check(t, err)
	for i, first := range segments {
		fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
		check(t, fs.Remove(numberedName("/data", logPrefix, first)))
		_, err := openLog(logOptions(fs), upTo(0))
		var damage *DamageError
		if i < len(segments)-1 && !errors.As(err, &damage) {
			t.Fatalf("without segment %d: %v", i, err)
		}
	}
	fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
	check(t, fs.Remove(numberedName("/data", logPrefix, segments[0])))
	f, err := fs.OpenFile(numberedName("/data", logPrefix, segments[1]), 0, 0)
	check(t, err)
	h, err := readHeader(f, kindLog)
	check(t, err)
	s := mustOpenLog(t, fs, h.index-1) // a snapshot has what it held
	check(t, s.close())
}

// TestLookalike stores data that is a valid frame of another place, and tears the frame before it.
func TestLookalike(t *testing.T) {
	fs := vfs.NewMemory()
	s := mustOpenLog(t, fs, 0)
	inner := append(make([]byte, frameHeader), frameCut, 1)
	sealFrame(inner, 12345, 99)
	l := entry(1, 1, 1)
	l.Data = inner
	check(t, s.StoreLog(l))
	check(t, s.close())
	flip(t, fs, numberedName("/data", logPrefix, 1), headerSize+frameHeader+2)
	s = mustOpenLog(t, fs, 0)
	if last, _ := s.LastIndex(); last != 0 {
		t.Fatalf("entries up to %d", last)
	}
	check(t, s.close())
}

// TestFailedWrite fills the disk: what did not fit is taken back, and the log goes on.
func TestFailedWrite(t *testing.T) {
	memory := vfs.NewMemory()
	faulty := vfs.NewFaulty(memory)
	s := mustOpenLog(t, faulty, 0)
	check(t, s.StoreLog(entry(1, 1, 3)))
	for _, short := range []int{0, 5, 40, 1 << 20} {
		remove := faulty.Inject(vfs.Fault{Op: vfs.OpWrite, Err: syscall.ENOSPC, Short: short})
		err := s.StoreLog(entry(2, 1, 3))
		var failed *appendError
		if !errors.As(err, &failed) || !failed.undone || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error %v", err)
		}
		remove()
	}
	check(t, s.StoreLog(entry(2, 2, 3)))
	want := []raft.Log{*entry(1, 1, 3), *entry(2, 2, 3)}
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Fatal(diff)
	}
	crashed := mustOpenLog(t, memory.CrashClone(rand.New(rand.NewPCG(1, 1)), 0), 0)
	if diff := cmp.Diff(want, contents(t, crashed)); diff != "" {
		t.Fatal(diff)
	}
	check(t, s.close())
}

// TestFailedSync makes the log unusable: nobody can know what is on the disk.
func TestFailedSync(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMemory())
	s := mustOpenLog(t, faulty, 0)
	faulty.Inject(vfs.Fault{Op: vfs.OpSync, Err: syscall.EIO, Times: 1})
	var failed *appendError
	if err := s.StoreLog(entry(1, 1, 3)); !errors.As(err, &failed) || failed.undone {
		t.Fatalf("error %v", err)
	}
	if err := s.StoreLog(entry(1, 1, 3)); !errors.As(err, &failed) || failed.undone || !errors.Is(err, syscall.EIO) {
		t.Fatalf("error of the next %v", err)
	}
	check(t, s.close())
}

// TestLargeBatch needs several frames.
func TestLargeBatch(t *testing.T) {
	fs := vfs.NewVolatile()
	s := mustOpenLog(t, fs, 0)
	var batch []*raft.Log
	for index := uint64(1); index <= 5; index++ {
		batch = append(batch, &raft.Log{Index: index, Data: make([]byte, frameBytes/2+1)})
	}
	check(t, s.StoreLogs(batch))
	check(t, s.close())
	s = mustOpenLog(t, fs, 0)
	if last, _ := s.LastIndex(); last != 5 {
		t.Fatalf("entries up to %d", last)
	}
	if err := s.StoreLog(entry(9, 1, 1)); err == nil {
		t.Fatal("a gap was taken")
	}
	check(t, s.close())
}
