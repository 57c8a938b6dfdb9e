package local

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// Session is a session of this process. Its state is steered by the store: Suspend, Resume, End.
//
//	             Suspend
//	Connected ───────────▶ Suspended
//	      │   ◀───────────     │
//	      │      Resume        │ End
//	      │ End, expired       │
//	      └──────▶ Lost ◀──────┘
//
//	             a call             an event of a watch
//	Connected    goes on            delivered
//	Suspended    waits (Admit)      held back, merged
//	Lost         fails with Err     none any more
//
// A suspended session may have been ended by the store already, and cannot know: it learns that when it is
// connected again, as a client does whose connection is cut. Deadline says from when on it must not be relied on.
//
// states holds the newest state only: a reader that comes late sees where the session is, not each step.
type Session struct {
	hub     *Hub
	id      int64
	timeout time.Duration
	chroot  coordination.Chroot
	states  chan coordination.State // holds the newest state
	done    chan struct{}

	mu struct {
		sync.Mutex
		state   coordination.State
		since   time.Time     // when the state was entered
		resumed chan struct{} // closed by the next Resume; nil unless suspended
		closing bool          // Close was called: the end is no loss
		held    bool          // events of watches wait
		err     error
		watches []*watch // in the order in which they were set, which is the one in which they are told
	}
}

var _ coordination.Session = (*Session)(nil)

// newSession makes a connected session.
func newSession(h *Hub, id int64, timeout time.Duration, chroot coordination.Chroot) *Session {
	s := &Session{
		hub: h, id: id, timeout: timeout, chroot: chroot,
		states: make(chan coordination.State, 1), done: make(chan struct{}),
	}
	s.enterLocked(coordination.Connected)
	return s
}

// ID implements coordination.Session.
func (s *Session) ID() int64 { return s.id }

// Timeout implements coordination.Session.
func (s *Session) Timeout() time.Duration { return s.timeout }

// States implements coordination.Session.
func (s *Session) States() <-chan coordination.State { return s.states }

// Done implements coordination.Session.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err implements coordination.Session.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.err
}

// Deadline implements coordination.Session. A connected session has its answer at any time, since the
// store is in this process.
func (s *Session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.mu.state {
	case coordination.Connected:
		return s.hub.now().Add(s.timeout)
	case coordination.Suspended:
		return s.mu.since.Add(s.timeout)
	}
	return s.mu.since
}

// Suspend cuts the session off: its calls wait, its events are held back. It returns false if the session
// is not connected.
func (s *Session) Suspend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state != coordination.Connected {
		return false
	}
	s.mu.resumed = make(chan struct{})
	for _, w := range s.mu.watches {
		w.Hold(true)
	}
	s.enterLocked(coordination.Suspended)
	return true
}

// Resume connects a suspended session again; its watches are told to read again, as after every
// reconnect.
func (s *Session) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state != coordination.Suspended {
		return
	}
	close(s.mu.resumed)
	s.mu.resumed = nil
	for _, w := range s.mu.watches {
		w.Resync()
		w.Hold(s.mu.held)
	}
	s.enterLocked(coordination.Connected)
}

// Resumed is closed when a suspended session is connected again; nil if it is not suspended.
func (s *Session) Resumed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.resumed
}

// HoldEvents keeps the events of all watches of the session back, or lets them go, merged.
func (s *Session) HoldEvents(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held = held
	for _, w := range s.mu.watches {
		w.Hold(held || s.mu.state == coordination.Suspended)
	}
}

// End ends the session in this process, because of err. Ending twice is fine: the first reason stays.
//
//	under the lock    err, state Lost, states and done closed, the watches taken out
//	outside           watches closed, which takes the hub's lock first and this one after; the table of the hub
//
// err is set before done is closed: who has seen Done reads the reason.
func (s *Session) End(err error) {
	s.mu.Lock()
	if s.mu.state == coordination.Lost {
		s.mu.Unlock()
		return
	}
	s.mu.err = err
	if s.mu.closing {
		s.mu.err = fmt.Errorf("closed: %w", coordination.ErrSessionLost)
	}
	s.enterLocked(coordination.Lost)
	close(s.states)
	close(s.done)
	watches := s.mu.watches
	s.mu.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		w.Close()
	}
	s.hub.forget(s)
}

// expired ends the session because the store did. A suspended one is cut off and cannot know yet.
func (s *Session) expired() {
	s.mu.Lock()
	suspended := s.mu.state == coordination.Suspended
	s.mu.Unlock()
	if !suspended {
		s.End(fmt.Errorf("expired: %w", coordination.ErrSessionLost))
	}
}

// resync tells all watches to read again.
func (s *Session) resync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.mu.watches {
		w.Resync()
	}
}

// enterLocked enters a state and leaves it for the reader in place of an older one.
//
// states has room for one, and only this writes to it, under mu: so the send never blocks.
func (s *Session) enterLocked(state coordination.State) {
	s.mu.state, s.mu.since = state, s.hub.now()
	select {
	case <-s.states:
	default:
	}
	s.states <- state
}

// addWatch makes a watch. The path is the store's.
//
// Both locks are held, in the hub's order: End takes the watches that are in the session's table by then and closes
// them, so none may be in the index alone.
func (s *Session) addWatch(path string, mode coordination.Mode) (*watch, error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state == coordination.Lost {
		return nil, s.mu.err
	}
	w := newWatch(s, path, mode, s.mu.held || s.mu.state == coordination.Suspended)
	s.mu.watches = append(s.mu.watches, w)
	s.hub.mu.watches.add(w)
	return w, nil
}

// dropWatch forgets a watch.
func (s *Session) dropWatch(w *watch) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.mu.watches.remove(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.watches = slices.DeleteFunc(s.mu.watches, func(o *watch) bool { return o == w })
}

// alive fails with the reason if the session has ended.
func (s *Session) alive() error {
	select {
	case <-s.done:
		return s.Err()
	default:
		return nil
	}
}

// wrap adds operation and path to an error of the tree, unless they stand there.
func wrap(op, path string, err error) error {
	var known *coordination.OpError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &coordination.OpError{Op: op, Path: path, Err: err}
}
