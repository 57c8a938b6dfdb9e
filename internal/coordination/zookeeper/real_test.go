package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
)

// bounded is a context that ends long after everything should have happened.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// own starts a server of the test's own.
func own(t testing.TB, o zktest.Options) *zktest.Server {
	t.Helper()
	server(t)
	o.Dir = t.TempDir()
	s, err := zktest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// await takes events of a watch until one has the kind.
func await(t testing.TB, w coordination.Watch, kind coordination.EventKind) {
	t.Helper()
	ctx := bounded(t)
	for {
		select {
		case e, ok := <-w.Events():
			if !ok {
				t.Fatal("the watch has ended")
			}
			if e.Kind == kind {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no event %v", kind)
		}
	}
}

// unique is a path that no other test, and no other run, has.
func unique(name string) string { return fmt.Sprintf("/%s-%016x", name, rand.Uint64()) }

// awaitState waits until a session enters a state.
func awaitState(t testing.TB, s *Session, want coordination.State) {
	t.Helper()
	ctx := bounded(t)
	for {
		select {
		case state := <-s.States():
			if state == want {
				return
			}
		case <-ctx.Done():
			t.Fatalf("the session is not %v", want)
		}
	}
}

func create(t testing.TB, s *Session, path string, o coordination.CreateOptions) coordination.Stat {
	t.Helper()
	_, stat, err := s.Create(bounded(t), path, []byte("x"), o)
	if err != nil {
		t.Fatal(err)
	}
	return stat
}

func watchOn(t testing.TB, s *Session, path string, mode coordination.Mode) coordination.Watch {
	t.Helper()
	w, err := s.Watch(bounded(t), path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// A session that is not heard of expires, without anybody's help; until it hears of that, it is suspended.
func TestExpiry(t *testing.T) {
	address := server(t).Address
	n := &network{}
	victim, observer := openSession(t, storeOn(n, address), 2*time.Second), openSession(t, storeOn(nil, address), 0)
	path := unique("expiring")
	create(t, victim, path, coordination.CreateOptions{Ephemeral: true})
	gone := watchOn(t, observer, path, coordination.Node)
	n.block()
	await(t, gone, coordination.Deleted)
	if d := victim.Deadline(); d.After(time.Now()) {
		t.Errorf("the server has expired the session %v before its own deadline", time.Until(d))
	}
	awaitState(t, victim, coordination.Suspended)
	if err := victim.Err(); err != nil {
		t.Errorf("it cannot know yet: %v", err)
	}
	n.unblock()
	<-victim.Done()
	if err := victim.Err(); !errors.Is(err, coordination.ErrSessionLost) {
		t.Errorf("err %v", err)
	}
}

// A server that is away for longer than a session's time, and comes back, has not forgotten the session: its
// ephemeral nodes stay, and its watches are told to read again.
func TestOutageLongerThanSession(t *testing.T) {
	zk := own(t, zktest.Options{})
	s := openSession(t, storeOn(nil, zk.Address), 8*time.Second) // within it the session is back, on a busy machine too
	stat := create(t, s, "/mine", coordination.CreateOptions{Ephemeral: true})
	w := watchOn(t, s, "/", coordination.Subtree)
	zk.Kill()
	awaitState(t, s, coordination.Suspended)
	<-time.After(time.Until(s.Deadline()) + time.Second)
	if err := zk.Restart(); err != nil {
		t.Fatal(err)
	}
	await(t, w, coordination.Resync)
	after, ok, err := s.Exists(bounded(t), "/mine")
	if err != nil || !ok || after != stat {
		t.Fatalf("%+v, %v, %v; want %+v", after, ok, err, stat)
	}
	if !s.Deadline().After(time.Now()) {
		t.Error("the session is connected, and its deadline has passed")
	}
	create(t, s, "/later", coordination.CreateOptions{})
	await(t, w, coordination.Created)
}

// Events that were missed during a short cut are made up for; those after it come as before.
func TestWatchesSurviveCuts(t *testing.T) {
	address := server(t).Address
	n := &network{}
	s, other := openSession(t, storeOn(n, address), 5*time.Second), openSession(t, storeOn(nil, address), 0)
	root := unique("cuts")
	create(t, other, root, coordination.CreateOptions{})
	var watches []coordination.Watch
	for i := range 1500 {
		path := fmt.Sprintf("%s/%04d-%s", root, i, strings.Repeat("long", 40))
		watches = append(watches, watchOn(t, s, path, coordination.Node))
	}
	tree := watchOn(t, s, root, coordination.Subtree)
	children := watchOn(t, s, root, coordination.Children)
	for range 3 {
		n.cut()
		for _, w := range append([]coordination.Watch{tree, children}, watches...) {
			await(t, w, coordination.Resync)
		}
		path := fmt.Sprintf("%s/%04d-%s", root, 777, strings.Repeat("long", 40))
		create(t, other, path, coordination.CreateOptions{})
		await(t, watches[777], coordination.Created)
		await(t, tree, coordination.Created)
		await(t, children, coordination.ChildrenChanged)
		if err := other.Delete(bounded(t), path, coordination.AnyVersion); err != nil {
			t.Fatal(err)
		}
		await(t, watches[777], coordination.Deleted)
		await(t, tree, coordination.Deleted)
	}
}

// Kinds of watches on one path do not disturb each other, in whatever order they come and go.
func TestWatchesOnOnePath(t *testing.T) {
	address := server(t).Address
	s, other := openSession(t, storeOn(nil, address), 0), openSession(t, storeOn(nil, address), 0)
	path := unique("one")
	create(t, other, path, coordination.CreateOptions{})
	modes := []coordination.Mode{coordination.Node, coordination.Children, coordination.Subtree}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		watches := map[coordination.Mode]coordination.Watch{}
		for _, i := range order {
			watches[modes[i]] = watchOn(t, s, path, modes[i])
		}
		create(t, other, path+"/child", coordination.CreateOptions{})
		await(t, watches[coordination.Children], coordination.ChildrenChanged)
		await(t, watches[coordination.Subtree], coordination.Created)
		watches[coordination.Subtree].Close()
		if err := other.Delete(bounded(t), path+"/child", coordination.AnyVersion); err != nil {
			t.Fatal(err)
		}
		await(t, watches[coordination.Children], coordination.ChildrenChanged)
		if _, err := other.Set(bounded(t), path, nil, coordination.AnyVersion); err != nil {
			t.Fatal(err)
		}
		await(t, watches[coordination.Node], coordination.Changed)
		watches[coordination.Node].Close()
		watches[coordination.Children].Close()
	}
}

// What a long chroot adds is part of the size that is checked.
func TestSizeWithChroot(t *testing.T) {
	address := server(t).Address
	root := openSession(t, storeOn(nil, address), 0)
	chroot := unique(strings.Repeat("c", 2000))
	create(t, root, chroot, coordination.CreateOptions{})
	store := storeOn(nil, address)
	s, err := store.Open(bounded(t), coordination.SessionOptions{Chroot: chroot})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	data := make([]byte, store.Limits().MaxNodeBytes)
	if _, _, err := s.Create(bounded(t), "/a", data, coordination.CreateOptions{}); !errors.Is(err, coordination.ErrTooLarge) {
		t.Fatalf("create: %v", err)
	}
	if _, _, err := s.Create(bounded(t), "/a", data[:len(data)-2000], coordination.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The servers bound what is asked for.
func TestGrantedTimeout(t *testing.T) {
	address := server(t).Address
	for asked, want := range map[time.Duration]time.Duration{
		time.Millisecond: 200 * time.Millisecond, 5 * time.Second: 5 * time.Second, time.Hour: time.Minute,
	} {
		if got := openSession(t, storeOn(nil, address), asked).Timeout(); got != want {
			t.Errorf("asked for %v, got %v, want %v", asked, got, want)
		}
	}
}

// The session moves from a server that cannot be reached to the next one.
func TestNextServer(t *testing.T) {
	address := server(t).Address
	n := &network{refused: func(a string) bool { return a != address }}
	s := openSession(t, storeOn(n, "127.0.0.1:1", "127.0.0.2:1", address), 0)
	for range 5 {
		n.cut()
		if _, _, err := s.Exists(bounded(t), "/"); err != nil {
			t.Fatal(err)
		}
	}
}

// Three servers lose the one that leads: the session moves, its ephemeral nodes stay.
func TestEnsemble(t *testing.T) {
	server(t)
	e, err := zktest.StartEnsemble(t.TempDir(), 3, zktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Kill)
	s := openSession(t, storeOn(nil, e.Addresses()...), 10*time.Second)
	stat := create(t, s, "/mine", coordination.CreateOptions{Ephemeral: true})
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	for {
		_, err := s.Set(bounded(t), "/mine", []byte("after"), coordination.AnyVersion)
		if err == nil {
			break
		}
		if !errors.Is(err, coordination.ErrUnknownOutcome) && !errors.Is(err, coordination.ErrNotSent) {
			t.Fatal(err)
		}
	}
	after, ok, err := s.Exists(bounded(t), "/mine")
	if err != nil || !ok || after.Czxid != stat.Czxid || after.EphemeralOwner != s.ID() {
		t.Fatalf("%+v, %v, %v; want %+v", after, ok, err, stat)
	}
	results, err := s.Txn(bounded(t), coordination.Create("/a", nil, coordination.CreateOptions{}),
		coordination.Set("/a", nil, 0))
	if err != nil || results[0].Stat.Czxid != results[1].Stat.Czxid {
		t.Fatalf("%+v, %v", results, err)
	}
}
