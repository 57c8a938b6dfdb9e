package vfs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestMemoryLimit(t *testing.T) {
	for _, m := range []*vfs.Memory{vfs.NewMemory(), vfs.NewVolatile()} {
		const page = 64 << 10 // a multiple of both page sizes
		m.SetLimit(3 * page)
		f := create(t, m, "/a", "")
		n, err := f.WriteAt(make([]byte, 5*page), 0)
		wantError(t, err, syscall.ENOSPC)
		if size, _ := f.Size(); n != 3*page || size != int64(n) {
			t.Errorf("wrote %d bytes, size %d, want what fits", n, size)
		}
		if total, free, _ := m.Space("/"); total != 3*page || free != 0 {
			t.Errorf("space: %d of %d", free, total)
		}
		_, err = f.WriteAt([]byte("inside"), 0)
		must(t, err)
		g := create(t, m, "/b", "")
		wantError(t, g.Preallocate(0, 1), syscall.ENOSPC)
		must(t, f.Truncate(page))
		must(t, g.Preallocate(0, 2*page))
		_, err = f.WriteAt([]byte("x"), page)
		wantError(t, err, syscall.ENOSPC)
		_, err = g.WriteAt(make([]byte, 2*page), 0)
		must(t, err)
		must(t, m.Remove("/b"))
		if used := m.Used(); used != 3*page {
			t.Errorf("an open file keeps its space: %d", used)
		}
		must(t, g.Close())
		must(t, f.Truncate(0))
		if used := m.Used(); used != 0 {
			t.Errorf("still used: %d", used)
		}
		m.SetLimit(0)
		_, err = f.WriteAt(make([]byte, 5*page), 0)
		must(t, err)
	}
}

func crash(m *vfs.Memory, keep float64, seed uint64) *vfs.Memory {
	return m.CrashClone(rand.New(rand.NewPCG(seed, 0)), keep)
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := vfs.NewMemory()
	must(t, m.MkdirAll("/d", 0o755))
	must(t, m.SyncDir("/"))
	f := create(t, m, "/d/a", "synced")
	must(t, f.Sync())
	if got := list(t, crash(m, 0, 1), "/d"); got != nil {
		t.Errorf("a name without SyncDir survived: %v", got)
	}
	must(t, m.SyncDir("/d"))
	_, err := f.WriteAt([]byte("SYNCED and not"), 0)
	must(t, err)
	create(t, m, "/d/b", "no name")
	must(t, m.Rename("/d/a", "/d/c"))

	certain := crash(m, 0, 1)
	if got := list(t, certain, "/d"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("names: %v", got)
	}
	if got := named(t, certain, "/d/a"); got != "synced" {
		t.Errorf("data: %q", got)
	}
	killed := crash(m, 1, 1)
	if got := list(t, killed, "/d"); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("names after a kill: %v", got)
	}
	if got := named(t, killed, "/d/c"); got != "SYNCED and not" {
		t.Errorf("data after a kill: %q", got)
	}
	if got := content(t, f); got != "SYNCED and not" {
		t.Errorf("the original changed: %q", got)
	}
}

func TestCrashLeavesCopies(t *testing.T) {
	m := vfs.NewMemory()
	f := create(t, m, "/a", "one")
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	clone := crash(m, 0, 1)
	_, err := f.WriteAt([]byte("two"), 0)
	must(t, err)
	other, err := clone.OpenFile("/a", os.O_RDWR, 0)
	must(t, err)
	if got := content(t, other); got != "one" {
		t.Errorf("the clone saw a later write: %q", got)
	}
	_, err = other.WriteAt([]byte("six"), 0)
	must(t, err)
	if got := content(t, f); got != "two" {
		t.Errorf("the original saw the clone's write: %q", got)
	}
	if got := named(t, crash(clone, 0, 1), "/a"); got != "one" {
		t.Errorf("what a clone starts from is durable in it: %q", got)
	}
}

// TestCrashVariety proves that the outcomes which recovery code must bear do come up.
func TestCrashVariety(t *testing.T) {
	m := vfs.NewMemory()
	must(t, m.MkdirAll("/d", 0o755))
	must(t, m.SyncDir("/"))
	f := create(t, m, "/d/log", strings.Repeat("a", 4096))
	must(t, f.Sync())
	must(t, m.SyncDir("/d"))
	_, err := f.WriteAt([]byte(strings.Repeat("b", 3000)), 4096)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("b", 5192)), 7096)
	must(t, err)
	create(t, m, "/d/x.tmp", "x")
	must(t, m.Rename("/d/x.tmp", "/d/x"))

	seen := map[string]int{}
	for seed := range uint64(400) {
		clone := crash(m, 0.5, seed)
		names := list(t, clone, "/d")
		if slices.Contains(names, "x") && slices.Contains(names, "x.tmp") {
			t.Fatalf("seed %d: a rename left both names: %v", seed, names)
		}
		got := named(t, clone, "/d/log")
		if !strings.HasPrefix(got, strings.Repeat("a", 4096)) {
			t.Fatalf("seed %d: synced bytes changed", seed)
		}
		tail := got[4096:]
		seen[fmt.Sprint(len(names), " names")]++
		switch {
		case tail == "":
			seen["nothing"]++
		case len(tail) == 8192 && strings.Trim(tail, "b") == "":
			seen["all"]++
		case len(tail) == 3000:
			seen["first write"]++
		case len(tail) == 4096:
			seen["first page"]++
		case len(tail) != 8192:
			t.Fatalf("seed %d: %d bytes", seed, len(tail))
		}
		if strings.Contains(tail, "\x00b") {
			seen["zeros before data"]++
		}
		if strings.HasSuffix(tail, "\x00") {
			seen["zeros at the end"]++
		}
	}
	for _, want := range []string{"nothing", "all", "first write", "first page", "zeros before data", "zeros at the end", "1 names", "2 names"} {
		if seen[want] == 0 {
			t.Errorf("never seen: %s (%v)", want, seen)
		}
	}
	if a, b := named(t, crash(m, 0.5, 7), "/d/log"), named(t, crash(m, 0.5, 7), "/d/log"); a != b {
		t.Error("one seed gave two outcomes")
	}
}

func TestCrashTruncation(t *testing.T) {
	m := vfs.NewMemory()
	f := create(t, m, "/a", strings.Repeat("o", 10_000))
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	must(t, f.Truncate(5_000))
	_, err := f.WriteAt([]byte(strings.Repeat("n", 5_000)), 5_000)
	must(t, err)
	for seed := range uint64(300) {
		got := named(t, crash(m, 0.5, seed), "/a")
		if !strings.HasPrefix(got, strings.Repeat("o", 5_000)) {
			t.Fatalf("seed %d: bytes below the cut changed", seed)
		}
		if i := strings.IndexByte(got, 'n'); i >= 0 && strings.Contains(got[i:], "o") {
			t.Fatalf("seed %d: old bytes came back behind new ones", seed)
		}
	}
	must(t, f.Sync())
	if got := named(t, crash(m, 0, 1), "/a"); got != strings.Repeat("o", 5_000)+strings.Repeat("n", 5_000) {
		t.Errorf("synced truncation: %d bytes", len(got))
	}
}

func TestCrashHardNames(t *testing.T) {
	m := vfs.NewMemory()
	must(t, m.MkdirAll("/d/t-0", 0o755))
	create(t, m, "/d/t-0/log", "x")
	must(t, m.SyncDir("/d/t-0"))
	if got := list(t, crash(m, 0, 1), "/"); got != nil {
		t.Errorf("a directory whose own name was not synced: %v", got)
	}
	must(t, m.SyncDir("/"))
	must(t, m.SyncDir("/d"))
	must(t, m.Rename("/d/t-0", "/d/t-0.delete"))
	must(t, m.SyncDir("/d"))
	must(t, m.RemoveAll("/d/t-0.delete"))
	clone := crash(m, 0, 1)
	if got := list(t, clone, filepath.FromSlash("/d/t-0.delete")); !slices.Equal(got, []string{"log"}) {
		t.Errorf("removal is not durable: %v", got)
	}
	must(t, m.SyncDir("/d"))
	if got := list(t, crash(m, 0, 1), "/d"); got != nil {
		t.Errorf("removal is durable: %v", got)
	}
}

// A synced volume is what it was, whatever a crash leaves of later changes.
func TestCrashAfterVolumeSync(t *testing.T) {
	m := vfs.NewMemory()
	must(t, m.MkdirAll("/d/e", 0o755))
	f := create(t, m, "/d/e/a", "one")
	must(t, create(t, m, "/d/b", "gone").Close())
	must(t, m.Rename("/d/e/a", "/d/c"))
	must(t, m.Remove("/d/b"))
	v, err := m.OpenVolume("/d")
	must(t, err)
	if _, err := f.WriteAt([]byte("two"), 3); err != nil {
		t.Fatal(err)
	}
	must(t, v.Sync())
	if _, err := f.WriteAt([]byte("three"), 6); err != nil {
		t.Fatal(err)
	}
	must(t, m.Rename("/d/c", "/d/z"))
	c := crash(m, 0, 1)
	if got := list(t, c, "/d"); !slices.Equal(got, []string{"c", "e/"}) {
		t.Errorf("the crash left %v, want c and e", got)
	}
	if got := named(t, c, "/d/c"); got != "onetwo" {
		t.Errorf("%q in it, want what was synced", got)
	}
}

func BenchmarkMemoryAppend(b *testing.B) {
	m := vfs.NewVolatile()
	f, err := m.OpenFile("/a", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 16<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = f.WriteAt(p, int64(i%4096)*int64(len(p)))
	}
}

func BenchmarkMemoryRead(b *testing.B) {
	m := vfs.NewVolatile()
	f, err := m.OpenFile("/a", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 16<<10)
	for i := range 64 {
		_, _ = f.WriteAt(p, int64(i*len(p)))
	}
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = f.ReadAt(p, int64(i%64)*int64(len(p)))
	}
}
