package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// systems are the file systems that must behave alike; each comes with an empty directory.
var systems = []struct {
	name string
	make func(t *testing.T) (vfs.FS, string)
}{
	{"os", func(t *testing.T) (vfs.FS, string) { return vfs.OS(), t.TempDir() }},
	{"memory", func(t *testing.T) (vfs.FS, string) { return inMemory(t, vfs.NewMemory()) }},
	{"volatile", func(t *testing.T) (vfs.FS, string) { return inMemory(t, vfs.NewVolatile()) }},
	{"faulty", func(t *testing.T) (vfs.FS, string) { return inMemory(t, vfs.NewFaulty(vfs.NewMemory())) }},
}

func inMemory(t *testing.T, f vfs.FS) (vfs.FS, string) {
	dir := filepath.FromSlash("/tmp/x")
	must(t, f.MkdirAll(dir, 0o755))
	return f, dir
}

func TestConformance(t *testing.T) {
	suite := []struct {
		name string
		run  func(t *testing.T, f vfs.FS, dir string)
	}{
		{"open flags", testOpenFlags},
		{"read and write", testReadWrite},
		{"random against bytes", testRandom},
		{"truncate", testTruncate},
		{"preallocate", testPreallocate},
		{"names", testNames},
		{"rename", testRename},
		{"directories", testDirectories},
		{"open files outlive their names", testUnlinked},
		{"locks", testLocks},
		{"volume", testVolume},
		{"closed files", testClosed},
		{"concurrent use", testConcurrent},
	}
	for _, system := range systems {
		for _, test := range suite {
			t.Run(system.name+"/"+test.name, func(t *testing.T) {
				f, dir := system.make(t)
				test.run(t, f, dir)
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func create(t *testing.T, f vfs.FS, name string, data string) vfs.File {
	t.Helper()
	file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	if data != "" {
		n, err := file.WriteAt([]byte(data), 0)
		must(t, err)
		if n != len(data) {
			t.Fatalf("wrote %d of %d bytes", n, len(data))
		}
	}
	return file
}

func content(t *testing.T, file vfs.File) string {
	t.Helper()
	size, err := file.Size()
	must(t, err)
	data := make([]byte, size)
	n, err := file.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return string(data[:n])
}

func named(t *testing.T, f vfs.FS, name string) string {
	t.Helper()
	file, err := f.OpenFile(name, os.O_RDONLY, 0)
	must(t, err)
	defer file.Close()
	return content(t, file)
}

func testOpenFlags(t *testing.T, f vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	_, err := f.OpenFile(name, os.O_RDWR, 0)
	wantError(t, err, fs.ErrNotExist)
	file := create(t, f, name, "hello")
	if file.Name() != name {
		t.Errorf("name %q", file.Name())
	}
	_, err = f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	wantError(t, err, fs.ErrExist)
	again := create(t, f, name, "")
	if got := content(t, again); got != "hello" {
		t.Errorf("reopened: %q", got)
	}
	cut, err := f.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0)
	must(t, err)
	must(t, cut.Close())
	if got := content(t, file); got != "" {
		t.Errorf("after O_TRUNC: %q", got)
	}
	if _, err := f.OpenFile(name, os.O_RDWR|os.O_APPEND, 0); err == nil {
		t.Error("O_APPEND is not supported, and must be refused")
	}
	_, err = f.OpenFile(filepath.Join(dir, "missing", "a"), os.O_RDWR|os.O_CREATE, 0o644)
	wantError(t, err, fs.ErrNotExist)
	readOnly, err := f.OpenFile(name, os.O_RDONLY, 0)
	must(t, err)
	defer readOnly.Close()
	if _, err := readOnly.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a file that is open for reading took a write")
	}
}

func testReadWrite(t *testing.T, f vfs.FS, dir string) {
	file := create(t, f, filepath.Join(dir, "a"), "0123456789")
	p := make([]byte, 4)
	n, err := file.ReadAt(p, 3)
	if n != 4 || err != nil || string(p) != "3456" {
		t.Errorf("middle: %d, %v, %q", n, err, p)
	}
	n, err = file.ReadAt(p, 8)
	if n != 2 || err != io.EOF || string(p[:n]) != "89" {
		t.Errorf("across the end: %d, %v, %q", n, err, p[:n])
	}
	if n, err = file.ReadAt(p, 10); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if n, err = file.ReadAt(nil, 0); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
	_, err = file.ReadAt(p, -1)
	wantError(t, err, fs.ErrInvalid)
	_, err = file.WriteAt(p, -1)
	wantError(t, err, fs.ErrInvalid)
	_, err = file.WriteAt([]byte("far"), 100_000)
	must(t, err)
	if got := content(t, file); len(got) != 100_003 || got[10:100_000] != string(make([]byte, 100_000-10)) || got[100_000:] != "far" {
		t.Errorf("a hole must read as zeros; %d bytes", len(got))
	}
	must(t, file.Sync())
}

// testRandom holds a file to a byte slice through random writes, truncations, syncs and reads.
func testRandom(t *testing.T, f vfs.FS, dir string) {
	rng := rand.New(rand.NewPCG(1, 2))
	file := create(t, f, filepath.Join(dir, "a"), "")
	const limit = 300_000
	var want []byte
	for step := range 600 {
		switch op := rng.IntN(10); {
		case op < 5:
			off, p := rng.IntN(limit), make([]byte, rng.IntN(20_000))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			_, err := file.WriteAt(p, int64(off))
			must(t, err)
			if grow := off + len(p) - len(want); grow > 0 && len(p) > 0 {
				want = append(want, make([]byte, grow)...)
			}
			copy(want[min(off, len(want)):], p)
		case op < 7:
			size := rng.IntN(limit)
			must(t, file.Truncate(int64(size)))
			if size <= len(want) {
				want = want[:size:size]
			} else {
				want = append(want, make([]byte, size-len(want))...)
			}
		case op < 8:
			must(t, file.Sync())
		default:
			off := rng.IntN(limit)
			p := make([]byte, rng.IntN(20_000))
			n, _ := file.ReadAt(p, int64(off))
			if !bytes.Equal(p[:n], want[min(off, len(want)):min(off+len(p), len(want))]) {
				t.Fatalf("step %d: read %d bytes at %d that differ", step, n, off)
			}
		}
		if size, err := file.Size(); err != nil || size != int64(len(want)) {
			t.Fatalf("step %d: size %d, %v, want %d", step, size, err, len(want))
		}
	}
	if content(t, file) != string(want) {
		t.Error("contents differ")
	}
}

func testTruncate(t *testing.T, f vfs.FS, dir string) {
	file := create(t, f, filepath.Join(dir, "a"), "0123456789")
	must(t, file.Truncate(4))
	must(t, file.Truncate(6))
	if got := content(t, file); got != "0123\x00\x00" {
		t.Errorf("cut and extended: %q", got)
	}
	must(t, file.Truncate(0))
	must(t, file.Truncate(10<<20))
	if size, _ := file.Size(); size != 10<<20 {
		t.Errorf("size %d", size)
	}
}

func testPreallocate(t *testing.T, f vfs.FS, dir string) {
	file := create(t, f, filepath.Join(dir, "a"), "data")
	must(t, file.Preallocate(4, 1<<20))
	if got := content(t, file); got != "data" {
		t.Errorf("the size must not change: %d bytes", len(got))
	}
	_, err := file.WriteAt([]byte("more"), 4)
	must(t, err)
	if got := content(t, file); got != "datamore" {
		t.Errorf("got %q", got)
	}
}

func testNames(t *testing.T, f vfs.FS, dir string) {
	for _, base := range []string{"c", "a", "b"} {
		create(t, f, filepath.Join(dir, base), base)
	}
	must(t, f.MkdirAll(filepath.Join(dir, "d"), 0o755))
	must(t, f.SyncDir(dir))
	if got, want := list(t, f, dir), []string{"a", "b", "c", "d/"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	info, err := f.Stat(filepath.Join(dir, "a"))
	must(t, err)
	if info.Name() != "a" || info.Size() != 1 || info.IsDir() || info.ModTime().IsZero() {
		t.Errorf("stat: %v %d %v", info.Name(), info.Size(), info.ModTime())
	}
	must(t, f.Remove(filepath.Join(dir, "a")))
	wantError(t, f.Remove(filepath.Join(dir, "a")), fs.ErrNotExist)
	_, err = f.Stat(filepath.Join(dir, "a"))
	wantError(t, err, fs.ErrNotExist)
	_, err = f.ReadDir(filepath.Join(dir, "missing"))
	wantError(t, err, fs.ErrNotExist)
	wantError(t, f.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "z")), fs.ErrNotExist)
	if _, err := f.ReadDir(filepath.Join(dir, "b")); err == nil {
		t.Error("listed a file")
	}
	total, free, err := f.Space(dir)
	if err != nil || total == 0 || free > total {
		t.Errorf("space: %d of %d, %v", free, total, err)
	}
}

func list(t *testing.T, f vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := f.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

func testRename(t *testing.T, f vfs.FS, dir string) {
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	file := create(t, f, from, "new")
	must(t, file.Close())
	must(t, create(t, f, to, "old").Close())
	must(t, f.Rename(from, to))
	if got := named(t, f, to); got != "new" {
		t.Errorf("got %q", got)
	}
	if got := list(t, f, dir); !slices.Equal(got, []string{"to"}) {
		t.Errorf("got %v", got)
	}
	must(t, f.Rename(to, to))
	if got := named(t, f, to); got != "new" {
		t.Errorf("renamed to itself: %q", got)
	}

	below := filepath.Join(dir, "d1", "below")
	must(t, f.MkdirAll(filepath.Dir(below), 0o755))
	must(t, create(t, f, below, "x").Close())
	must(t, f.Rename(filepath.Join(dir, "d1"), filepath.Join(dir, "d2")))
	if got := named(t, f, filepath.Join(dir, "d2", "below")); got != "x" {
		t.Errorf("got %q", got)
	}
	must(t, f.MkdirAll(filepath.Join(dir, "d3"), 0o755))
	must(t, create(t, f, filepath.Join(dir, "d3", "full"), "x").Close())
	if f.Rename(filepath.Join(dir, "d2"), filepath.Join(dir, "d3")) == nil {
		t.Error("replaced a directory that is not empty")
	}
	if runtime.GOOS != "windows" && f.Rename(to, filepath.Join(dir, "d3")) == nil {
		t.Error("a file replaced a directory")
	}
}

func testDirectories(t *testing.T, f vfs.FS, dir string) {
	deep := filepath.Join(dir, "a", "b", "c")
	must(t, f.MkdirAll(deep, 0o755))
	must(t, f.MkdirAll(deep, 0o755))
	must(t, create(t, f, filepath.Join(deep, "f"), "x").Close())
	if f.MkdirAll(filepath.Join(deep, "f", "g"), 0o755) == nil {
		t.Error("made a directory below a file")
	}
	if f.Remove(filepath.Join(dir, "a")) == nil {
		t.Error("removed a directory that is not empty")
	}
	if _, err := f.OpenFile(deep, os.O_RDWR, 0); err == nil {
		t.Error("opened a directory for writing")
	}
	must(t, f.RemoveAll(filepath.Join(dir, "a")))
	must(t, f.RemoveAll(filepath.Join(dir, "a")))
	must(t, f.RemoveAll(filepath.Join(dir, "no", "such")))
	if got := list(t, f, dir); len(got) != 0 {
		t.Errorf("left %v", got)
	}
	wantError(t, f.SyncDir(filepath.Join(dir, "a")), fs.ErrNotExist)
}

func testUnlinked(t *testing.T, f vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	file := create(t, f, name, "old")
	must(t, f.Remove(name))
	create(t, f, name, "new")
	_, err := file.WriteAt([]byte("er"), 3)
	must(t, err)
	if got := content(t, file); got != "older" {
		t.Errorf("unlinked file: %q", got)
	}
	if got := named(t, f, name); got != "new" {
		t.Errorf("new file: %q", got)
	}
	must(t, f.Rename(name, name+"2"))
	must(t, f.RemoveAll(dir))
	if got := content(t, file); got != "older" {
		t.Errorf("unlinked file: %q", got)
	}
}

func testLocks(t *testing.T, f vfs.FS, dir string) {
	name := filepath.Join(dir, ".lock")
	lock, err := f.Lock(name)
	must(t, err)
	_, err = f.Lock(name)
	wantError(t, err, vfs.ErrLocked)
	must(t, lock.Close())
	if got := list(t, f, dir); !slices.Equal(got, []string{".lock"}) {
		t.Errorf("the lock's file must stay: %v", got)
	}
	lock, err = f.Lock(name)
	must(t, err)
	must(t, lock.Close())
}

func testVolume(t *testing.T, f vfs.FS, dir string) {
	v, err := f.OpenVolume(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return // the file system that tests run on may be any
	}
	must(t, err)
	must(t, create(t, f, filepath.Join(dir, "a"), "x").Close())
	if held, err := v.Holds(dir); !held || err != nil {
		t.Errorf("the volume does not hold its directory: %v", err)
	}
	_, err = v.Holds(filepath.Join(dir, "none"))
	wantError(t, err, fs.ErrNotExist)
	must(t, v.Sync())
	must(t, v.Close())
	_, err = f.OpenVolume(filepath.Join(dir, "none"))
	wantError(t, err, fs.ErrNotExist)
}

func testClosed(t *testing.T, f vfs.FS, dir string) {
	file := create(t, f, filepath.Join(dir, "a"), "x")
	must(t, file.Close())
	_, err := file.ReadAt(make([]byte, 1), 0)
	wantError(t, err, fs.ErrClosed)
	_, err = file.WriteAt([]byte("y"), 0)
	wantError(t, err, fs.ErrClosed)
	_, err = file.Size()
	wantError(t, err, fs.ErrClosed)
	wantError(t, file.Sync(), fs.ErrClosed)
	wantError(t, file.Truncate(0), fs.ErrClosed)
	wantError(t, file.Close(), fs.ErrClosed)
	if _, ok := file.Descriptor(); ok {
		t.Error("a closed file has a descriptor")
	}
}

func testConcurrent(t *testing.T, f vfs.FS, dir string) {
	file := create(t, f, filepath.Join(dir, "shared"), "")
	const writers, block = 4, 5_000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			mine := bytes.Repeat([]byte{byte('a' + w)}, block)
			for round := range 10 {
				if _, err := file.WriteAt(mine, int64(w*block)); err != nil {
					t.Error(err)
				}
				got := make([]byte, block)
				if _, err := file.ReadAt(got, int64(w*block)); err != nil || !bytes.Equal(got, mine) {
					t.Errorf("read %q…, %v", got[:1], err)
				}
				if err := file.Sync(); err != nil {
					t.Error(err)
				}
				own := filepath.Join(dir, fmt.Sprint(w, "-", round))
				if err := f.MkdirAll(own, 0o755); err != nil {
					t.Error(err)
				}
				if err := f.Rename(own, own+"x"); err != nil {
					t.Error(err)
				}
				if err := f.RemoveAll(own + "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if size, err := file.Size(); err != nil || size != writers*block {
		t.Errorf("size %d, %v", size, err)
	}
}

func TestIsFull(t *testing.T) {
	if !vfs.IsFull(fmt.Errorf("x: %w", &os.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC})) {
		t.Error("ENOSPC means full")
	}
	if vfs.IsFull(syscall.EIO) || vfs.IsFull(nil) {
		t.Error("EIO does not mean full")
	}
}
