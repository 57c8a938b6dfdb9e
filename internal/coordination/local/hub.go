// Package local serves sessions of a tree that lives in this process: reads from the newest tree without
// a lock, watches, session states. How a command is committed is the store's business, through [Backend];
// the store then publishes each new tree to the [Hub], which wakes the watches and ends the sessions.
package local

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// Backend is what a store does for its sessions.
type Backend interface {
	// Admit is called before a read of a session; it waits or fails as the store's connection would.
	Admit(ctx context.Context, s *Session, read string, path string) error
	// Sync waits until the published tree holds all that was committed before the call.
	Sync(ctx context.Context, s *Session) error
	// Commit carries out a command, for s unless it opens a session. The error is one of the
	// communication (ErrNotSent, ErrUnknownOutcome); a refusal by the tree is in the result.
	Commit(ctx context.Context, s *Session, c tree.Command) (tree.Result, error)
}

// Hub joins the published tree with the sessions of this process and their watches.
//
// Locks are taken in this order, and none is held while something is waited for: the hub's, a session's, a
// watch's. A tree is stored before its changes are told, and a watch is entered before Watch returns: so a
// reader that was told finds the change, and one that was not told will be.
//
//	Commit ──▶ store ──▶ tree.Apply ──▶ Publish: 1 current = t    reads see it
//	                                             2 notify          watches of the changed paths are told
//	                                             3 expired         sessions that it ended are told
//	                 ◀── result ──────────────── 4 the caller is answered
type Hub struct {
	backend Backend
	limits  coordination.Limits
	now     func() time.Time
	current atomic.Pointer[tree.Tree]
	pumps   sync.WaitGroup

	mu struct {
		sync.Mutex
		closed   bool
		sessions map[int64]*Session
		watches  watchIndex
	}
}

// NewHub makes a hub that serves t. now is the wall clock.
func NewHub(backend Backend, t *tree.Tree, limits coordination.Limits, now func() time.Time) *Hub {
	h := &Hub{backend: backend, limits: limits, now: now}
	h.mu.sessions = map[int64]*Session{}
	h.mu.watches = newWatchIndex()
	h.current.Store(t)
	return h
}

// Tree is the newest published tree.
func (h *Hub) Tree() *tree.Tree { return h.current.Load() }

// Publish makes t the current tree, tells the watches what changed, and ends the sessions of this process
// that the command ended; a suspended one learns it later, when the store tells it. Calls must not overlap and
// come in the order of the commands.
//
// Sessions are ended outside of the lock: ending one takes it again, to drop the watches.
func (h *Hub) Publish(t *tree.Tree, result tree.Result) {
	h.current.Store(t)
	if len(result.Changes) == 0 && len(result.Ended) == 0 {
		return
	}
	h.mu.Lock()
	for _, change := range result.Changes {
		h.mu.watches.notify(change)
	}
	var ended []*Session
	for _, id := range result.Ended {
		if s := h.mu.sessions[id]; s != nil {
			ended = append(ended, s)
		}
	}
	h.mu.Unlock()
	for _, s := range ended {
		s.expired()
	}
}

// Replace makes t the current tree without knowing what changed: every watch is told to read again, and
// sessions that t does not know end.
func (h *Hub) Replace(t *tree.Tree) {
	h.current.Store(t)
	for _, s := range h.Sessions() {
		if t.HasSession(s.id) {
			s.resync()
		} else {
			s.expired()
		}
	}
}

// Open opens a session for owner.
//
// The session is entered into the table after the store has opened it. A command that ends it in between would find
// no session to tell; but only a later life of the same node sends one, which begins when this one is over.
func (h *Hub) Open(
	ctx context.Context, owner tree.Owner, options coordination.SessionOptions,
) (*Session, error) {
	chroot, err := coordination.NewChroot(options.Chroot)
	if err != nil {
		return nil, err
	}
	if options.Timeout <= 0 {
		options.Timeout = coordination.DefaultSessionTimeout
	}
	result, err := h.backend.Commit(ctx, nil, tree.Command{
		Kind: tree.OpenSession, Time: h.now().UnixMilli(),
		Owner: owner, TimeoutMillis: options.Timeout.Milliseconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	s := newSession(h, result.Session, options.Timeout, chroot)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return nil, fmt.Errorf("opening a session: the store was closed: %w", coordination.ErrUnknownOutcome)
	}
	h.mu.sessions[s.id] = s
	return s, nil
}

// Session is the session of this process with that id; nil if there is none or it has ended.
func (h *Hub) Session(id int64) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.sessions[id]
}

// Sessions are the sessions of this process that have not ended.
func (h *Hub) Sessions() []*Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	sessions := make([]*Session, 0, len(h.mu.sessions))
	for _, s := range h.mu.sessions {
		sessions = append(sessions, s)
	}
	return sessions
}

// Close ends all sessions in this process, without a word to the store, and waits until their watches
// are closed.
func (h *Hub) Close() {
	h.mu.Lock()
	h.mu.closed = true
	h.mu.Unlock()
	for _, s := range h.Sessions() {
		s.End(fmt.Errorf("the store was closed: %w", coordination.ErrSessionLost))
	}
	h.pumps.Wait()
}

// forget drops an ended session.
func (h *Hub) forget(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.sessions, s.id)
}
