package local

import (
	"sync"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// maxPending is how many paths may wait on one watch before they are merged into a Resync.
const maxPending = 4096

// watchIndex finds the watches that a change concerns, by mode and path as in the store.
type watchIndex map[coordination.Mode]map[string]map[*watch]struct{}

func newWatchIndex() watchIndex {
	return watchIndex{coordination.Node: {}, coordination.Children: {}, coordination.Subtree: {}}
}

// add enters a watch.
func (x watchIndex) add(w *watch) {
	set := x[w.mode][w.path]
	if set == nil {
		set = map[*watch]struct{}{}
		x[w.mode][w.path] = set
	}
	set[w] = struct{}{}
}

// remove takes a watch out.
func (x watchIndex) remove(w *watch) {
	set := x[w.mode][w.path]
	delete(set, w)
	if len(set) == 0 {
		delete(x[w.mode], w.path)
	}
}

// notify tells all watches that a change concerns.
func (x watchIndex) notify(c tree.Change) {
	for w := range x[coordination.Node][c.Path] {
		w.push(c.Path, c.Kind)
	}
	if c.Kind != coordination.Changed && len(x[coordination.Children]) > 0 {
		for w := range x[coordination.Children][c.Path] {
			w.push(c.Path, c.Kind)
		}
		parent := coordination.Parent(c.Path)
		for w := range x[coordination.Children][parent] {
			w.push(parent, coordination.ChildrenChanged)
		}
	}
	if len(x[coordination.Subtree]) == 0 {
		return
	}
	for path := c.Path; ; path = coordination.Parent(path) {
		for w := range x[coordination.Subtree][path] {
			w.push(c.Path, c.Kind)
		}
		if path == "/" {
			return
		}
	}
}

// watch is one watch of a session: a queue of dirty paths, and a goroutine that hands them to the reader.
type watch struct {
	session *Session
	path    string // as in the store
	mode    coordination.Mode
	events  chan coordination.Event
	wake    chan struct{} // holds a token when there may be something to hand out
	closed  chan struct{}
	once    sync.Once

	mu struct {
		sync.Mutex
		held    bool                          // events wait
		order   []string                      // dirty paths, oldest first
		pending map[string]coordination.Event // what is to be said about each
	}
}

// newWatch makes a watch, whose events may be held back from the start, and starts its goroutine.
func newWatch(s *Session, path string, mode coordination.Mode, held bool) *watch {
	w := &watch{
		session: s, path: path, mode: mode,
		events: make(chan coordination.Event),
		wake:   make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	w.mu.pending = map[string]coordination.Event{}
	w.mu.held = held
	s.hub.pumps.Go(w.pump)
	return w
}

// Events implements coordination.Watch.
func (w *watch) Events() <-chan coordination.Event { return w.events }

// Close implements coordination.Watch.
func (w *watch) Close() {
	w.once.Do(func() {
		w.session.dropWatch(w)
		close(w.closed)
	})
}

// pump hands out events until the watch is closed.
func (w *watch) pump() {
	defer close(w.events)
	for {
		event, ok := w.pop()
		if !ok {
			select {
			case <-w.wake:
				continue
			case <-w.closed:
				return
			}
		}
		select {
		case w.events <- event:
		case <-w.closed:
			return
		}
	}
}

// pop takes the oldest event that waits.
func (w *watch) pop() (coordination.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.held || len(w.mu.order) == 0 {
		return coordination.Event{}, false
	}
	path := w.mu.order[0]
	w.mu.order = w.mu.order[1:]
	event := w.mu.pending[path]
	delete(w.mu.pending, path)
	return event, true
}

// push says that a path of the store may differ. What was to be said about it before is replaced.
func (w *watch) push(path string, kind coordination.EventKind) {
	inner := w.session.chroot.Inner(path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.mu.pending[resyncKey]; ok {
		return
	}
	if _, ok := w.mu.pending[inner]; !ok {
		if len(w.mu.order) == maxPending {
			w.resyncLocked()
			return
		}
		w.mu.order = append(w.mu.order, inner)
	}
	w.mu.pending[inner] = coordination.Event{Path: inner, Kind: kind}
	w.signal()
}

// resyncKey stands for "everything" among the dirty paths; no path is empty.
const resyncKey = ""

// resync replaces all that waits by one Resync.
func (w *watch) resync() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resyncLocked()
}

func (w *watch) resyncLocked() {
	clear(w.mu.pending)
	w.mu.order = append(w.mu.order[:0], resyncKey)
	w.mu.pending[resyncKey] = coordination.Event{
		Path: w.session.chroot.Inner(w.path), Kind: coordination.Resync,
	}
	w.signal()
}

// hold keeps events back, or lets them go.
func (w *watch) hold(held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.held = held
	w.signal()
}

// signal leaves a token for pump.
func (w *watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
