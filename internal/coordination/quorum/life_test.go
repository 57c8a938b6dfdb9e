package quorum

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestEarlierLife ends the sessions of the same node's earlier life with the first new session, without
// waiting for an expiry; those of this life live on.
func TestEarlierLife(t *testing.T) {
	fs := vfs.NewVolatile()
	s := open(t, Options{FS: fs})
	old := session(t, s)
	ephemeral := coordination.CreateOptions{Ephemeral: true}
	_, before, err := old.Create(ctx, "/broker", nil, ephemeral)
	check(t, err)
	check(t, s.Close()) // the session was not closed, as when the process is killed
	if err := old.Err(); !errors.Is(err, coordination.ErrSessionLost) {
		t.Fatalf("error %v", err)
	}

	s = open(t, Options{FS: fs})
	first := session(t, s)
	if _, there, _ := first.Exists(ctx, "/broker"); there {
		t.Fatal("the node outlived its session")
	}
	_, after, err := first.Create(ctx, "/broker", nil, ephemeral)
	check(t, err)
	if after.Czxid <= before.Czxid {
		t.Fatalf("the broker epoch goes from %d to %d", before.Czxid, after.Czxid)
	}
	second := session(t, s)
	if _, there, _ := second.Exists(ctx, "/broker"); !there {
		t.Fatal("the second session of one life ended the first")
	}
	check(t, first.Close())
	if _, there, _ := second.Exists(ctx, "/broker"); there {
		t.Fatal("the node outlived its session")
	}
}

// TestEverythingSurvives closes and opens a store across snapshots and segments.
func TestEverythingSurvives(t *testing.T) {
	dir := t.TempDir()
	var zxid int64
	for round := range 5 {
		s := open(t, Options{FS: vfs.OS(), Dir: dir, SnapshotBytes: 3000, segmentBytes: 2000})
		session := session(t, s)
		if s.Tree().Zxid() <= zxid {
			t.Fatalf("zxid %d after %d", s.Tree().Zxid(), zxid)
		}
		for i := range 100 {
			check(t, create(session, "/n"+strconv.Itoa(round*100+i)))
		}
		names, _, err := session.Children(ctx, "/")
		check(t, err)
		if len(names) != (round+1)*100 {
			t.Fatalf("%d nodes after round %d", len(names), round)
		}
		zxid = s.Tree().Zxid()
		check(t, session.Close())
		check(t, s.Close())
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	var size int64
	for _, entry := range entries {
		info, err := entry.Info()
		check(t, err)
		size += info.Size()
		if !strings.HasPrefix(entry.Name(), namePrefix) || entry.IsDir() {
			t.Errorf("%s stands in the directory", entry.Name())
		}
	}
	if len(entries) > 10 || size > 60_000 {
		t.Errorf("%d files of %d bytes: compaction leaves too much", len(entries), size)
	}
}

// TestQuiet says nothing at the level of information while all is well.
func TestQuiet(t *testing.T) {
	var said bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&said, nil))
	fs := vfs.NewVolatile()
	for range 2 {
		s := open(t, Options{FS: fs, Logger: logger, SnapshotBytes: 200})
		session := session(t, s)
		for range 20 {
			_, _, err := session.Create(ctx, "/n", nil, coordination.CreateOptions{Sequential: true})
			check(t, err)
		}
		check(t, session.Close())
		check(t, s.Close())
	}
	if said.Len() > 0 {
		t.Errorf("it said:\n%s", said.String())
	}
}

func TestDirectoryOfAnotherNode(t *testing.T) {
	fs := vfs.NewVolatile()
	check(t, open(t, Options{FS: fs, NodeID: 1}).Close())
	_, err := Open(Options{FS: fs, Dir: "/data", NodeID: 2})
	if err == nil || !strings.Contains(err.Error(), "node-1") || !strings.Contains(err.Error(), "node.id") {
		t.Fatalf("error %v", err)
	}
}

func TestSecondProcess(t *testing.T) {
	fs := vfs.NewVolatile()
	open(t, Options{FS: fs})
	if _, err := Open(Options{FS: fs, Dir: "/data"}); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("error %v", err)
	}
}

// compacted makes a store with a snapshot and a log behind it, and closes it.
func compacted(t *testing.T) *vfs.Memory {
	t.Helper()
	fs := vfs.NewMemory()
	s := open(t, Options{FS: fs, NodeID: 1, segmentBytes: 500})
	session := session(t, s)
	for i := range 20 {
		check(t, create(session, "/before"+strconv.Itoa(i)))
	}
	check(t, s.raft.Snapshot().Error())
	check(t, create(session, "/after"))
	check(t, s.Close())
	return fs
}

// TestDamagedSnapshot flips a bit in every byte of a snapshot: it is refused with file and position.
func TestDamagedSnapshot(t *testing.T) {
	pristine := compacted(t)
	indexes, err := listNumbered(pristine, "/data", snapshotPrefix)
	check(t, err)
	name := numberedName("/data", snapshotPrefix, indexes[0])
	info, err := pristine.Stat(name)
	check(t, err)
	for position := range info.Size() {
		fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
		flip(t, fs, name, position)
		_, err := Open(Options{FS: fs, Dir: "/data", NodeID: 1})
		var damage *DamageError
		if !errors.As(err, &damage) || damage.File != name || damage.Position > position {
			t.Fatalf("bit %d: %v", position, err)
		}
	}
	for size := range info.Size() {
		fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
		f, err := fs.OpenFile(name, os.O_RDWR, 0)
		check(t, err)
		check(t, f.Truncate(size))
		_, err = Open(Options{FS: fs, Dir: "/data", NodeID: 1})
		var damage *DamageError
		if !errors.As(err, &damage) || damage.File != name {
			t.Fatalf("cut at %d: %v", size, err)
		}
	}
}

// TestMissingFiles takes one file away at a time: never does the store begin anew over what is left.
func TestMissingFiles(t *testing.T) {
	pristine := compacted(t)
	entries, err := pristine.ReadDir("/data")
	check(t, err)
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
		check(t, fs.Remove(filepath.Join("/data", entry.Name())))
		s, err := Open(Options{FS: fs, Dir: "/data", NodeID: 1})
		var damage *DamageError
		switch {
		case err == nil && strings.HasPrefix(entry.Name(), logPrefix):
			// The newest segment, or one that the snapshot covers, cannot be missed.
			if _, _, err := session(t, s).Get(ctx, "/before19"); err != nil {
				t.Errorf("without %s: %v", entry.Name(), err)
			}
			check(t, s.Close())
		case !errors.As(err, &damage):
			t.Errorf("without %s: %v", entry.Name(), err)
		}
	}
	for _, prefix := range []string{logPrefix, snapshotPrefix} {
		numbers, err := listNumbered(pristine, "/data", prefix)
		check(t, err)
		for _, number := range numbers {
			check(t, pristine.Remove(numberedName("/data", prefix, number)))
		}
	}
	var damage *DamageError
	if _, err := Open(Options{FS: pristine, Dir: "/data", NodeID: 1}); !errors.As(err, &damage) {
		t.Errorf("with the state alone: %v", err)
	}
}

// TestDamagedState damages one slot after the other: each is enough, none is refused.
func TestDamagedState(t *testing.T) {
	pristine := compacted(t)
	name := filepath.Join("/data", stateName)
	for slot := range int64(2) {
		fs := pristine.CrashClone(rand.New(rand.NewPCG(0, 0)), 1)
		flip(t, fs, name, slot*slotSize+20)
		s := open(t, Options{FS: fs, NodeID: 1})
		if _, _, err := session(t, s).Get(ctx, "/before19"); err != nil {
			t.Error(err)
		}
		check(t, s.Close())
		flip(t, fs, name, 20)
		flip(t, fs, name, slotSize+20)
		var damage *DamageError
		if _, err := Open(Options{FS: fs, Dir: "/data", NodeID: 1}); !errors.As(err, &damage) || damage.File != name {
			t.Errorf("error %v", err)
		}
	}
}

// TestNewerFormat is refused by its number, not called damaged.
func TestNewerFormat(t *testing.T) {
	fs := compacted(t)
	numbers, err := listNumbered(fs, "/data", logPrefix)
	check(t, err)
	name := numberedName("/data", logPrefix, numbers[len(numbers)-1])
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	check(t, err)
	b, err := readFile(f)
	check(t, err)
	b[9] = 2
	sum := headerCRC(b)
	b[12], b[13], b[14], b[15] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	_, err = f.WriteAt(b, 0)
	check(t, err)
	_, err = Open(Options{FS: fs, Dir: "/data", NodeID: 1})
	if err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Fatalf("error %v", err)
	}
}

var rewrite = flag.Bool("rewrite", false, "write testdata anew; never for a format that was released")

// TestStoredDirectory opens a directory that the first version of this format wrote.
func TestStoredDirectory(t *testing.T) {
	const stored = "testdata/v1"
	if *rewrite {
		writeStored(t, stored)
	}
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(stored)))
	s := open(t, Options{FS: vfs.OS(), Dir: dir, NodeID: 1})
	session(t, s)
	var got []string
	s.Tree().Walk("/", func(path string, data []byte, stat coordination.Stat) bool {
		got = append(got, path+"="+string(data)+"@"+strconv.FormatInt(stat.Czxid, 10))
		return true
	})
	const want = "/=@0 /after=x@5 /before0=x@2 /before1=x@3 /before2=x@4"
	if strings.Join(got, " ") != want {
		t.Errorf("the tree is %q, want %q", strings.Join(got, " "), want)
	}
}

// writeStored makes a directory with a snapshot, a log behind it, and an ephemeral node.
func writeStored(t *testing.T, dir string) {
	check(t, os.RemoveAll(dir))
	s := open(t, Options{FS: vfs.OS(), Dir: dir, NodeID: 1})
	session := session(t, s)
	for i := range 3 {
		check(t, create(session, "/before"+strconv.Itoa(i)))
	}
	check(t, s.raft.Snapshot().Error())
	check(t, create(session, "/after"))
	_, _, err := session.Create(ctx, "/e", nil, coordination.CreateOptions{Ephemeral: true})
	check(t, err)
	check(t, s.Close())
	check(t, os.Remove(filepath.Join(dir, lockName)))
}

// TestStartOnEmpty tells how long a start takes; it demands nothing.
func TestStartOnEmpty(t *testing.T) {
	for range 5 {
		dir, begin := t.TempDir(), time.Now()
		s := open(t, Options{FS: vfs.OS(), Dir: dir})
		opened := time.Since(begin)
		session := session(t, s)
		check(t, create(session, "/a"))
		t.Logf("open after %v, first write after %v", opened, time.Since(begin))
		check(t, s.Close())
	}
}
