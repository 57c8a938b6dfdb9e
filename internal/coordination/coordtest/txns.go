package coordtest

import (
	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// timeless is a Stat without the times for people, which a transaction may leave out.
func timeless(s coordination.Stat) coordination.Stat {
	s.Ctime, s.Mtime = 0, 0
	return s
}

var txnCases = []testCase{
	{"all", func(e *env) {
		s := e.open()
		e.create(s, "/old", "")
		results, err := s.Txn(e.ctx,
			coordination.Check("/old", 0),
			coordination.Create("/a", []byte("1"), persistent),
			coordination.Set("/a", []byte("2"), 0),
			coordination.Create("/a/b", nil, persistent),
			coordination.Delete("/old", 0),
		)
		e.ok(err)
		e.equal("number", len(results), 5)
		e.equal("path", results[1].Path, "/a")
		e.equal("version", results[2].Stat.Version, int32(1))
		e.equal("stat of the child", timeless(results[3].Stat), timeless(e.stat(s, "/a/b")))
		e.equal("children", e.children(s, "/"), []string{"a"})
		e.holds(s, "/a", "2")
	}},
	{"one number for all", func(e *env) {
		s := e.open()
		results, err := s.Txn(e.ctx,
			coordination.Create("/a", nil, persistent),
			coordination.Create("/b", nil, persistent),
			coordination.Set("/a", nil, 0))
		e.ok(err)
		e.equal("b", results[1].Stat.Czxid, results[0].Stat.Czxid)
		e.equal("set", results[2].Stat.Mzxid, results[0].Stat.Czxid)
		e.equal("data version of a registration", e.stat(s, "/a").Version, int32(1))
	}},
	{"none", func(e *env) {
		s := e.open()
		e.create(s, "/q", "x")
		e.create(s, "/gone", "")
		before := e.stat(s, "/q")
		_, err := s.Txn(e.ctx,
			coordination.Create("/a", nil, persistent),
			coordination.Set("/q", []byte("y"), 0),
			coordination.Create("/q/n-", nil, coordination.CreateOptions{Sequential: true, Ephemeral: true}),
			coordination.Delete("/gone", 0),
			coordination.Set("/missing", nil, 0),
			coordination.Create("/z", nil, persistent),
		)
		e.failsAt(err, 4, coordination.ErrNoNode)
		e.equal("children", e.children(s, "/"), []string{"gone", "q"})
		e.equal("stat", e.holds(s, "/q", "x"), before)
		e.equal("number", e.sequential(s, "/q/n-"), "/q/n-0000000000")
	}},
	{"every error has its index", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.create(s, "/a/b", "")
		e.ephemeral(s, "/e")
		good := coordination.Check("/a", 0)
		for _, c := range []struct {
			op   coordination.Op
			want error
		}{
			{coordination.Check("/none", 0), coordination.ErrNoNode},
			{coordination.Check("/none", coordination.AnyVersion), coordination.ErrNoNode},
			{coordination.Check("/a", 1), coordination.ErrBadVersion},
			{coordination.Create("/a", nil, persistent), coordination.ErrNodeExists},
			{coordination.Create("/none/b", nil, persistent), coordination.ErrNoNode},
			{coordination.Create("/e/b", nil, persistent), coordination.ErrNoChildrenForEphemerals},
			{coordination.Set("/a", nil, 3), coordination.ErrBadVersion},
			{coordination.Delete("/a", 0), coordination.ErrNotEmpty},
			{coordination.Delete("/none", 0), coordination.ErrNoNode},
			{coordination.Delete("a", 0), coordination.ErrBadPath},
		} {
			_, err := s.Txn(e.ctx, good, good, c.op, good)
			e.failsAt(err, 2, c.want)
		}
	}},
	{"checks", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.set(s, "/a", "")
		_, err := s.Txn(e.ctx, coordination.Check("/a", 1), coordination.Check("/", coordination.AnyVersion))
		e.ok(err)
		_, err = s.Txn(e.ctx, coordination.Check("/a", 0))
		e.failsAt(err, 0, coordination.ErrBadVersion)
	}},
	{"operations see those before them", func(e *env) {
		s := e.open()
		_, err := s.Txn(e.ctx,
			coordination.Create("/a", nil, persistent),
			coordination.Create("/a/b", nil, persistent),
			coordination.Delete("/a/b", 0),
			coordination.Delete("/a", 0),
			coordination.Create("/a", []byte("x"), persistent),
			coordination.Check("/a", 0))
		e.ok(err)
		e.holds(s, "/a", "x")
		_, err = s.Txn(e.ctx, coordination.Delete("/a", 0), coordination.Set("/a", nil, 0))
		e.failsAt(err, 1, coordination.ErrNoNode)
	}},
	{"sequential nodes", func(e *env) {
		s := e.open()
		e.create(s, "/q", "")
		sequential := coordination.CreateOptions{Sequential: true}
		results, err := s.Txn(e.ctx,
			coordination.Create("/q/n-", nil, sequential), coordination.Create("/q/n-", nil, sequential))
		e.ok(err)
		e.equal("first", results[0].Path, "/q/n-0000000000")
		e.equal("second", results[1].Path, "/q/n-0000000001")
	}},
	{"ephemeral nodes", func(e *env) {
		a, b := e.open(), e.open()
		results, err := a.Txn(e.ctx,
			coordination.Create("/a", nil, coordination.CreateOptions{Ephemeral: true}),
			coordination.Create("/b", nil, persistent))
		e.ok(err)
		e.equal("owner", results[0].Stat.EphemeralOwner, a.ID())
		e.ok(a.Close())
		e.sync(b)
		e.equal("children", e.children(b, "/"), []string{"b"})
	}},
	{"empty", func(e *env) {
		results, err := e.open().Txn(e.ctx)
		e.ok(err)
		e.equal("number", len(results), 0)
	}},
	{"too large as a whole", func(e *env) {
		s := e.open()
		limits := e.harness.Store.Limits()
		half := make([]byte, limits.MaxTxnBytes/2)
		_, err := s.Txn(e.ctx, coordination.Create("/a", half, persistent),
			coordination.Create("/b", half, persistent))
		e.failsAt(err, 1, coordination.ErrTooLarge)
		e.missing(s, "/a")
	}},
	{"500 operations", func(e *env) {
		s := e.open()
		e.create(s, "/q", "")
		ops := make([]coordination.Op, 500)
		for i := range ops {
			ops[i] = coordination.Create("/q/n-", []byte("80 bytes or so of a partition's state"),
				coordination.CreateOptions{Sequential: true})
		}
		results, err := s.Txn(e.ctx, ops...)
		e.ok(err)
		e.equal("last", results[499].Path, "/q/n-0000000499")
		e.equal("children", len(e.children(s, "/q")), 500)
	}},
	{"the root cannot be deleted", func(e *env) {
		s := e.openWith(coordination.SessionOptions{})
		e.fails(s.Delete(e.ctx, "/", coordination.AnyVersion), coordination.ErrBadOperation)
		_, err := s.Txn(e.ctx, coordination.Op{Kind: 99, Path: "/a"})
		e.failsAt(err, 0, coordination.ErrBadOperation)
	}},
}
