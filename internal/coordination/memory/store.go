// Package memory is a coordination store that keeps its tree in memory: for tests, for simulation, and for
// a broker that keeps nothing.
//
// It can be made to behave as badly as a store over a network may: sessions expire and are cut off
// ([Store.Expire], [Store.Suspend]), answers are lost, requests are slow ([Store.Inject]), events come
// late and merged ([Store.HoldEvents]).
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/local"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// Options of a store. The zero value is usable.
type Options struct {
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Limits bound nodes and transactions; zero means coordination.DefaultLimits.
	Limits coordination.Limits
	// Zxid is the number that the first transaction comes after.
	Zxid int64
}

// Store is a store in memory. Its methods may be called concurrently.
type Store struct {
	hub    *local.Hub
	limits coordination.Limits

	apply struct {
		sync.Mutex
		tree *tree.Tree
	}
	faults struct {
		sync.Mutex
		inject func(Operation) Fault
		timers map[int64]*time.Timer // expiry of suspended sessions
	}
}

var (
	_ coordination.Store = (*Store)(nil)
	_ local.Backend      = (*Store)(nil)
)

// New makes an empty store.
func New(options Options) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Limits == (coordination.Limits{}) {
		options.Limits = coordination.DefaultLimits
	}
	s := &Store{limits: options.Limits}
	s.apply.tree = tree.New(options.Zxid)
	s.faults.timers = map[int64]*time.Timer{}
	s.hub = local.NewHub(s, s.apply.tree, options.Limits, options.Now)
	return s
}

// Open implements coordination.Store.
func (s *Store) Open(
	ctx context.Context, options coordination.SessionOptions,
) (coordination.Session, error) {
	session, err := s.hub.Open(ctx, tree.Owner{}, options)
	if err != nil {
		return nil, err
	}
	return session, nil
}

// Limits implements coordination.Store.
func (s *Store) Limits() coordination.Limits { return s.limits }

// Tree is the present state, for tests that look at all of it.
func (s *Store) Tree() *tree.Tree { return s.hub.Tree() }

// Close ends all sessions in this process and waits until their watches are closed.
func (s *Store) Close() error {
	s.hub.Close()
	s.faults.Lock()
	defer s.faults.Unlock()
	for _, timer := range s.faults.timers {
		timer.Stop()
	}
	return nil
}

// Admit implements local.Backend.
func (s *Store) Admit(ctx context.Context, session *local.Session, read, path string) error {
	fault, err := s.arrive(ctx, session, Operation{Name: read, Path: path})
	if err != nil {
		return err
	}
	if err := wait(ctx, fault.Delay); err != nil {
		return err
	}
	if fault.Outcome != Answered {
		return coordination.ErrNotSent // a read has no outcome to be unsure of
	}
	return nil
}

// Sync implements local.Backend.
func (s *Store) Sync(ctx context.Context, session *local.Session) error {
	return s.Admit(ctx, session, "sync", "")
}

// Commit implements local.Backend.
func (s *Store) Commit(
	ctx context.Context, session *local.Session, c tree.Command,
) (tree.Result, error) {
	fault, err := s.arrive(ctx, session, operationOf(c))
	if err != nil {
		return tree.Result{}, err
	}
	switch fault.Outcome {
	case NotSent:
		return tree.Result{}, coordination.ErrNotSent
	case RequestLost:
		return tree.Result{}, coordination.ErrUnknownOutcome
	}
	result, err := s.deliver(ctx, c, fault.Delay)
	if err == nil && fault.Outcome == AnswerLost {
		err = coordination.ErrUnknownOutcome
	}
	return result, err
}

// deliver carries out a command after a delay. A caller that gives up meanwhile does not stop it: that is
// what an unknown outcome is.
func (s *Store) deliver(ctx context.Context, c tree.Command, delay time.Duration) (tree.Result, error) {
	if delay <= 0 {
		return s.commit(c), nil
	}
	done := make(chan tree.Result, 1)
	time.AfterFunc(delay, func() { done <- s.commit(c) })
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
		return tree.Result{}, fmt.Errorf("%w: %w", coordination.ErrUnknownOutcome, ctx.Err())
	}
}

// commit applies and publishes a command.
func (s *Store) commit(c tree.Command) tree.Result {
	s.apply.Lock()
	defer s.apply.Unlock()
	next, result := s.apply.tree.Apply(c)
	if result.Err == nil {
		s.apply.tree = next
		s.hub.Publish(next, result)
	}
	return result
}
