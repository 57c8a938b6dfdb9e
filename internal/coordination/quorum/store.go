// Package quorum is the built-in coordination store: the tree, replicated by raft. So far its one voter is
// this process, and it binds no port; what it answers is on the disk.
//
// In metadata.log.dir it keeps, beside Kafka's partition folders, which Kafka suffers files next to:
//
//	.barnabas-meta.log.<number>      raft's log, in segments (log.go, entries.go)
//	.barnabas-meta.snapshot.<index>  the tree up to an entry (snapshot.go)
//	.barnabas-meta.state             raft's term and vote (state.go)
//	.barnabas-meta.lock              held while a store is open
//
// Sessions live in this process and do not expire while it runs. Those that an earlier life of the same
// node left behind end with the first session that is opened.
package quorum

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/local"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Options of a store. FS, Dir and NodeID are required.
type Options struct {
	FS  vfs.FS
	Dir string
	// NodeID is this node's id; a directory belongs to one node.
	NodeID protocol.BrokerID
	// Logger gets what happens; nil means nothing.
	Logger *slog.Logger
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Random is where salts and the number of this life come from; nil means crypto/rand.
	Random func() uint64
	// Limits bound nodes and transactions; zero means coordination.DefaultLimits.
	Limits coordination.Limits
	// SnapshotBytes is how many bytes of commands are logged between two snapshots; 0 means 16 MiB.
	SnapshotBytes int64

	segmentBytes int64 // less than the usual in tests
}

// complete fills in what was left out.
func (o *Options) complete() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = secureRandom
	}
	if o.Limits == (coordination.Limits{}) {
		o.Limits = coordination.DefaultLimits
	}
	if o.SnapshotBytes <= 0 {
		o.SnapshotBytes = 16 << 20
	}
	if o.segmentBytes == 0 {
		o.segmentBytes = segmentBytes
	}
}

// Store is an open store. Its methods may be called concurrently.
//
//	        files, tree, raft     leadership          first session
//	Open ──────────────────▶ ... ───────────▶ open ─────────────▶ replayed
//	                                            │ disk fails, an entry cannot be read
//	                                            ▼
//	                                          failed: sessions end, no command is taken    ──▶ Close
//
// Locks: life is held for a few instructions only. The hub's locks are below it; raft calls the machine, and the
// machine the hub, without any of ours.
type Store struct {
	options Options
	owner   tree.Owner
	hub     *local.Hub
	machine *machine
	raft    *raft.Raft
	wire    *raft.InmemTransport
	files   files
	workers sync.WaitGroup

	replayed sync.Once // what was kept in memory for replaying the log is dropped

	commits sync.WaitGroup // commands that raft has not answered
	life    struct {
		sync.Mutex
		running bool  // raft has goroutines of its own
		ending  bool  // no command is taken any more
		err     error // why the store cannot go on
	}
	failed  chan struct{} // closed when the store cannot go on
	closing struct {
		sync.Once
		begun chan struct{}
		err   error
	}
}

var (
	_ coordination.Store = (*Store)(nil)
	_ local.Backend      = (*Store)(nil)
)

// Open opens the store in a directory, or makes one, and returns when it can be written to. The error is a
// *DamageError where a file is not as it was written, and wraps vfs.ErrLocked where another process has it
// open.
func Open(o Options) (*Store, error) {
	o.complete()
	s := &Store{options: o, owner: tree.Owner{Node: int32(o.NodeID), Life: o.Random()}}
	s.failed = make(chan struct{})
	s.closing.begun = make(chan struct{})
	if err := s.open(); err != nil {
		_ = s.Close() // the first error is the one to tell
		return nil, fmt.Errorf("metadata store in %s: %w", o.Dir, err)
	}
	return s, nil
}

// secureRandom is a number that nobody can guess.
func secureRandom() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// open opens the files, starts raft and waits until it leads.
func (s *Store) open() error {
	if err := s.files.open(s.options); err != nil {
		return err
	}
	t, err := s.files.readTree()
	if err != nil {
		return err
	}
	s.hub = local.NewHub(s, t, s.options.Limits, s.options.Now)
	s.machine = &machine{
		hub: s.hub, tree: t, fail: s.fail,
		compact: make(chan struct{}, 1), limit: s.options.SnapshotBytes,
	}
	if err := s.startRaft(); err != nil {
		return err
	}
	s.workers.Go(s.compactor)
	return s.awaitLeadership()
}

// Open implements coordination.Store.
func (s *Store) Open(
	ctx context.Context, options coordination.SessionOptions,
) (coordination.Session, error) {
	session, err := s.hub.Open(ctx, s.owner, options)
	if err != nil {
		return nil, err
	}
	s.replayed.Do(s.files.log.release) // every entry from before was carried out before the session's own
	return session, nil
}

// Limits implements coordination.Store.
func (s *Store) Limits() coordination.Limits { return s.options.Limits }

// Tree is the present state, for tools that look at all of it. Until the first session is open, what the log
// holds may be missing.
func (s *Store) Tree() *tree.Tree { return s.hub.Tree() }

// Failed is closed when the store cannot go on, because its disk failed; all sessions have ended then.
// Err says why.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err says why the store cannot go on; nil as long as it does.
func (s *Store) Err() error {
	s.life.Lock()
	defer s.life.Unlock()
	return s.life.err
}

// Close ends all sessions in this process, leaving their ephemeral nodes to the node's next life, and
// closes the files. A session that is closed before leaves nothing behind.
//
// The order: no new command, then the sessions, then the commands under way (raft answers those before it is shut
// down, so that nobody learns less than there is to know), a snapshot that is being written, raft, the files, and
// with them the lock of the directory.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closing.begun)
		s.life.Lock()
		s.life.ending = true
		s.life.Unlock()
		if s.hub != nil {
			s.hub.Close()
		}
		s.commits.Wait() // raft leaves some without an answer when it is shut down
		s.finishSnapshot()
		var errs []error
		if s.raft != nil {
			errs = append(errs, s.raft.Shutdown().Error())
		}
		s.workers.Wait()
		errs = append(errs, s.files.close())
		s.closing.err = errors.Join(errs...)
	})
	return s.closing.err
}

// finishSnapshot waits for a snapshot that is being written, which spares the next start; in a store that
// failed it may never be finished.
func (s *Store) finishSnapshot() {
	finished := make(chan struct{})
	go func() {
		s.workers.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-s.failed:
	}
}

// fail notes that the store cannot go on because of err; the first reason stays. Whoever composed the
// broker closes the store then.
func (s *Store) fail(err error) {
	s.life.Lock()
	if s.life.err != nil {
		s.life.Unlock()
		return
	}
	s.life.err = err
	s.life.ending = true
	s.life.Unlock()
	close(s.failed)
	s.options.Logger.Error("the metadata store cannot go on", "dir", s.options.Dir, "error", err)
	for _, session := range s.hub.Sessions() {
		session.End(fmt.Errorf("%w: the metadata store failed: %w", coordination.ErrSessionLost, err))
	}
}

// failRaft is fail for errors that raft would panic about, in a goroutine of its own, and take the whole
// process with it. Its goroutine ends here instead.
//
// Goexit runs the deferred calls of raft's goroutine and ends only that one. While raft is being made there is no such
// goroutine yet, and the error goes back to the caller.
func (s *Store) failRaft(err error) {
	s.life.Lock()
	running := s.life.running
	s.life.Unlock()
	if running {
		s.fail(err)
		runtime.Goexit()
	}
}

// begin counts a command that raft will answer; false means that none is taken any more.
//
// The count rises under life, together with the look at ending: Close sets that first, so its Wait misses no command.
func (s *Store) begin() bool {
	s.life.Lock()
	defer s.life.Unlock()
	if s.life.ending {
		return false
	}
	s.commits.Add(1)
	return true
}

// compactor takes a snapshot whenever one is due.
func (s *Store) compactor() {
	for {
		select {
		case <-s.machine.compact:
		case <-s.closing.begun:
			return
		}
		err := s.raft.Snapshot().Error()
		if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && !errors.Is(err, raft.ErrRaftShutdown) {
			s.options.Logger.Warn("the metadata log could not be compacted", "dir", s.options.Dir, "error", err)
		}
	}
}

// Admit implements local.Backend: reads need nobody's leave.
func (s *Store) Admit(ctx context.Context, _ *local.Session, _, _ string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", coordination.ErrNotSent, err)
	}
	return nil
}

// Sync implements local.Backend: with one voter everything that was answered is published.
func (s *Store) Sync(ctx context.Context, session *local.Session) error {
	return s.Admit(ctx, session, "", "")
}

// enqueueTimeout bounds how long a command waits for raft to take it, behind those before it.
const enqueueTimeout = 10 * time.Second

// outcome is raft's answer to a command.
type outcome struct {
	result tree.Result
	err    error
}

// Commit implements local.Backend.
//
// The goroutine is there since raft cannot be told that a caller has gone: the command stays on its way, its outcome
// is unknown to the caller, and Close waits for it.
func (s *Store) Commit(ctx context.Context, _ *local.Session, c tree.Command) (tree.Result, error) {
	if err := ctx.Err(); err != nil {
		return tree.Result{}, fmt.Errorf("%w: %w", coordination.ErrNotSent, err)
	}
	if !s.begin() {
		return tree.Result{}, fmt.Errorf("%w: the store is closed or failed", coordination.ErrNotSent)
	}
	done := make(chan outcome, 1)
	go func() {
		defer s.commits.Done()
		done <- s.apply(c)
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return tree.Result{}, fmt.Errorf("%w: %w", coordination.ErrUnknownOutcome, ctx.Err())
	}
}

// apply gives a command to raft and waits for the answer.
func (s *Store) apply(c tree.Command) outcome {
	future := s.raft.Apply(c.Append(nil), enqueueTimeout)
	if err := future.Error(); err != nil {
		return outcome{err: commitError(err)}
	}
	switch answer := future.Response().(type) {
	case tree.Result:
		return outcome{result: answer}
	case error:
		return outcome{err: commitError(answer)}
	}
	invariant.Fail("the state machine answered with a %T", future.Response())
	return outcome{}
}

// commitError says whether a command that raft did not answer may have happened.
//
// Not sent means that it did not and will not happen, so that it can be tried again safely. Everything that is not
// known to be so is unknown: a command that was written but not synced may come back with the next start.
func commitError(err error) error {
	var appending *appendError
	switch {
	case errors.As(err, &appending) && appending.undone, errors.Is(err, raft.ErrNotLeader),
		errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", coordination.ErrNotSent, err)
	}
	return fmt.Errorf("%w: %w", coordination.ErrUnknownOutcome, err)
}
