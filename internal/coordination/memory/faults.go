package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/local"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// Operation is a call on its way to the store.
type Operation struct {
	// Session is the caller's; 0 of a session that is being opened.
	Session int64
	// Name is "get", "exists", "children", "watch", "sync", "open", "close" or "txn", which is what every
	// single write is too.
	Name string
	// Path is what a read is for; "" of GetMany.
	Path string
	// Ops are the operations of a txn, with the store's paths.
	Ops []coordination.Op
}

// Outcome is what becomes of an operation.
type Outcome uint8

// The outcomes. For a read all but Answered mean ErrNotSent.
const (
	// Answered is the good case.
	Answered Outcome = iota
	// NotSent means that it fails with ErrNotSent and has no effect.
	NotSent
	// RequestLost means ErrUnknownOutcome, without effect.
	RequestLost
	// AnswerLost means ErrUnknownOutcome, although it took effect.
	AnswerLost
)

// Fault is what the store does to an operation.
type Fault struct {
	Outcome Outcome
	// Delay is how long the operation is on its way. A caller that stops waiting gets ErrUnknownOutcome,
	// and a write still takes effect when the time has come.
	Delay time.Duration
}

// Inject lets f decide about every operation from now on; nil ends it. f may be called concurrently and
// must not call the store.
func (s *Store) Inject(f func(Operation) Fault) {
	s.faults.Lock()
	defer s.faults.Unlock()
	s.faults.inject = f
}

// Expire ends a session in the store and removes its ephemeral nodes. A connected session knows at once,
// a suspended one when it is resumed or its time is over.
func (s *Store) Expire(session int64) {
	s.commit(tree.Command{Kind: tree.CloseSession, Session: session})
}

// Suspend cuts a session off: its calls wait, no events reach it. If it is not resumed within its timeout
// it expires.
func (s *Store) Suspend(session int64) {
	s.faults.Lock()
	defer s.faults.Unlock()
	live := s.hub.Session(session)
	if live == nil || !live.Suspend() {
		return
	}
	s.faults.timers[session] = time.AfterFunc(live.Timeout(), func() {
		s.Expire(session)
		live.End(fmt.Errorf("expired: %w", coordination.ErrSessionLost))
	})
}

// Resume connects a suspended session again: its watches get a Resync, or it learns that it expired.
func (s *Store) Resume(session int64) {
	s.faults.Lock()
	defer s.faults.Unlock()
	if timer := s.faults.timers[session]; timer != nil {
		timer.Stop()
		delete(s.faults.timers, session)
	}
	live := s.hub.Session(session)
	switch {
	case live == nil:
	case s.hub.Tree().HasSession(session):
		live.Resume()
	default:
		live.End(fmt.Errorf("expired: %w", coordination.ErrSessionLost))
	}
}

// HoldEvents keeps the events of a session's watches back until ReleaseEvents; they are merged meanwhile.
func (s *Store) HoldEvents(session int64) {
	if live := s.hub.Session(session); live != nil {
		live.HoldEvents(true)
	}
}

// ReleaseEvents lets the events of a session's watches go.
func (s *Store) ReleaseEvents(session int64) {
	if live := s.hub.Session(session); live != nil {
		live.HoldEvents(false)
	}
}

// operationOf describes a command.
func operationOf(c tree.Command) Operation {
	op := Operation{Session: c.Session, Name: "txn", Ops: c.Ops}
	switch c.Kind {
	case tree.OpenSession:
		op.Name = "open"
	case tree.CloseSession:
		op.Name = "close"
	}
	return op
}

// arrive waits while the session is cut off, and asks what shall become of the operation.
func (s *Store) arrive(ctx context.Context, session *local.Session, op Operation) (Fault, error) {
	if err := wait(ctx, 0); err != nil {
		return Fault{}, err
	}
	if session != nil {
		op.Session = session.ID()
		for resumed := session.Resumed(); resumed != nil; resumed = session.Resumed() {
			select {
			case <-resumed:
			case <-session.Done():
				return Fault{}, session.Err()
			case <-ctx.Done():
				return Fault{}, fmt.Errorf("%w: %w", coordination.ErrNotSent, ctx.Err())
			}
		}
	}
	s.faults.Lock()
	inject := s.faults.inject
	s.faults.Unlock()
	if inject == nil {
		return Fault{}, nil
	}
	return inject(op), nil
}

// wait lets time pass, unless ctx ends.
func wait(ctx context.Context, delay time.Duration) error {
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", coordination.ErrNotSent, err)
	}
	return nil
}
