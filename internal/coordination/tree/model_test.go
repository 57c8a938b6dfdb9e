package tree

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// model is a tree as one would first write it: a map that is copied for every transaction.
type model struct {
	zxid     int64
	nodes    map[string]modelNode
	sessions map[int64]Owner
}

type modelNode struct {
	data                        string // "nil" for nil
	czxid, mzxid, pzxid, owner  int64
	version, created, destroyed int32
}

func newModel() *model {
	return &model{nodes: map[string]modelNode{"/": {data: "nil"}}, sessions: map[int64]Owner{}}
}

func (m *model) copy() *model {
	return &model{zxid: m.zxid, nodes: maps.Clone(m.nodes), sessions: maps.Clone(m.sessions)}
}

// apply carries out a command, and says which operation failed (-1: none) and why.
func (m *model) apply(c Command) (next *model, index int, err error) {
	next = m.copy()
	next.zxid++
	switch c.Kind {
	case OpenSession:
		for id, owner := range m.sessions {
			if owner.Node == c.Owner.Node && owner.Life != c.Owner.Life {
				next.end(id)
			}
		}
		next.sessions[next.zxid] = c.Owner
		return next, -1, nil
	case CloseSession:
		if _, ok := m.sessions[c.Session]; !ok {
			return m, -1, coordination.ErrSessionLost
		}
		next.end(c.Session)
		return next, -1, nil
	}
	if _, ok := m.sessions[c.Session]; !ok {
		return m, -1, coordination.ErrSessionLost
	}
	for i, op := range c.Ops {
		if err := next.operation(c.Session, op); err != nil {
			return m, i, err
		}
	}
	return next, -1, nil
}

func (m *model) end(id int64) {
	for path, n := range m.nodes {
		if n.owner == id {
			m.remove(path)
		}
	}
	delete(m.sessions, id)
}

func (m *model) remove(path string) {
	delete(m.nodes, path)
	parent := m.nodes[coordination.Parent(path)]
	parent.destroyed++
	parent.pzxid = m.zxid
	m.nodes[coordination.Parent(path)] = parent
}

func (m *model) operation(session int64, op coordination.Op) error {
	n, ok := m.nodes[op.Path]
	if op.Kind == coordination.OpCreate {
		return m.create(session, op)
	}
	if op.Kind == coordination.OpDelete && op.Path == "/" {
		return coordination.ErrBadOperation
	}
	if !ok {
		return coordination.ErrNoNode
	}
	if op.Version != -1 && op.Version != n.version {
		return coordination.ErrBadVersion
	}
	switch op.Kind {
	case coordination.OpSet:
		n.data, n.mzxid, n.version = text(op.Data), m.zxid, n.version+1
		m.nodes[op.Path] = n
	case coordination.OpDelete:
		if len(m.children(op.Path)) > 0 {
			return coordination.ErrNotEmpty
		}
		m.remove(op.Path)
	}
	return nil
}

func (m *model) create(session int64, op coordination.Op) error {
	parent, ok := m.nodes[coordination.Parent(op.Path)]
	if !ok {
		return coordination.ErrNoNode
	}
	path := op.Path
	if op.Options.Sequential {
		path += fmt.Sprintf("%010d", parent.created)
	}
	if _, ok := m.nodes[path]; ok {
		return coordination.ErrNodeExists
	}
	if parent.owner != 0 {
		return coordination.ErrNoChildrenForEphemerals
	}
	n := modelNode{data: text(op.Data), czxid: m.zxid, mzxid: m.zxid, pzxid: m.zxid}
	if op.Options.Ephemeral {
		n.owner = session
	}
	parent.created++
	parent.pzxid = m.zxid
	m.nodes[coordination.Parent(op.Path)] = parent
	m.nodes[path] = n
	return nil
}

func (m *model) children(path string) []string {
	var names []string
	for p := range m.nodes {
		if p != "/" && coordination.Parent(p) == path {
			names = append(names, p[strings.LastIndexByte(p, '/')+1:])
		}
	}
	slices.Sort(names)
	return names
}

func text(data []byte) string {
	if data == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", data)
}

// dump prints a model, dumpTree a tree, in the same form.
func (m *model) dump() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(m.nodes)) {
		n := m.nodes[path]
		fmt.Fprintln(&b, path, n.data, n.czxid, n.mzxid, n.pzxid, n.owner, n.version, n.created+n.destroyed,
			len(m.children(path)))
	}
	fmt.Fprintln(&b, m.zxid, slices.Sorted(maps.Keys(m.sessions)))
	return b.String()
}

func dumpTree(t *Tree) string {
	var lines []string
	t.Walk("/", func(path string, data []byte, s coordination.Stat) bool {
		lines = append(lines, fmt.Sprintln(path, text(data), s.Czxid, s.Mzxid, s.Pzxid, s.EphemeralOwner, s.Version,
			s.Cversion, s.NumChildren))
		return true
	})
	slices.SortFunc(lines, func(a, b string) int { // Walk goes by names, the model by whole paths
		return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0])
	})
	return strings.Join(lines, "") + fmt.Sprintln(t.Zxid(), t.Sessions())
}

// drawCommand draws a command over few paths, so that they meet.
func drawCommand(t *rapid.T, sessions []int64) Command {
	c := Command{Kind: Transaction, Time: rapid.Int64().Draw(t, "time")}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		c.Kind = OpenSession
		c.Owner = Owner{Node: int32(rapid.IntRange(0, 2).Draw(t, "node")), Life: rapid.Uint64Range(0, 2).Draw(t, "life")}
		c.TimeoutMillis = rapid.Int64Range(0, 1e6).Draw(t, "timeout")
		return c
	case 1:
		c.Kind = CloseSession
	}
	c.Session = rapid.SampledFrom(append(sessions, 999)).Draw(t, "session")
	if c.Kind == Transaction {
		c.Ops = rapid.SliceOfN(rapid.Custom(drawOp), 0, 4).Draw(t, "ops")
	}
	return c
}

func drawOp(t *rapid.T) coordination.Op {
	var path string
	for range rapid.IntRange(1, 3).Draw(t, "depth") {
		path += "/" + rapid.SampledFrom([]string{"a", "b", "ä-"}).Draw(t, "name")
	}
	if rapid.IntRange(0, 20).Draw(t, "root") == 0 {
		path = "/"
	}
	version := int32(rapid.IntRange(-1, 2).Draw(t, "version"))
	data := rapid.SampledFrom([][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("y"), 300)}).Draw(t, "data")
	switch rapid.IntRange(0, 5).Draw(t, "op") {
	case 0:
		return coordination.Check(path, version)
	case 1:
		return coordination.Set(path, data, version)
	case 2:
		return coordination.Delete(path, version)
	}
	return coordination.Create(path, data, coordination.CreateOptions{
		Ephemeral:  rapid.IntRange(0, 3).Draw(t, "ephemeral") == 0,
		Sequential: path != "/" && rapid.IntRange(0, 3).Draw(t, "sequential") == 0,
	})
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, m := New(0), newModel()
		type past struct {
			tree *Tree
			dump string
		}
		var history []past
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := drawCommand(t, tr.Sessions())
			stored, err := ParseCommand(c.Append(nil))
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if len(c.Ops) > 0 && !reflect.DeepEqual(c, stored) {
				t.Fatalf("stored and read again: %s", cmp.Diff(c, stored))
			}
			next, index, want := m.apply(c)
			nextTree, result := tr.Apply(stored)
			checkError(t, result.Err, index, want)
			if got, want := dumpTree(nextTree), next.dump(); got != want {
				t.Fatalf("after %+v: tree\n%smodel\n%s", c, got, want)
			}
			tr, m = nextTree, next
			history = append(history, past{tr, m.dump()})
		}
		for _, p := range history {
			if got := dumpTree(p.tree); got != p.dump {
				t.Fatalf("an old tree changed: it is\n%swas\n%s", got, p.dump)
			}
		}
		checkSnapshot(t, tr)
	})
}

func checkError(t *rapid.T, got error, index int, want error) {
	var txn *coordination.TxnError
	switch {
	case !errors.Is(got, want) || want == nil && got != nil:
		t.Fatalf("error %v, want %v", got, want)
	case errors.As(got, &txn) != (index >= 0), txn != nil && txn.Index != index:
		t.Fatalf("error %v, want it at %d", got, index)
	}
}

// checkSnapshot writes a tree, reads it, and demands the same tree, ephemerals of sessions included.
func checkSnapshot(t *rapid.T, tr *Tree) {
	var first, second bytes.Buffer
	if n, err := tr.WriteTo(&first); err != nil || n != int64(first.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, first.Len(), err)
	}
	again, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dumpTree(again), dumpTree(tr); got != want {
		t.Fatalf("read again it is\n%swas\n%s", got, want)
	}
	if _, err := again.WriteTo(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("written again it differs (%v)", err)
	}
	for _, id := range tr.Sessions() {
		closed, _ := tr.Apply(Command{Kind: CloseSession, Session: id})
		closedAgain, _ := again.Apply(Command{Kind: CloseSession, Session: id})
		if got, want := dumpTree(closedAgain), dumpTree(closed); got != want {
			t.Fatalf("without session %d it is\n%swant\n%s", id, got, want)
		}
	}
}
