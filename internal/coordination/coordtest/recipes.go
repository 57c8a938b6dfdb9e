package coordtest

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// candidate is Kafka's controller election.
var candidate = coordination.Candidate{
	LeaderPath: "/controller", LeaderData: []byte("{}"), EpochPath: "/controller_epoch",
}

var recipeCases = []testCase{
	{"EnsurePath", func(e *env) {
		s := e.open()
		e.create(s, "/a", "x")
		e.ok(coordination.EnsurePath(e.ctx, s, "/a/b/c/d"))
		e.ok(coordination.EnsurePath(e.ctx, s, "/a/b/c/d"))
		e.ok(coordination.EnsurePath(e.ctx, s, "/"))
		e.holds(s, "/a", "x")
		e.stat(s, "/a/b/c/d")
		e.fails(coordination.EnsurePath(e.ctx, s, "a"), coordination.ErrBadPath)
	}},
	{"CreateEphemeralChecked", func(e *env) {
		s := e.open()
		stat, err := coordination.CreateEphemeralChecked(e.ctx, s, "/b", []byte("x"))
		e.ok(err)
		e.equal("version", stat.Version, int32(1))
		e.equal("stat", e.holds(s, "/b", "x"), stat)
		again, err := coordination.CreateEphemeralChecked(e.ctx, s, "/b", []byte("x"))
		e.ok(err)
		e.equal("again", again, stat)
		e.create(s, "/p", "")
		_, err = coordination.CreateEphemeralChecked(e.ctx, s, "/p", nil)
		e.fails(err, coordination.ErrNodeExists)
	}},
	{"CreateEphemeralChecked waits for an older session", func(e *env) {
		a, b := e.open(), e.open()
		old := e.ephemeral(a, "/b")
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		_, err := coordination.CreateEphemeralChecked(ctx, b, "/b", nil)
		e.fails(err, context.Canceled)
		done := make(chan coordination.Stat, 1)
		go func() {
			stat, err := coordination.CreateEphemeralChecked(e.ctx, b, "/b", []byte("new"))
			if err != nil {
				e.Errorf("create: %v", err)
			}
			done <- stat
		}()
		e.harness.Expire(e.T, a)
		stat := <-done
		e.equal("owner", stat.EphemeralOwner, b.ID())
		e.equal("czxid rose", stat.Czxid > old.Czxid, true)
	}},
	{"CreateEphemeralChecked ends with its session", func(e *env) {
		a, b := e.open(), e.open()
		e.ephemeral(a, "/b")
		done := make(chan error, 1)
		go func() {
			_, err := coordination.CreateEphemeralChecked(e.ctx, b, "/b", nil)
			done <- err
		}()
		e.harness.Expire(e.T, b)
		err := <-done
		e.fails(err, coordination.ErrSessionLost)
		e.equal("says who has the node", errors.Is(err, coordination.ErrNodeExists), false)
	}},
	{"Elect", func(e *env) {
		a, b := e.open(), e.open()
		first := e.elected(a)
		e.equal("epoch", first.Epoch, int32(1))
		e.equal("guard", first.Guard, coordination.Guard{Path: "/controller_epoch", Version: 1})
		e.equal("czxid", first.Czxid, e.stat(a, "/controller").Czxid)
		_, ours, err := coordination.Elect(e.ctx, b, candidate)
		e.ok(err)
		e.equal("second is elected", ours, false)
		e.equal("again", e.elected(a), first)
		e.ok(a.Close())
		e.sync(b)
		second := e.elected(b)
		e.equal("epoch", second.Epoch, int32(2))
		e.equal("guard", second.Guard.Version, int32(2))
		e.holds(b, "/controller_epoch", "2")
	}},
	{"Elect where epoch and version differ", func(e *env) {
		s := e.open()
		e.create(s, "/controller_epoch", "41")
		won := e.elected(s)
		e.equal("epoch", won.Epoch, int32(42))
		e.equal("guard", won.Guard.Version, int32(1))
		e.set(s, "/controller_epoch", "x")
		_, _, err := coordination.Elect(e.ctx, s, candidate)
		if err == nil {
			e.Fatal("an epoch that is no number was taken")
		}
	}},
	{"Elect has one winner", func(e *env) {
		const candidates = 8
		var wg sync.WaitGroup
		var mu sync.Mutex
		winners := 0
		for range candidates {
			s := e.open()
			wg.Go(func() {
				_, ours, err := coordination.Elect(e.ctx, s, candidate)
				if err != nil {
					e.Errorf("elect: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if ours {
					winners++
				}
			})
		}
		wg.Wait()
		e.equal("winners", winners, 1)
	}},
	{"FencedTxn", func(e *env) {
		a, b := e.open(), e.open()
		old := e.elected(a)
		results, err := coordination.FencedTxn(e.ctx, a, old.Guard, coordination.Create("/a", nil, persistent))
		e.ok(err)
		e.equal("results", len(results), 1)
		e.equal("path", results[0].Path, "/a")
		_, err = coordination.FencedTxn(e.ctx, a, old.Guard,
			coordination.Check("/a", 0), coordination.Create("/a", nil, persistent))
		e.failsAt(err, 1, coordination.ErrNodeExists)
		e.remove(b, "/controller")
		e.elected(b)
		_, err = coordination.FencedTxn(e.ctx, a, old.Guard, coordination.Set("/a", nil, 0))
		e.fails(err, coordination.ErrFenced)
		_, err = coordination.FencedTxn(e.ctx, a, coordination.Guard{Path: "/none"})
		e.fails(err, coordination.ErrFenced)
		e.equal("version", e.stat(b, "/a").Version, int32(0))
	}},
	{"BatchFenced", func(e *env) {
		s := e.open()
		guard := e.elected(s).Guard
		var ops []coordination.Op
		for i := range 1203 {
			ops = append(ops, coordination.Create("/n"+strconv.Itoa(i), nil, persistent))
		}
		for _, refused := range []int{0, 1, 499, 500, 777, 1202} {
			e.create(s, ops[refused].Path, "before")
		}
		results, err := coordination.BatchFenced(e.ctx, s, guard, ops)
		e.ok(err)
		for i, result := range results {
			switch i {
			case 0, 1, 499, 500, 777, 1202:
				e.fails(result.Err, coordination.ErrNodeExists)
			default:
				e.ok(result.Err)
				e.equal("path", result.Result.Path, ops[i].Path)
			}
		}
		e.equal("children", len(e.children(s, "/")), 1205)
	}},
	{"BatchFenced of large nodes", func(e *env) {
		s := e.open()
		guard := e.elected(s).Guard
		data := make([]byte, e.harness.Store.Limits().MaxNodeBytes/3)
		var ops []coordination.Op
		for i := range 7 {
			ops = append(ops, coordination.Create("/n"+strconv.Itoa(i), data, persistent))
		}
		results, err := coordination.BatchFenced(e.ctx, s, guard, ops)
		e.ok(err)
		for _, result := range results {
			e.ok(result.Err)
		}
	}},
	{"BatchFenced when fenced", func(e *env) {
		s := e.open()
		results, err := coordination.BatchFenced(e.ctx, s, coordination.Guard{Path: "/", Version: 9},
			[]coordination.Op{coordination.Create("/a", nil, persistent)})
		e.fails(err, coordination.ErrFenced)
		e.fails(results[0].Err, coordination.ErrNotSent)
		e.missing(s, "/a")
	}},
	{"Mirror", mirrored},
}

// elected runs for leadership and demands to win.
func (e *env) elected(s coordination.Session) coordination.Leadership {
	e.Helper()
	won, ours, err := coordination.Elect(e.ctx, s, candidate)
	e.ok(err)
	e.equal("elected", ours, true)
	return won
}

// mirrored keeps a copy while the subtree changes, until both are the same.
func mirrored(e *env) {
	a, b := e.open(), e.open()
	e.create(b, "/m", "root")
	e.create(b, "/m/gone", "")
	ctx, stop := context.WithCancel(e.ctx)
	copies, ended := make(chan map[string]string), make(chan error, 1)
	go func() { ended <- mirrorTo(ctx, a, "/m", copies) }()
	e.equal("at first", <-copies, map[string]string{"/m": "root", "/m/gone": ""})
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		_, err := b.Txn(e.ctx,
			coordination.Create("/m/a", nil, persistent), coordination.Create("/m/a/b", []byte("2"), persistent),
			coordination.Delete("/m/gone", 0), coordination.Create("/outside", nil, persistent))
		if err == nil {
			_, err = b.Txn(e.ctx, coordination.Set("/m/a", []byte("1"), 0),
				coordination.Set("/m", []byte("changed"), 0), coordination.Create("/m/c", nil, persistent))
		}
		if err != nil {
			e.Errorf("txn: %v", err)
		}
	})
	want := map[string]string{"/m": "changed", "/m/a": "1", "/m/a/b": "2", "/m/c": ""}
	for got := map[string]string(nil); !maps.Equal(got, want); {
		select {
		case got = <-copies:
		case <-e.ctx.Done():
			e.Fatalf("the copy is %v, want %v", got, want)
		}
	}
	stop()
	e.fails(<-ended, context.Canceled)
}

// mirrorTo sends a copy of a subtree after every delivery.
func mirrorTo(ctx context.Context, s coordination.Session, path string, copies chan<- map[string]string) error {
	nodes := map[string]string{}
	return coordination.Mirror(ctx, s, path, func(changes []coordination.MirrorChange) {
		for _, c := range changes {
			if delete(nodes, c.Path); !c.Deleted {
				nodes[c.Path] = string(c.Data)
			}
		}
		select {
		case copies <- maps.Clone(nodes):
		case <-ctx.Done():
		}
	})
}
