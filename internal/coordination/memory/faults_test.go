package memory

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

var ctx = context.Background()

// open opens a session of a store.
func open(t *testing.T, store *Store) coordination.Session {
	t.Helper()
	s, err := store.Open(ctx, coordination.SessionOptions{Timeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bubble runs a test with a store in virtual time.
func bubble(t *testing.T, run func(t *testing.T, store *Store)) {
	synctest.Test(t, func(t *testing.T) {
		store := New(Options{})
		defer store.Close()
		run(t, store)
	})
}

func create(s coordination.Session, path string) error {
	_, _, err := s.Create(ctx, path, nil, coordination.CreateOptions{})
	return err
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// nextTxn lets one transaction meet a fault.
func nextTxn(store *Store, fault Fault) {
	done := false
	store.Inject(func(op Operation) Fault {
		if op.Name != "txn" || done {
			return Fault{}
		}
		done = true
		return fault
	})
}

func TestOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s := open(t, store)
		for i, c := range []struct {
			outcome Outcome
			want    error
			applied bool
		}{
			{NotSent, coordination.ErrNotSent, false},
			{RequestLost, coordination.ErrUnknownOutcome, false},
			{AnswerLost, coordination.ErrUnknownOutcome, true},
			{Answered, nil, true},
		} {
			path := "/n" + strconv.Itoa(i)
			nextTxn(store, Fault{Outcome: c.outcome})
			wants(t, create(s, path), c.want)
			if _, there, _ := s.Exists(ctx, path); there != c.applied {
				t.Errorf("outcome %d: applied %v", c.outcome, there)
			}
		}
		store.Inject(func(Operation) Fault { return Fault{Outcome: AnswerLost} })
		_, _, err := s.Get(ctx, "/")
		wants(t, err, coordination.ErrNotSent)
	})
}

// TestSlowWrite takes effect after its caller has given up.
func TestSlowWrite(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s := open(t, store)
		nextTxn(store, Fault{Delay: 3 * time.Second})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _, err := s.Create(short, "/late", nil, coordination.CreateOptions{})
		wants(t, err, coordination.ErrUnknownOutcome)
		wants(t, err, context.DeadlineExceeded)
		if _, there, _ := s.Exists(ctx, "/late"); there {
			t.Fatal("it is there already")
		}
		time.Sleep(3 * time.Second)
		if _, there, _ := s.Exists(ctx, "/late"); !there {
			t.Fatal("it never came")
		}
	})
}

// TestSuspended cuts a session off: calls wait, the deadline nears, and the watch says Resync afterwards.
func TestSuspended(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s, other := open(t, store), open(t, store)
		<-s.States()
		w, err := s.Watch(ctx, "/", coordination.Subtree)
		wants(t, err, nil)
		store.Suspend(s.ID())
		if state := <-s.States(); state != coordination.Suspended {
			t.Fatalf("state %v", state)
		}
		deadline := s.Deadline()
		if left := time.Until(deadline); left != 6*time.Second {
			t.Fatalf("%v left", left)
		}
		wants(t, create(other, "/missed"), nil)
		time.Sleep(2 * time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _, err = s.Get(short, "/")
		wants(t, err, coordination.ErrNotSent)
		answer := make(chan error, 1)
		go func() { answer <- create(s, "/waited") }()
		synctest.Wait()
		if _, there, _ := other.Exists(ctx, "/waited"); there || s.Deadline() != deadline {
			t.Fatal("a suspended session wrote, or lives longer")
		}
		store.Resume(s.ID())
		wants(t, <-answer, nil)
		if state := <-s.States(); state != coordination.Connected {
			t.Fatalf("state %v", state)
		}
		if e := <-w.Events(); e.Kind != coordination.Resync || e.Path != "/" {
			t.Fatalf("event %v", e)
		}
		time.Sleep(time.Minute) // it no longer expires
		wants(t, s.Err(), nil)
	})
}

// TestSuspendedTooLong expires on both sides.
func TestSuspendedTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s, other := open(t, store), open(t, store)
		_, _, err := s.Create(ctx, "/e", nil, coordination.CreateOptions{Ephemeral: true})
		wants(t, err, nil)
		store.Suspend(s.ID())
		waiting := make(chan error, 1)
		go func() { waiting <- create(s, "/a") }()
		<-s.Done()
		wants(t, <-waiting, coordination.ErrSessionLost)
		wants(t, s.Err(), coordination.ErrSessionLost)
		if _, there, _ := other.Exists(ctx, "/e"); there {
			t.Fatal("the node outlived its session")
		}
	})
}

// TestExpiredUnawares expires in the store while the session is cut off: it acts on until it learns.
func TestExpiredUnawares(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s, other := open(t, store), open(t, store)
		_, _, err := s.Create(ctx, "/e", nil, coordination.CreateOptions{Ephemeral: true})
		wants(t, err, nil)
		store.Suspend(s.ID())
		store.Expire(s.ID())
		if _, there, _ := other.Exists(ctx, "/e"); there {
			t.Fatal("the node outlived its session")
		}
		wants(t, s.Err(), nil)
		store.Resume(s.ID())
		<-s.Done()
		wants(t, s.Err(), coordination.ErrSessionLost)
	})
}

// TestHeldEvents merges what happens while events are late.
func TestHeldEvents(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s, other := open(t, store), open(t, store)
		w, err := s.Watch(ctx, "/a", coordination.Node)
		wants(t, err, nil)
		store.HoldEvents(s.ID())
		for range 3 {
			wants(t, create(other, "/a"), nil)
			wants(t, other.Delete(ctx, "/a", coordination.AnyVersion), nil)
		}
		wants(t, create(other, "/a"), nil)
		select {
		case e := <-w.Events():
			t.Fatalf("event %v", e)
		case <-time.After(time.Hour):
		}
		store.ReleaseEvents(s.ID())
		if e := <-w.Events(); e != (coordination.Event{Path: "/a", Kind: coordination.Created}) {
			t.Fatalf("event %v", e)
		}
		select {
		case e := <-w.Events():
			t.Fatalf("a second event %v", e)
		case <-time.After(time.Hour):
		}
	})
}

// TestManyEvents become one Resync.
func TestManyEvents(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s, other := open(t, store), open(t, store)
		w, err := s.Watch(ctx, "/", coordination.Subtree)
		wants(t, err, nil)
		store.HoldEvents(s.ID())
		for i := range 5000 {
			wants(t, create(other, "/n"+strconv.Itoa(i)), nil)
		}
		store.ReleaseEvents(s.ID())
		if e := <-w.Events(); e.Kind != coordination.Resync {
			t.Fatalf("event %v", e)
		}
	})
}

// TestRecipesUnderUnknownOutcomes lets every transaction of a recipe in turn lose request or answer.
func TestRecipesUnderUnknownOutcomes(t *testing.T) {
	candidate := coordination.Candidate{LeaderPath: "/controller", EpochPath: "/controller_epoch"}
	for name, recipe := range map[string]func(s coordination.Session) error{
		"EnsurePath": func(s coordination.Session) error { return coordination.EnsurePath(ctx, s, "/a/b/c") },
		"CreateEphemeralChecked": func(s coordination.Session) error {
			stat, err := coordination.CreateEphemeralChecked(ctx, s, "/e", []byte("x"))
			if err == nil && (stat.EphemeralOwner != s.ID() || stat.Version != 1) {
				t.Errorf("stat %+v", stat)
			}
			return err
		},
		"Elect": func(s coordination.Session) error {
			won, ours, err := coordination.Elect(ctx, s, candidate)
			if err == nil && (!ours || won.Epoch != 1 || won.Guard.Version != 1) {
				t.Errorf("elected %v: %+v", ours, won)
			}
			return err
		},
	} {
		for _, outcome := range []Outcome{RequestLost, AnswerLost} {
			for lost := range 4 {
				bubble(t, func(t *testing.T, store *Store) {
					s, txns := open(t, store), 0
					store.Inject(func(op Operation) Fault {
						if op.Name != "txn" {
							return Fault{}
						}
						if txns++; txns-1 == lost {
							return Fault{Outcome: outcome}
						}
						return Fault{}
					})
					if err := recipe(s); err != nil {
						t.Errorf("%s, transaction %d with outcome %d: %v", name, lost, outcome, err)
					}
				})
			}
		}
	}
}

// TestBatchUnderUnknownOutcome says which operations may have happened.
func TestBatchUnderUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s := open(t, store)
		var ops []coordination.Op
		for i := range 1500 {
			ops = append(ops, coordination.Create("/n"+strconv.Itoa(i), nil, coordination.CreateOptions{}))
		}
		txns := 0
		store.Inject(func(op Operation) Fault {
			if txns++; txns == 2 {
				return Fault{Outcome: AnswerLost}
			}
			return Fault{}
		})
		results, err := coordination.BatchFenced(ctx, s, coordination.Guard{Path: "/"}, ops)
		wants(t, err, coordination.ErrUnknownOutcome)
		for i, result := range results {
			switch {
			case i < 500:
				wants(t, result.Err, nil)
			case i < 1000:
				wants(t, result.Err, coordination.ErrUnknownOutcome)
			default:
				wants(t, result.Err, coordination.ErrNotSent)
			}
		}
	})
}

// TestMirrorCatchesUp after the session was cut off.
func TestMirrorCatchesUp(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s, other := open(t, store), open(t, store)
		wants(t, create(other, "/gone"), nil)
		nodes, stop := map[string]bool{}, context.CancelFunc(nil)
		mirror, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- coordination.Mirror(mirror, s, "/", func(changes []coordination.MirrorChange) {
				for _, c := range changes {
					if delete(nodes, c.Path); !c.Deleted {
						nodes[c.Path] = true
					}
				}
			})
		}()
		synctest.Wait()
		store.Suspend(s.ID())
		wants(t, other.Delete(ctx, "/gone", 0), nil)
		wants(t, create(other, "/new"), nil)
		store.Resume(s.ID())
		synctest.Wait()
		if len(nodes) != 2 || !nodes["/"] || !nodes["/new"] {
			t.Fatalf("nodes %v", nodes)
		}
		stop()
		wants(t, <-ended, context.Canceled)
	})
}

// Mirror reads again what the store did not answer.
func TestMirrorTriesAgain(t *testing.T) { synctest.Test(t, mirrorTriesAgain) }

func mirrorTriesAgain(t *testing.T) {
	store := New(Options{})
	defer store.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := open(t, store)
	var reads atomic.Int32
	store.Inject(func(o Operation) Fault {
		if (o.Name == "get" || o.Name == "children") && reads.Add(1) <= 3 {
			return Fault{Outcome: NotSent}
		}
		return Fault{}
	})
	delivered, ended := make(chan string), make(chan error, 1)
	go func() {
		ended <- coordination.Mirror(ctx, s, "/a", func(changes []coordination.MirrorChange) {
			for _, c := range changes {
				delivered <- c.Path + string(c.Data)
			}
		})
	}()
	if _, _, err := s.Create(ctx, "/a", []byte("x"), coordination.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-delivered; got != "/ax" {
		t.Errorf("delivered %q", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
