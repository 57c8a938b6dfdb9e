package coordtest

import (
	"strconv"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

var watchCases = []testCase{
	{"a node's life", func(e *env) {
		a, b := e.open(), e.open()
		w := e.watch(a, "/a", coordination.Node)
		e.create(b, "/a", "")
		e.event(w, "/a", coordination.Created)
		e.set(b, "/a", "x")
		e.event(w, "/a", coordination.Changed)
		e.remove(b, "/a")
		e.event(w, "/a", coordination.Deleted)
		e.create(b, "/a", "")
		e.event(w, "/a", coordination.Created)
	}},
	{"one's own changes", func(e *env) {
		s := e.open()
		w := e.watch(s, "/a", coordination.Node)
		e.create(s, "/a", "")
		e.event(w, "/a", coordination.Created)
	}},
	{"a node does not tell of children or siblings", func(e *env) {
		a, b := e.open(), e.open()
		e.create(b, "/a", "")
		w := e.watch(a, "/a", coordination.Node)
		e.create(b, "/a/b", "")
		e.set(b, "/a/b", "x")
		e.create(b, "/ab", "")
		e.remove(b, "/a/b")
		e.set(b, "/a", "x")
		e.event(w, "/a", coordination.Changed)
	}},
	{"children", func(e *env) {
		a, b := e.open(), e.open()
		e.create(b, "/a", "")
		w := e.watch(a, "/a", coordination.Children)
		e.create(b, "/a/b", "")
		e.event(w, "/a", coordination.ChildrenChanged)
		e.remove(b, "/a/b")
		e.event(w, "/a", coordination.ChildrenChanged)
		e.remove(b, "/a")
		e.event(w, "/a", coordination.Deleted)
		e.create(b, "/a", "")
		e.event(w, "/a", coordination.Created)
	}},
	{"children do not tell of data or grandchildren", func(e *env) {
		a, b := e.open(), e.open()
		e.create(b, "/a", "")
		e.create(b, "/a/b", "")
		w := e.watch(a, "/a", coordination.Children)
		e.set(b, "/a", "x")
		e.set(b, "/a/b", "x")
		e.create(b, "/a/b/c", "")
		e.remove(b, "/a/b/c")
		e.remove(b, "/a/b")
		e.event(w, "/a", coordination.ChildrenChanged)
		e.sync(a)
		e.equal("children", len(e.children(a, "/a")), 0)
	}},
	{"a subtree", func(e *env) {
		a, b := e.open(), e.open()
		w := e.watch(a, "/a", coordination.Subtree)
		e.create(b, "/ab", "")
		e.create(b, "/a", "")
		e.event(w, "/a", coordination.Created)
		e.create(b, "/a/b", "")
		e.event(w, "/a/b", coordination.Created)
		e.create(b, "/a/b/c", "")
		e.event(w, "/a/b/c", coordination.Created)
		e.set(b, "/a/b/c", "x")
		e.event(w, "/a/b/c", coordination.Changed)
		e.set(b, "/a", "x")
		e.event(w, "/a", coordination.Changed)
		e.remove(b, "/a/b/c")
		e.event(w, "/a/b/c", coordination.Deleted)
	}},
	{"the root's subtree", func(e *env) {
		a, b := e.open(), e.open()
		w := e.watch(a, "/", coordination.Subtree)
		e.create(b, "/a", "")
		e.event(w, "/a", coordination.Created)
		e.set(b, "/", "x")
		e.event(w, "/", coordination.Changed)
	}},
	{"a transaction", func(e *env) {
		a, b := e.open(), e.open()
		w := e.watch(a, "/", coordination.Subtree)
		_, err := b.Txn(e.ctx, coordination.Create("/a", nil, persistent),
			coordination.Create("/b", nil, persistent))
		e.ok(err)
		e.event(w, "/a", coordination.Created)
		e.event(w, "/b", coordination.Created)
	}},
	{"a failed transaction tells nothing", func(e *env) {
		a, b := e.open(), e.open()
		w := e.watch(a, "/", coordination.Subtree)
		_, err := b.Txn(e.ctx, coordination.Create("/a", nil, persistent), coordination.Check("/none", 0))
		e.failsAt(err, 1, coordination.ErrNoNode)
		e.create(b, "/b", "")
		e.event(w, "/b", coordination.Created)
	}},
	{"ephemerals that go", func(e *env) {
		a, b := e.open(), e.open()
		e.ephemeral(b, "/e")
		node, children := e.watch(a, "/e", coordination.Node), e.watch(a, "/", coordination.Children)
		e.ok(b.Close())
		e.event(node, "/e", coordination.Deleted)
		e.event(children, "/", coordination.ChildrenChanged)
	}},
	{"two on one path", func(e *env) {
		a, b := e.open(), e.open()
		first, second := e.watch(a, "/a", coordination.Node), e.watch(a, "/a", coordination.Node)
		e.create(b, "/a", "")
		e.event(first, "/a", coordination.Created)
		e.event(second, "/a", coordination.Created)
		first.Close()
		await(e, "Events", first.Events())
		e.set(b, "/a", "x")
		e.event(second, "/a", coordination.Changed)
	}},
	{"close", func(e *env) {
		s := e.open()
		w := e.watch(s, "/a", coordination.Subtree)
		w.Close()
		w.Close()
		await(e, "Events", w.Events())
		e.create(s, "/a", "")
	}},
	{"ends with the session", func(e *env) {
		a, b := e.open(), e.open()
		w, v := e.watch(a, "/a", coordination.Node), e.watch(b, "/a", coordination.Node)
		e.ok(a.Close())
		e.harness.Expire(e.T, b)
		await(e, "Events", w.Events())
		await(e, "Events", v.Events())
	}},
	{"the last change is never missed", func(e *env) {
		a, b := e.open(), e.open()
		e.create(b, "/a", "")
		w := e.watch(a, "/a", coordination.Node)
		const last = 500
		var writing sync.WaitGroup
		defer writing.Wait() // the change is seen before whoever made it hears of it
		writing.Go(func() {
			for i := 1; i <= last; i++ {
				if _, err := b.Set(e.ctx, "/a", []byte(strconv.Itoa(i)), coordination.AnyVersion); err != nil {
					e.Errorf("set: %v", err)
				}
			}
		})
		for {
			select {
			case <-w.Events():
			case <-e.ctx.Done():
				e.Fatal("the last change gave no event")
			}
			if data, _, err := a.Get(e.ctx, "/a"); err == nil && string(data) == strconv.Itoa(last) {
				return
			}
		}
	}},
	{"a slow reader of many paths", func(e *env) {
		a, b := e.open(), e.open()
		w := e.watch(a, "/", coordination.Subtree)
		const nodes = 6000
		for from := 0; from < nodes; from += 500 {
			ops := make([]coordination.Op, 500)
			for i := range ops {
				ops[i] = coordination.Create("/n"+strconv.Itoa(from+i), nil, persistent)
			}
			_, err := b.Txn(e.ctx, ops...)
			e.ok(err)
		}
		seen := map[string]bool{}
		for len(seen) < nodes {
			select {
			case event := <-w.Events():
				if event.Kind != coordination.Resync {
					seen[event.Path] = true
					continue
				}
				e.sync(a)
				for _, name := range e.children(a, "/") {
					seen["/"+name] = true
				}
			case <-e.ctx.Done():
				e.Fatalf("heard of %d nodes, want %d", len(seen), nodes)
			}
		}
	}},
	{"an unknown mode", func(e *env) {
		_, err := e.open().Watch(e.ctx, "/", 0)
		e.fails(err, coordination.ErrBadOperation)
	}},
}
