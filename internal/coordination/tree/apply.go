package tree

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// Kind is what a Command does.
type Kind uint8

// The kinds of commands. Their numbers are stored.
const (
	// OpenSession opens a session for Owner, and first ends those of the same node's earlier lives.
	OpenSession Kind = 1
	// CloseSession ends a session and removes its ephemeral nodes.
	CloseSession Kind = 2
	// Transaction carries out operations for a session, all or none.
	Transaction Kind = 3
)

// Command is one change to a tree.
//
// It carries all that differs between voters and between a first run and a replay: time and random numbers. Apply
// reads no clock.
type Command struct {
	Kind    Kind
	Session int64 // of CloseSession and Transaction
	// Time is the wall clock of who sends the command, in milliseconds since 1970.
	Time          int64
	Owner         Owner             // of OpenSession
	TimeoutMillis int64             // of OpenSession
	Ops           []coordination.Op // of Transaction: valid, paths as in the store, data not changed later
}

// Change is one node that a command touched; Kind is Created, Changed or Deleted.
type Change struct {
	Path string
	Kind coordination.EventKind
}

// Result is what a command did.
type Result struct {
	// Err says why it did nothing: ErrSessionLost, or a *coordination.TxnError.
	Err error
	// Session is the one that OpenSession opened.
	Session int64
	// Ops are the results of a Transaction, in its order.
	Ops []coordination.OpResult
	// Changes are the nodes touched, in order.
	Changes []Change
	// Ended are the sessions that the command ended.
	Ended []int64
}

// Apply carries out a command. Where it fails, the tree is t itself.
//
// A command that fails uses no zxid: it is in the quorum's log and gets the same refusal on every replay. Watches and
// readers see the changes of a transaction together, as one tree; it costs O(log n) copied nodes an operation.
func (t *Tree) Apply(c Command) (*Tree, Result) {
	e := &edit{
		root: t.root, sessions: t.sessions,
		zxid: t.zxid + 1, time: c.Time, session: c.Session,
	}
	var err error
	switch c.Kind {
	case OpenSession:
		e.openSession(c)
	case CloseSession:
		err = e.closeSession(c.Session)
	case Transaction:
		err = e.transaction(c.Ops)
	default:
		invariant.Fail("command of kind %d reached the tree", c.Kind)
	}
	if err != nil {
		return t, Result{Err: err}
	}
	return &Tree{root: e.root, zxid: e.zxid, sessions: e.sessions}, e.result
}

// edit is a tree in the making.
// An edit that fails is dropped, and with it everything that was copied: there is no undo. All operations of one
// transaction have one zxid, as in ZooKeeper.
type edit struct {
	root       *node
	sessions   *sorted[int64, *session]
	zxid, time int64
	session    int64
	result     Result
}

// openSession ends the sessions that an earlier life of the same node left behind, and opens a new one
// whose id is the transaction's number.
//
// It is how a broker that was killed gets rid of its own ephemeral nodes (its entry in /brokers/ids, the controller's)
// without waiting for a timeout: nobody else may end them, and no second process can have the same directory.
func (e *edit) openSession(c Command) {
	var stale []int64
	for id, s := range e.sessions.all {
		if s.owner.Node == c.Owner.Node && s.owner.Life != c.Owner.Life {
			stale = append(stale, id)
		}
	}
	for _, id := range stale {
		err := e.closeSession(id)
		invariant.That(err == nil, "a session in the table could not be closed")
	}
	e.sessions = e.sessions.with(e.zxid, &session{owner: c.Owner, timeoutMillis: c.TimeoutMillis})
	e.result.Session = e.zxid
}

// closeSession removes a session and its ephemeral nodes.
func (e *edit) closeSession(id int64) error {
	s, ok := e.sessions.get(id)
	if !ok {
		return coordination.ErrSessionLost
	}
	for path := range s.ephemerals.all {
		e.unlink(path)
	}
	e.sessions = e.sessions.without(id)
	e.result.Ended = append(e.result.Ended, id)
	return nil
}

// transaction carries out ops.
func (e *edit) transaction(ops []coordination.Op) error {
	if _, ok := e.sessions.get(e.session); !ok {
		return coordination.ErrSessionLost
	}
	e.result.Ops = make([]coordination.OpResult, len(ops))
	for i, op := range ops {
		result, err := e.operation(op)
		if err != nil {
			return &coordination.TxnError{Index: i, Err: err}
		}
		e.result.Ops[i] = result
	}
	return nil
}

// operation carries out one operation.
func (e *edit) operation(op coordination.Op) (coordination.OpResult, error) {
	switch op.Kind {
	case coordination.OpCheck:
		_, err := e.expect(op)
		return coordination.OpResult{Path: op.Path}, err
	case coordination.OpCreate:
		return e.create(op)
	case coordination.OpSet:
		return e.set(op)
	case coordination.OpDelete:
		return coordination.OpResult{Path: op.Path}, e.delete(op)
	}
	invariant.Fail("operation of kind %d reached the tree", op.Kind)
	return coordination.OpResult{}, nil
}

// expect finds the node of an operation and checks its version.
func (e *edit) expect(op coordination.Op) (*node, error) {
	n := find(e.root, op.Path)
	switch {
	case n == nil:
		return nil, coordination.ErrNoNode
	case op.Version != coordination.AnyVersion && op.Version != n.version:
		return nil, fmt.Errorf("%w: it is %d, not %d", coordination.ErrBadVersion, n.version, op.Version)
	}
	return n, nil
}

// create links a new node. The order of the checks is ZooKeeper's.
//
//	1  the parent is there            NoNode
//	2  the name is free               NodeExists
//	3  the parent is not ephemeral    NoChildrenForEphemerals
//
// creations counts what was ever created below the parent, and is never taken back: a sequential name is never
// given out twice, also when its node is gone.
func (e *edit) create(op coordination.Op) (coordination.OpResult, error) {
	parentPath, name := coordination.Split(op.Path)
	parent := find(e.root, parentPath)
	if parent == nil {
		return coordination.OpResult{}, fmt.Errorf("parent: %w", coordination.ErrNoNode)
	}
	path := op.Path
	if op.Options.Sequential {
		number := fmt.Sprintf("%010d", parent.creations)
		path, name = path+number, name+number
	}
	if _, exists := parent.children.get(name); exists || path == "/" {
		return coordination.OpResult{}, coordination.ErrNodeExists
	}
	if parent.owner != 0 {
		return coordination.OpResult{}, coordination.ErrNoChildrenForEphemerals
	}
	n := &node{data: op.Data, czxid: e.zxid, mzxid: e.zxid, pzxid: e.zxid, ctime: e.time, mtime: e.time}
	if op.Options.Ephemeral {
		n.owner = e.session
		e.ownEphemeral(path, true)
	}
	changed := *parent
	changed.children = parent.children.with(name, n)
	changed.creations++
	changed.pzxid = e.zxid
	e.root = replaced(e.root, parentPath, &changed)
	e.changed(path, coordination.Created)
	return coordination.OpResult{Path: path, Stat: n.stat()}, nil
}

// set replaces a node's data.
func (e *edit) set(op coordination.Op) (coordination.OpResult, error) {
	n, err := e.expect(op)
	if err != nil {
		return coordination.OpResult{}, err
	}
	changed := *n
	changed.data, changed.mzxid, changed.mtime = op.Data, e.zxid, e.time
	changed.version++
	e.root = replaced(e.root, op.Path, &changed)
	e.changed(op.Path, coordination.Changed)
	return coordination.OpResult{Path: op.Path, Stat: changed.stat()}, nil
}

// delete removes a node without children.
func (e *edit) delete(op coordination.Op) error {
	if op.Path == "/" {
		return fmt.Errorf("%w: the root stays", coordination.ErrBadOperation)
	}
	n, err := e.expect(op)
	if err != nil {
		return err
	}
	if n.children.len() > 0 {
		return coordination.ErrNotEmpty
	}
	if n.owner != 0 {
		e.ownEphemeral(op.Path, false)
	}
	e.unlink(op.Path)
	return nil
}

// unlink takes an existing node out of its parent.
//
// The version of the parent's data does not change: a set on it that a client prepared before still applies.
func (e *edit) unlink(path string) {
	parentPath, name := coordination.Split(path)
	parent := find(e.root, parentPath)
	invariant.That(parent != nil, "the parent of a node to unlink is missing")
	changed := *parent
	changed.children = parent.children.without(name)
	changed.pzxid = e.zxid
	e.root = replaced(e.root, parentPath, &changed)
	e.changed(path, coordination.Deleted)
}

// ownEphemeral enters an ephemeral node into the table of its session, or takes it out. A node can be
// deleted by another session than its owner's.
func (e *edit) ownEphemeral(path string, owned bool) {
	id := e.session
	if !owned {
		id = find(e.root, path).owner
	}
	s, ok := e.sessions.get(id)
	invariant.That(ok, "an ephemeral node has no session")
	changed := *s
	if owned {
		changed.ephemerals = s.ephemerals.with(path, struct{}{})
	} else {
		changed.ephemerals = s.ephemerals.without(path)
	}
	e.sessions = e.sessions.with(id, &changed)
}

// changed notes a change for the watches.
func (e *edit) changed(path string, kind coordination.EventKind) {
	e.result.Changes = append(e.result.Changes, Change{Path: path, Kind: kind})
}
