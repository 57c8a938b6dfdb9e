// Package coordtest is one suite for every coordination store: what it tests is the contract, the rest is
// an accident of one store.
//
// It knows only what a client knows, so that a real ZooKeeper passes it as well. Every case works below a
// chroot of its own, so that all can share one server; a session is ended by a hook; nothing is waited
// for by time. That an event does not come is shown by a later one that comes first.
package coordtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// Harness is how the suite reaches a store.
type Harness struct {
	// Store is the store under test.
	Store coordination.Store
	// Expire makes the store end a session as if it had not been heard of for too long, and the session
	// learn it.
	Expire func(t *testing.T, s coordination.Session)
	// Timeout is asked for when sessions are opened; 0 leaves it to the store.
	Timeout time.Duration
}

// patience is how long the suite waits for what must come before it gives up.
const patience = 2 * time.Minute

// testCase is one promise.
type testCase struct {
	name string
	run  func(e *env)
}

// Run holds a store to the whole contract.
func Run(t *testing.T, h Harness) {
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Create", createCases}, {"Read", readCases}, {"Set", setCases}, {"Delete", deleteCases},
		{"Stat", statCases}, {"Txn", txnCases}, {"Session", sessionCases}, {"Watch", watchCases},
		{"Path", pathCases}, {"Recipe", recipeCases}, {"Concurrent", concurrentCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newEnv(t, h)) })
			}
		})
	}
}

// env is what one case works with: a chroot of its own and short forms that fail the test.
type env struct {
	*testing.T
	harness Harness
	chroot  string
	ctx     context.Context
}

// newEnv makes the chroot.
func newEnv(t *testing.T, h Harness) *env {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	e := &env{T: t, harness: h, ctx: ctx, chroot: fmt.Sprintf("/coordtest/%016x", rand.Uint64())}
	s := e.openWith(coordination.SessionOptions{})
	e.ok(coordination.EnsurePath(ctx, s, e.chroot))
	e.ok(s.Close())
	return e
}

// open opens a session in the chroot.
func (e *env) open() coordination.Session {
	e.Helper()
	return e.openWith(coordination.SessionOptions{Chroot: e.chroot})
}

// openWith opens a session that is closed when the test ends.
func (e *env) openWith(o coordination.SessionOptions) coordination.Session {
	e.Helper()
	o.Timeout = e.harness.Timeout
	s, err := e.harness.Store.Open(e.ctx, o)
	e.ok(err)
	e.Cleanup(func() { _ = s.Close() }) // tests that care close it themselves
	return s
}

// ok fails the test on an error.
func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("unexpected error: %v", err)
	}
}

// fails demands an error of a kind.
func (e *env) fails(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("error is %v, want %v", err, want)
	}
}

// failsAt demands that a transaction failed at an operation with an error.
func (e *env) failsAt(err error, index int, want error) {
	e.Helper()
	e.fails(err, want)
	var txn *coordination.TxnError
	if !errors.As(err, &txn) || txn.Index != index {
		e.Fatalf("error is %v, want it at operation %d", err, index)
	}
}

// equal compares what is there with what should be.
func (e *env) equal(what string, got, want any) {
	e.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		e.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// create makes a persistent node.
func (e *env) create(s coordination.Session, path, data string) coordination.Stat {
	e.Helper()
	return e.createWith(s, path, data, coordination.CreateOptions{})
}

// ephemeral makes an ephemeral node.
func (e *env) ephemeral(s coordination.Session, path string) coordination.Stat {
	e.Helper()
	return e.createWith(s, path, "", coordination.CreateOptions{Ephemeral: true})
}

// createWith makes a node whose path is known beforehand.
func (e *env) createWith(
	s coordination.Session, path, data string, o coordination.CreateOptions,
) coordination.Stat {
	e.Helper()
	created, stat, err := s.Create(e.ctx, path, []byte(data), o)
	e.ok(err)
	e.equal("created path", created, path)
	return stat
}

// sequential makes a sequential node and returns its path.
func (e *env) sequential(s coordination.Session, path string) string {
	e.Helper()
	created, _, err := s.Create(e.ctx, path, nil, coordination.CreateOptions{Sequential: true})
	e.ok(err)
	return created
}

// set writes a node whatever its version.
func (e *env) set(s coordination.Session, path, data string) coordination.Stat {
	e.Helper()
	stat, err := s.Set(e.ctx, path, []byte(data), coordination.AnyVersion)
	e.ok(err)
	return stat
}

// remove deletes a node whatever its version.
func (e *env) remove(s coordination.Session, path string) {
	e.Helper()
	e.ok(s.Delete(e.ctx, path, coordination.AnyVersion))
}

// holds demands a node's data and returns its Stat.
func (e *env) holds(s coordination.Session, path, want string) coordination.Stat {
	e.Helper()
	data, stat, err := s.Get(e.ctx, path)
	e.ok(err)
	e.equal("data of "+path, string(data), want)
	return stat
}

// missing demands that a node is not there.
func (e *env) missing(s coordination.Session, path string) {
	e.Helper()
	_, ok, err := s.Exists(e.ctx, path)
	e.ok(err)
	e.equal(path+" exists", ok, false)
}

// stat reads the Stat of a node that is there.
func (e *env) stat(s coordination.Session, path string) coordination.Stat {
	e.Helper()
	stat, ok, err := s.Exists(e.ctx, path)
	e.ok(err)
	e.equal(path+" exists", ok, true)
	return stat
}

// children lists a node's children.
func (e *env) children(s coordination.Session, path string) []string {
	e.Helper()
	names, _, err := s.Children(e.ctx, path)
	e.ok(err)
	return names
}

// sync makes s see all that was written before.
func (e *env) sync(s coordination.Session) {
	e.Helper()
	e.ok(s.Sync(e.ctx, "/"))
}

// watch observes a path.
func (e *env) watch(s coordination.Session, path string, mode coordination.Mode) coordination.Watch {
	e.Helper()
	w, err := s.Watch(e.ctx, path, mode)
	e.ok(err)
	e.Cleanup(w.Close)
	return w
}

// event demands the next event of a watch.
func (e *env) event(w coordination.Watch, path string, kind coordination.EventKind) {
	e.Helper()
	select {
	case got, ok := <-w.Events():
		e.equal("watch is open", ok, true)
		e.equal("event", got, coordination.Event{Path: path, Kind: kind})
	case <-e.ctx.Done():
		e.Fatalf("no event for %s", path)
	}
}

// await waits until a channel is closed; what comes before is dropped.
func await[T any](e *env, what string, c <-chan T) {
	e.Helper()
	for {
		select {
		case _, ok := <-c:
			if !ok {
				return
			}
		case <-e.ctx.Done():
			e.Fatalf("%s: was not closed", what)
		}
	}
}
