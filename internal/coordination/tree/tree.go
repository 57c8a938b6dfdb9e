// Package tree is the state of a coordination store: ZooKeeper's tree of nodes with its sessions, as one
// immutable value. A command is applied to a tree and gives another one, which shares what did not change:
// readers need no lock, a transaction that fails leaves nothing to undo, and a snapshot is the value
// itself.
//
// Applying is deterministic: what depends on the clock or on chance is carried in the command. So the
// same commands give the same tree on every voter and after every restart.
//
// The memory store applies commands as they come; the quorum store replicates them first. The bytes of
// commands and snapshots are drawn in command.go and snapshot.go.
package tree

import (
	"strings"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// Tree is one state of a store. It is never changed.
//
// It may be kept for as long as anybody likes; what it holds that newer trees do not is freed with the last reference.
type Tree struct {
	root     *node
	zxid     int64
	sessions *sorted[int64, *session]
}

// New makes a tree that holds only the root, whose first transaction gets the number after zxid. A tree
// that takes over from another store starts at that one's highest number, since broker epochs must not go
// back.
func New(zxid int64) *Tree { return &Tree{root: &node{}, zxid: zxid} }

// node is one node of a tree. It is never changed once it can be seen from a Tree.
// czxid, mzxid and pzxid are the transactions that created it, last set its data, and last created or deleted a child.
type node struct {
	data         []byte // nil and empty differ
	czxid        int64
	mzxid        int64
	pzxid        int64
	owner        int64 // the session of an ephemeral node, or 0
	ctime, mtime int64 // milliseconds since 1970
	version      int32
	creations    int32 // of children ever: the number of the next sequential one
	children     *sorted[string, *node]
}

// stat is what clients see of n. ZooKeeper stores creations only and derives from them the number of all
// changes: every creation that is not a child any more was followed by a deletion.
func (n *node) stat() coordination.Stat {
	children := int32(n.children.len())
	return coordination.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, EphemeralOwner: n.owner,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: 2*n.creations - children, NumChildren: children,
	}
}

// session is what a tree knows about an open session.
// Ephemeral nodes are listed twice, here and by their owner field, so that ending a session costs what it owns and not
// a walk over the tree; the two always agree.
type session struct {
	owner         Owner
	timeoutMillis int64
	ephemerals    *sorted[string, struct{}] // by path
}

// Owner says which process opened a session in process: a node of the cluster, and its life, a number
// drawn anew with every start.
// The life tells a restarted process from the one before: its sessions are nobody's any more.
type Owner struct {
	Node int32
	Life uint64
}

// Zxid is the number of the last transaction.
func (t *Tree) Zxid() int64 { return t.zxid }

// HasSession tells whether a session is open.
func (t *Tree) HasSession(id int64) bool {
	_, ok := t.sessions.get(id)
	return ok
}

// Sessions lists the open sessions in the order of their opening.
func (t *Tree) Sessions() []int64 {
	ids := make([]int64, 0, t.sessions.len())
	for id := range t.sessions.all {
		ids = append(ids, id)
	}
	return ids
}

// Get reads a node. The data must not be changed. The error is ErrNoNode.
func (t *Tree) Get(path string) ([]byte, coordination.Stat, error) {
	n := find(t.root, path)
	if n == nil {
		return nil, coordination.Stat{}, coordination.ErrNoNode
	}
	return n.data, n.stat(), nil
}

// Children lists the names of a node's children in rising order. The error is ErrNoNode.
func (t *Tree) Children(path string) ([]string, coordination.Stat, error) {
	n := find(t.root, path)
	if n == nil {
		return nil, coordination.Stat{}, coordination.ErrNoNode
	}
	names := make([]string, 0, n.children.len())
	for name := range n.children.all {
		names = append(names, name)
	}
	return names, n.stat(), nil
}

// Walk calls yield with every node at and below path, parents first and siblings in the order of names,
// until it returns false. A missing path has none.
//
// It is of one tree, whatever is committed meanwhile.
func (t *Tree) Walk(path string, yield func(path string, data []byte, stat coordination.Stat) bool) {
	if n := find(t.root, path); n != nil {
		walk(path, n, yield)
	}
}

// walk is Walk below one node; it tells whether yield wants more.
func walk(path string, n *node, yield func(string, []byte, coordination.Stat) bool) bool {
	if !yield(path, n.data, n.stat()) {
		return false
	}
	for name, child := range n.children.all {
		if !walk(coordination.Join(path, name), child, yield) {
			return false
		}
	}
	return true
}

// find descends from n along a valid path; nil if there is no such node.
func find(n *node, path string) *node {
	rest := path[1:]
	for n != nil && rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		n, _ = n.children.get(name)
	}
	return n
}

// replaced returns the root of the tree in which n stands in the place of the node at path. All nodes on
// the way are copied.
//
// It copies the nodes on the path and, in each, O(log n) of the map of children: a change costs the depth of the
// path and not the size of the tree.
func replaced(root *node, path string, n *node) *node {
	if path == "/" {
		return n
	}
	return replacedBelow(root, path[1:], n)
}

// replacedBelow is replaced for a path relative to parent.
func replacedBelow(parent *node, path string, n *node) *node {
	name, rest, deeper := strings.Cut(path, "/")
	if deeper {
		child, _ := parent.children.get(name)
		n = replacedBelow(child, rest, n)
	}
	changed := *parent
	changed.children = parent.children.with(name, n)
	return &changed
}
