package tree

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// sample is a tree with something of everything.
func sample(t testing.TB) *Tree {
	t.Helper()
	tr := New(41)
	for _, c := range []Command{
		{Kind: OpenSession, Time: 1000, Owner: Owner{Node: 7, Life: 0xfeed}, TimeoutMillis: 18000},
		{Kind: Transaction, Session: 42, Time: 1001, Ops: []coordination.Op{
			coordination.Create("/a", nil, coordination.CreateOptions{}),
			coordination.Create("/a/b", []byte{}, coordination.CreateOptions{}),
			coordination.Create("/a/n-", []byte("x"), coordination.CreateOptions{Sequential: true, Ephemeral: true}),
			coordination.Set("/a", []byte("data"), 0),
			coordination.Check("/a", 1),
			coordination.Create("/gone", nil, coordination.CreateOptions{}),
			coordination.Delete("/gone", coordination.AnyVersion),
		}},
	} {
		next, result := tr.Apply(c)
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		tr = next
	}
	return tr
}

// What is on disks must stay readable: these bytes never change.
func TestStoredBytes(t *testing.T) {
	var b bytes.Buffer
	if _, err := sample(t).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	const snapshot = "01" + "2b" + "01" + "2a" + "0e" + "000000000000feed" + "d08c01" + "04" +
		"000000" + "00002b00" + "00000004" +
		"010161" + "0564617461" + "2b2b2b00" + "d20fd20f0204" +
		"020162" + "01" + "2b2b2b00" + "d20fd20f0000" +
		"020c6e2d30303030303030303031" + "0278" + "2b2b2b2a" + "d20fd20f0000"
	if got := hex.EncodeToString(b.Bytes()); got != snapshot {
		t.Errorf("snapshot is\n%s, want\n%s", got, snapshot)
	}
	c := Command{Kind: Transaction, Session: 42, Time: 1001, Ops: []coordination.Op{
		coordination.Create("/n-", []byte("x"), coordination.CreateOptions{Sequential: true, Ephemeral: true}),
		coordination.Set("/a", nil, 3), coordination.Delete("/a", -1),
	}}
	const command = "0103d20f2a03" + "32032f6e2d0278" + "03022f610006" + "04022f6101"
	if got := hex.EncodeToString(c.Append(nil)); got != command {
		t.Errorf("command is\n%s, want\n%s", got, command)
	}
}

func TestNewerVersions(t *testing.T) {
	if _, err := ParseCommand([]byte{2, 1, 0}); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("command: %v", err)
	}
	if _, err := Read(bytes.NewReader([]byte{2, 1, 0})); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("snapshot: %v", err)
	}
}

func TestSnapshotOfManyNodes(t *testing.T) {
	tr := sample(t)
	var ops []coordination.Op
	for i := range 20_000 {
		path := "/a/" + strconv.Itoa(i)
		ops = append(ops, coordination.Create(path, bytes.Repeat([]byte("s"), 80), coordination.CreateOptions{}))
	}
	tr, result := tr.Apply(Command{Kind: Transaction, Session: 42, Ops: ops})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	var b bytes.Buffer
	if _, err := tr.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if dumpTree(again) != dumpTree(tr) {
		t.Fatal("read again it differs")
	}
}

// brokenWriter fails after some bytes.
type brokenWriter struct{ left int }

var errDisk = errors.New("disk")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	if _, err := sample(t).WriteTo(&brokenWriter{left: 10}); !errors.Is(err, errDisk) {
		t.Fatalf("error %v", err)
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, c := range []Command{
		{Kind: OpenSession, Time: 1, Owner: Owner{Node: 1, Life: 2}, TimeoutMillis: 3},
		{Kind: CloseSession, Session: 9},
		{Kind: Transaction, Session: 9, Ops: []coordination.Op{
			coordination.Create("/a", []byte("x"), coordination.CreateOptions{Ephemeral: true}),
			coordination.Set("/a", nil, 1), coordination.Check("/", -1), coordination.Delete("/a", 2),
		}},
	} {
		f.Add(c.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCommand(b)
		if err != nil {
			return
		}
		again, err := ParseCommand(c.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), c.Append(nil)) {
			t.Fatalf("%+v becomes %+v (%v)", c, again, err)
		}
		sample(t).Apply(c) // must not panic
	})
}

func FuzzReadSnapshot(f *testing.F) {
	var b bytes.Buffer
	sample(f).WriteTo(&b)
	f.Add(b.Bytes())
	b.Reset()
	New(0).WriteTo(&b)
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := tr.WriteTo(&again); err != nil {
			t.Fatal(err)
		}
		same, err := Read(&again)
		if err != nil || dumpTree(same) != dumpTree(tr) {
			t.Fatalf("written and read again it differs (%v)", err)
		}
		for _, id := range tr.Sessions() {
			tr, _ = tr.Apply(Command{Kind: CloseSession, Session: id})
		}
	})
}
