package coordtest

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

var sessionCases = []testCase{
	{"starts connected", func(e *env) {
		s := e.open()
		e.equal("state", <-s.States(), coordination.Connected)
		e.equal("has a timeout", s.Timeout() > 0, true)
		e.equal("is alive", s.Deadline().After(time.Now()), true)
		e.equal("has not ended", s.Err() == nil, true)
	}},
	{"two differ", func(e *env) {
		a, b := e.open(), e.open()
		e.equal("same id", a.ID() == b.ID(), false)
		e.equal("0 is no session", a.ID() != 0 && b.ID() != 0, true)
	}},
	{"close removes ephemerals", func(e *env) {
		a, b := e.open(), e.open()
		e.create(a, "/p", "")
		e.ephemeral(a, "/e")
		e.ephemeral(a, "/p/e")
		e.ephemeral(b, "/other")
		e.ok(a.Close())
		e.sync(b)
		e.equal("children", e.children(b, "/"), []string{"other", "p"})
		e.equal("below", len(e.children(b, "/p")), 0)
		e.equal("cversion", e.stat(b, "/p").Cversion, int32(2))
	}},
	{"ends in one transaction", func(e *env) {
		a, b := e.open(), e.open()
		e.create(b, "/p", "")
		e.create(b, "/q", "")
		e.ephemeral(a, "/p/e")
		e.ephemeral(a, "/q/e")
		e.ok(a.Close())
		e.sync(b)
		e.equal("pzxid", e.stat(b, "/p").Pzxid, e.stat(b, "/q").Pzxid)
	}},
	{"after close", func(e *env) {
		s := e.open()
		e.ok(s.Close())
		await(e, "Done", s.Done())
		e.fails(s.Err(), coordination.ErrSessionLost)
		e.allLost(s)
		e.ok(s.Close())
	}},
	{"expires", func(e *env) {
		a, b := e.open(), e.open()
		e.ephemeral(a, "/e")
		w := e.watch(b, "/e", coordination.Node)
		e.harness.Expire(e.T, a)
		e.event(w, "/e", coordination.Deleted)
		e.sync(b)
		e.missing(b, "/e")
		await(e, "Done", a.Done())
		await(e, "States", a.States())
		e.fails(a.Err(), coordination.ErrSessionLost)
		e.allLost(a)
		e.equal("is not alive", a.Deadline().After(time.Now()), false)
	}},
	{"its last state is Lost", func(e *env) {
		s := e.open()
		e.harness.Expire(e.T, s)
		await(e, "Done", s.Done())
		var last coordination.State
		for state := range s.States() {
			last = state
		}
		e.equal("state", last, coordination.Lost)
	}},
	{"the next one is another", func(e *env) {
		a := e.open()
		e.ephemeral(a, "/e")
		e.harness.Expire(e.T, a)
		await(e, "Done", a.Done())
		b := e.open()
		e.sync(b)
		e.missing(b, "/e")
		e.equal("owner", e.ephemeral(b, "/e").EphemeralOwner, b.ID())
		e.equal("same id", a.ID() == b.ID(), false)
	}},
	{"sync", func(e *env) {
		a, b := e.open(), e.open()
		for i := range 20 {
			data := string(rune('a' + i))
			if i == 0 {
				e.create(a, "/a", data)
			} else {
				e.set(a, "/a", data)
			}
			e.sync(b)
			e.holds(b, "/a", data)
		}
	}},
	{"a cancelled context", func(e *env) {
		s := e.open()
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		_, _, err := s.Create(ctx, "/a", nil, persistent)
		e.fails(err, context.Canceled)
		e.fails(err, coordination.ErrNotSent)
		_, _, err = s.Get(ctx, "/a")
		e.fails(err, context.Canceled)
		e.fails(err, coordination.ErrNotSent)
		e.missing(s, "/a")
	}},
	{"writes of one session take effect in order", func(e *env) {
		a, b := e.open(), e.open()
		e.create(a, "/a", "")
		for i := range int32(50) {
			_, err := a.Set(e.ctx, "/a", nil, i)
			e.ok(err)
		}
		e.sync(b)
		e.equal("version", e.stat(b, "/a").Version, int32(50))
	}},
}

// allLost demands that every call of an ended session says so.
func (e *env) allLost(s coordination.Session) {
	e.Helper()
	_, _, err := s.Get(e.ctx, "/")
	e.fails(err, coordination.ErrSessionLost)
	_, err = s.GetMany(e.ctx, []string{"/"})
	e.fails(err, coordination.ErrSessionLost)
	_, _, err = s.Exists(e.ctx, "/")
	e.fails(err, coordination.ErrSessionLost)
	_, _, err = s.Children(e.ctx, "/")
	e.fails(err, coordination.ErrSessionLost)
	_, _, err = s.Create(e.ctx, "/lost", nil, persistent)
	e.fails(err, coordination.ErrSessionLost)
	_, err = s.Set(e.ctx, "/", nil, coordination.AnyVersion)
	e.fails(err, coordination.ErrSessionLost)
	e.fails(s.Delete(e.ctx, "/lost", coordination.AnyVersion), coordination.ErrSessionLost)
	_, err = s.Txn(e.ctx, coordination.Check("/", coordination.AnyVersion))
	e.fails(err, coordination.ErrSessionLost)
	e.fails(s.Sync(e.ctx, "/"), coordination.ErrSessionLost)
	_, err = s.Watch(e.ctx, "/", coordination.Node)
	e.fails(err, coordination.ErrSessionLost)
}
