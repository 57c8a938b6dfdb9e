package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// Session is one session of an ensemble.
//
//	        connected                   cut, or silent for T/3
//	(new) ───────────▶ Connected ◀──────────────────────────▶ Suspended
//	                        └───▶ Lost: expired, closed, refused ◀───┘
type Session struct {
	store   *Store
	chroot  coordination.Chroot
	auth    []coordination.Auth
	servers []string // in the order in which they are tried; only run uses it

	states chan coordination.State // holds the newest state
	opened chan struct{}           // closed when the servers have given the session a number
	done   chan struct{}           // closed when it has ended
	ended  context.Context         // is over when it has ended
	stop   context.CancelFunc
	wake   chan struct{} // holds a token when the queue has something to send
	work   sync.WaitGroup

	mu struct {
		sync.Mutex
		state    coordination.State
		err      error
		id       int64
		password []byte
		timeout  time.Duration
		zxid     int64     // the newest transaction that was heard of
		heard    time.Time // when the newest request that was answered was sent
		endedAt  time.Time
		asked    bool // a server was asked for a session and may have opened one
		reason   error
		queue    []*request
		link     *link // nil where there is none
		closing  bool
		watches  registry
	}
}

var _ coordination.Session = (*Session)(nil)

// newSession makes a session that no server knows yet.
func newSession(s *Store, chroot coordination.Chroot, o coordination.SessionOptions) *Session {
	session := &Session{
		store: s, chroot: chroot, auth: o.Auth, servers: shuffled(s.options.Servers),
		states: make(chan coordination.State, 1), opened: make(chan struct{}), done: make(chan struct{}),
		wake: make(chan struct{}, 1),
	}
	session.ended, session.stop = context.WithCancel(context.Background())
	session.mu.timeout = o.Timeout
	session.mu.password = make([]byte, 16)
	session.mu.watches = registry{}
	return session
}

// ID implements coordination.Session.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.id
}

// Timeout implements coordination.Session; a server that the session moves to may grant another one.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.timeout
}

// Deadline implements coordination.Session.
func (s *Session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline := s.mu.heard.Add(s.mu.timeout)
	if s.mu.state == coordination.Lost && s.mu.endedAt.Before(deadline) {
		return s.mu.endedAt
	}
	return deadline
}

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

// alive fails with the reason if the session has ended.
func (s *Session) alive() error {
	select {
	case <-s.done:
		return s.Err()
	default:
		return nil
	}
}

// Close implements coordination.Session. Without a connection it does not wait for one.
func (s *Session) Close() error {
	s.mu.Lock()
	first := !s.mu.closing && s.mu.state != coordination.Lost
	s.mu.closing = true
	connected, patience := s.mu.link != nil, s.mu.timeout/3
	s.mu.Unlock()
	var err error
	switch {
	case !first:
	case !connected:
		err = fmt.Errorf("closing session %#x: %w: there is no connection", s.ID(), coordination.ErrNotSent)
	default:
		// A server may hang up before its answer is out. Asked again, over the next connection, it says that the
		// session has expired.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err = s.call(ctx, jute.OpCloseSession, nil, true); errors.Is(err, coordination.ErrSessionLost) {
			err = nil
		} else if err != nil {
			err = fmt.Errorf("closing session %#x: %w", s.ID(), err)
		}
	}
	s.end(errClosed())
	s.work.Wait()
	return err
}

// giveUp ends a session that was not opened in time, and tells whether a server may have opened it, and what
// stood in the way.
func (s *Session) giveUp() (outcome, reason error) {
	s.mu.Lock()
	s.mu.closing = true
	outcome, reason = coordination.ErrNotSent, s.mu.reason
	if s.mu.asked {
		outcome = coordination.ErrUnknownOutcome
	}
	s.mu.Unlock()
	if reason == nil {
		reason = context.DeadlineExceeded
	}
	s.end(errClosed())
	s.work.Wait()
	return outcome, reason
}

// end ends the session because of err. Ending twice is fine: the first reason stays.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.mu.state == coordination.Lost {
		s.mu.Unlock()
		return
	}
	closing := s.mu.closing
	if closing {
		err = errClosed()
	}
	s.mu.err, s.mu.endedAt = err, time.Now()
	s.enterLocked(coordination.Lost)
	close(s.states)
	for _, r := range s.mu.queue {
		r.finish(nil, err)
	}
	s.mu.queue = nil
	watches, l := s.mu.watches, s.mu.link
	s.mu.watches = nil
	close(s.done)
	s.mu.Unlock()
	s.stop()
	if l != nil {
		l.fail(err)
	}
	for _, point := range watches {
		for w := range point.watches {
			w.Close()
		}
	}
	level := slog.LevelWarn
	if closing {
		level = slog.LevelDebug
	}
	s.store.options.Logger.Log(context.Background(), level, "zookeeper: the session has ended", "session", s.text(), "reason", err)
}

// text is the session's number as ZooKeeper prints it.
func (s *Session) text() string { return fmt.Sprintf("%#x", s.ID()) }

// enterLocked enters a state and leaves it for the reader in place of an older one.
func (s *Session) enterLocked(state coordination.State) {
	if s.mu.state == state {
		return
	}
	s.mu.state = state
	select {
	case <-s.states:
	default:
	}
	s.states <- state
}

// linked makes a connection that has logged in the one that requests go over. It fails where the session has
// ended meanwhile.
func (s *Session) linked(l *link) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state == coordination.Lost {
		return s.mu.err
	}
	s.mu.link = l
	s.enterLocked(coordination.Connected)
	for _, point := range s.mu.watches {
		for w := range point.watches {
			w.Resync()
		}
	}
	select {
	case <-s.opened:
	default:
		close(s.opened)
	}
	s.signal()
	return nil
}

// unlinked takes a broken connection out of use, and reports whether that is a surprise.
func (s *Session) unlinked(l *link, reason error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.link = nil
	if s.mu.state == coordination.Lost {
		for _, r := range l.flying {
			err := fmt.Errorf("%w: %s", coordination.ErrUnknownOutcome, s.mu.err.Error())
			if r.read {
				err = s.mu.err
			}
			r.finish(nil, err)
		}
		return false
	}
	s.requeue(l.flying, reason)
	s.enterLocked(coordination.Suspended)
	return !s.mu.closing
}

// heardLocked notes that a request was answered that was sent at a time: the servers have counted the session
// as alive since then, at least.
func (s *Session) heardLocked(sent time.Time) {
	if sent.After(s.mu.heard) {
		s.mu.heard = sent
	}
}
