package local

import (
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// watchIndex finds the watches that a change concerns, by mode and path as in the store. They are told in the order in
// which they were set, so that two runs of a simulation do the same.
type watchIndex map[coordination.Mode]map[string][]*watch

func newWatchIndex() watchIndex {
	return watchIndex{coordination.Node: {}, coordination.Children: {}, coordination.Subtree: {}}
}

// add enters a watch.
func (x watchIndex) add(w *watch) { x[w.mode][w.path] = append(x[w.mode][w.path], w) }

// remove takes a watch out.
func (x watchIndex) remove(w *watch) {
	rest := slices.DeleteFunc(x[w.mode][w.path], func(o *watch) bool { return o == w })
	if x[w.mode][w.path] = rest; len(rest) == 0 {
		delete(x[w.mode], w.path)
	}
}

// notify tells all watches that a change concerns.
//
//	mode       a node is created or deleted      its data is set
//	Node       watches of the node               watches of the node
//	Children   watches of the node, and of       none
//	           its parent (ChildrenChanged)
//	Subtree    watches of the node and of all    the same
//	           above it, up to the root
//
// A change costs one map lookup a mode, and one a level where there are subtree watches. The hub's lock is held.
func (x watchIndex) notify(c tree.Change) {
	for _, w := range x[coordination.Node][c.Path] {
		w.push(c.Path, c.Kind)
	}
	if c.Kind != coordination.Changed && len(x[coordination.Children]) > 0 {
		for _, w := range x[coordination.Children][c.Path] {
			w.push(c.Path, c.Kind)
		}
		parent := coordination.Parent(c.Path)
		for _, w := range x[coordination.Children][parent] {
			w.push(parent, coordination.ChildrenChanged)
		}
	}
	if len(x[coordination.Subtree]) == 0 {
		return
	}
	for path := c.Path; ; path = coordination.Parent(path) {
		for _, w := range x[coordination.Subtree][path] {
			w.push(c.Path, c.Kind)
		}
		if path == "/" {
			return
		}
	}
}

// watch is one watch of a session.
// Its goroutine is [coordination.EventQueue]'s Run, from the queue to the reader; it ends with Close, and Hub.Close
// waits for it.
type watch struct {
	*coordination.EventQueue
	session *Session
	path    string // as in the store
	mode    coordination.Mode
	once    sync.Once
}

// newWatch makes a watch, whose events may be held back from the start, and starts its goroutine.
func newWatch(s *Session, path string, mode coordination.Mode, held bool) *watch {
	w := &watch{
		EventQueue: coordination.NewEventQueue(s.chroot.Inner(path), held), session: s, path: path, mode: mode,
	}
	s.hub.pumps.Go(w.Run)
	return w
}

// Close implements coordination.Watch.
func (w *watch) Close() {
	w.once.Do(func() {
		w.session.dropWatch(w)
		w.EventQueue.Close()
	})
}

// push says that a path of the store may differ.
func (w *watch) push(path string, kind coordination.EventKind) {
	w.Push(w.session.chroot.Inner(path), kind)
}
