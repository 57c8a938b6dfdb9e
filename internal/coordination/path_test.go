package coordination

import (
	"errors"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct{ path, parent, name string }{
		{"/", "/", ""}, {"/a", "/", "a"}, {"/a/b", "/a", "b"}, {"/a/b/c", "/a/b", "c"}, {"/q/", "/q", ""},
	} {
		parent, name := Split(c.path)
		if parent != c.parent || name != c.name || Parent(c.path) != c.parent {
			t.Errorf("%s splits into %q and %q", c.path, parent, name)
		}
		if joined := Join(parent, name); joined != c.path {
			t.Errorf("%q and %q join to %s, want %s", parent, name, joined, c.path)
		}
	}
}

func TestChroot(t *testing.T) {
	for _, c := range []struct{ chroot, inner, outer string }{
		{"", "/", "/"}, {"/", "/a", "/a"}, {"/k", "/", "/k"}, {"/k", "/a/b", "/k/a/b"}, {"/k/l", "/a", "/k/l/a"},
	} {
		chroot, err := NewChroot(c.chroot)
		if err != nil {
			t.Fatal(err)
		}
		if chroot.Outer(c.inner) != c.outer || chroot.Inner(c.outer) != c.inner {
			t.Errorf("in %q %s is %s, and %s is %s", c.chroot, c.inner, chroot.Outer(c.inner), c.outer, chroot.Inner(c.outer))
		}
	}
	op := Create("/", nil, CreateOptions{Sequential: true})
	if got := Chroot("/k").OuterOp(op).Path; got != "/k/" {
		t.Errorf("a number in the root of a chroot is made at %s", got)
	}
	if _, err := NewChroot("k"); !errors.Is(err, ErrBadPath) {
		t.Errorf("error %v", err)
	}
}

func TestLimits(t *testing.T) {
	limits := Limits{MaxTxnBytes: 1000, MaxNodeBytes: 300}
	create := func(bytes int) Op { return Create("/a", make([]byte, bytes), CreateOptions{}) }
	var txn *TxnError
	if err := limits.Validate(create(300), create(300)); err != nil {
		t.Error(err)
	}
	if err := limits.Validate(create(0), create(301)); !errors.As(err, &txn) || txn.Index != 1 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if err := limits.Validate(create(300), create(300), create(300)); !errors.As(err, &txn) || txn.Index != 2 {
		t.Errorf("error %v", err)
	}
	if err := limits.Validate(Op{Path: "/a"}); !errors.Is(err, ErrBadOperation) {
		t.Errorf("error %v", err)
	}
}

// FuzzValidatePath compares with the rules as ZooKeeper's documentation words them.
func FuzzValidatePath(f *testing.F) {
	for _, seed := range []string{"/", "/a/b", "/a/../b", "//", "/a\x00", "a", "/\ufff0", "/a."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if ValidatePath(path) != nil {
			return
		}
		names := strings.Split(path, "/")
		if names[0] != "" || len(path) > 1 && names[len(names)-1] == "" || strings.ContainsRune(path, 0) {
			t.Fatalf("%q is taken", path)
		}
		if len(path) == 1 {
			return
		}
		for _, name := range names[1:] {
			if name == "" || name == "." || name == ".." {
				t.Fatalf("%q is taken", path)
			}
		}
		parent, name := Split(path)
		if ValidatePath(parent) != nil || Join(parent, name) != path {
			t.Fatalf("%q splits into %q and %q", path, parent, name)
		}
	})
}
