package coordination

import "sync"

// maxPending is how many paths may wait on one watch before they are merged into a Resync.
const maxPending = 4096

// EventQueue is the part of a Watch that all stores share: it keeps which paths may differ, each once and
// oldest first, until the reader takes them. A path that is pushed again while it waits keeps its place, with
// the newer kind; too many paths become one Resync. Its methods may be called concurrently.
type EventQueue struct {
	path   string // of Resync
	events chan Event
	wake   chan struct{} // holds a token when there may be something to hand out
	closed chan struct{}
	once   sync.Once

	mu struct {
		sync.Mutex
		held    bool             // events wait
		order   []string         // dirty paths, oldest first
		pending map[string]Event // what is to be said about each
	}
}

// NewEventQueue makes a queue for a watch on path, as the session calls it. Events may be held back from the
// start. Whoever makes it calls Run.
func NewEventQueue(path string, held bool) *EventQueue {
	q := &EventQueue{
		path: path, events: make(chan Event), wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	q.mu.pending = map[string]Event{}
	q.mu.held = held
	return q
}

// Events is Watch.Events.
func (q *EventQueue) Events() <-chan Event { return q.events }

// Close ends Run, which closes Events. Closing twice is fine.
func (q *EventQueue) Close() { q.once.Do(func() { close(q.closed) }) }

// Run hands out events until the queue is closed.
func (q *EventQueue) Run() {
	defer close(q.events)
	for {
		event, ok := q.pop()
		if !ok {
			select {
			case <-q.wake:
				continue
			case <-q.closed:
				return
			}
		}
		select {
		case q.events <- event:
		case <-q.closed:
			return
		}
	}
}

// pop takes the oldest event that waits.
func (q *EventQueue) pop() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.held || len(q.mu.order) == 0 {
		return Event{}, false
	}
	path := q.mu.order[0]
	q.mu.order = q.mu.order[1:]
	event := q.mu.pending[path]
	delete(q.mu.pending, path)
	return event, true
}

// Push says that a path, as the session calls it, may differ. What was to be said about it before is replaced.
func (q *EventQueue) Push(path string, kind EventKind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.mu.pending[resyncKey]; ok {
		return
	}
	if _, ok := q.mu.pending[path]; !ok {
		if len(q.mu.order) == maxPending {
			q.resyncLocked()
			return
		}
		q.mu.order = append(q.mu.order, path)
	}
	q.mu.pending[path] = Event{Path: path, Kind: kind}
	q.signal()
}

// resyncKey stands for "everything" among the dirty paths; no path is empty.
const resyncKey = ""

// Resync replaces all that waits by one Resync.
func (q *EventQueue) Resync() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.resyncLocked()
}

func (q *EventQueue) resyncLocked() {
	clear(q.mu.pending)
	q.mu.order = append(q.mu.order[:0], resyncKey)
	q.mu.pending[resyncKey] = Event{Path: q.path, Kind: Resync}
	q.signal()
}

// Hold keeps events back, or lets them go.
func (q *EventQueue) Hold(held bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.held = held
	q.signal()
}

// signal leaves a token for Run.
func (q *EventQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
