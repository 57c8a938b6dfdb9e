package logdir

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func FuzzParseFolder(f *testing.F) {
	for _, seed := range []string{"t-0", "a.b-7.1f-future", "x-0.89f228d2fc1a4bd4859e623dd104e395-delete", "lost+found", "-", "a-0.-stray", "t-00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		tp, state, unique, ok := parseFolder(name)
		if !ok {
			return
		}
		if strings.ContainsAny(name, "/\x00") && !strings.ContainsAny(unique, "/\x00") {
			t.Fatalf("%q is a path", name)
		}
		back, err := folderName(tp, state, unique)
		if len(name) > folderNameMax || err != nil {
			return
		}
		again, againState, _, ok := parseFolder(back)
		if !ok || again != tp || againState != state {
			t.Errorf("%q became %q: %v, %s", name, back, again, againState)
		}
	})
}

func FuzzReadOurFiles(f *testing.F) {
	f.Add("version=0\nboot.id=x\npath=/d\nsuspect=t-0\n")
	f.Add("version=0\n- /a\nNV4_ueZYv-GIoATEVmlvTQ /b\n")
	f.Add("version=1\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := vfs.NewMemory()
		put(t, m, "/d/"+bootFile, text)
		put(t, m, "/d/"+knownFile, text)
		put(t, m, "/d/"+markerFile, text)
		b, err := readBoot(m, "/d")
		if err != nil {
			t.Errorf("what is no boot file says nothing: %v", err)
		}
		if b.survived("x", "/d") && !strings.Contains(text, "boot.id=x") {
			t.Errorf("%q is trusted", text)
		}
		if known, err := readKnown(m, "/d"); err == nil && len(known) > strings.Count(text, "\n") {
			t.Errorf("%q gave %q", text, known)
		}
		if clean, _, err := readMarker(m, "/d"); !clean || err != nil {
			t.Errorf("a marker is one whatever is in it: %v", err)
		}
	})
}

func TestDamagedListOfDirectories(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m, "/a", "/b")
	stop(t, w.start(t))
	if known, err := readKnown(m, "/a"); err != nil || !slices.Equal(known, []string{"/a", "/b"}) {
		t.Errorf("known: %v, %v", known, err)
	}
	put(t, m, "/a/"+knownFile, "\x00\x00")
	if _, err := Open(w.options); err == nil || !strings.Contains(err.Error(), knownFile) {
		t.Errorf("got %v", err)
	}
	must(t, m.Remove("/a/"+knownFile)) // as after a start of Kafka's, which knows no such file
	stop(t, w.start(t))
}

func TestReport(t *testing.T) {
	w := newWorld(t, vfs.NewMemory(), "/a", "/b")
	s := w.start(t)
	tp := partition("t", 0)
	w.make(t, s, tp)
	for _, harmless := range []error{nil, errors.New("no"), syscall.EMFILE, syscall.ENOSPC, syscall.ENOENT} {
		s.Report(tp, harmless)
	}
	s.Report(partition("unknown", 0), syscall.EIO)
	if s.Err(tp) != nil {
		t.Errorf("taken offline: %v", s.Err(tp))
	}
	s.Report(tp, &vfsError{syscall.EIO})
	if dir, _ := s.DirOf(tp); <-s.Failed() != dir || s.Err(tp) == nil {
		t.Error("an I/O error takes the directory offline")
	}
}

// vfsError wraps an error as layers above do.
type vfsError struct{ cause error }

func (e *vfsError) Error() string { return "reading: " + e.cause.Error() }
func (e *vfsError) Unwrap() error { return e.cause }
