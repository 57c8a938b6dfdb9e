package coordtest

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

var persistent = coordination.CreateOptions{}

var createCases = []testCase{
	{"persistent", func(e *env) {
		s := e.open()
		stat := e.create(s, "/a", "x")
		e.equal("version", stat.Version, int32(0))
		e.equal("owner", stat.EphemeralOwner, int64(0))
		e.equal("stat", e.holds(s, "/a", "x"), stat)
	}},
	{"nil and empty data differ", func(e *env) {
		s := e.open()
		for path, data := range map[string][]byte{"/nil": nil, "/empty": {}} {
			_, _, err := s.Create(e.ctx, path, data, persistent)
			e.ok(err)
			got, _, err := s.Get(e.ctx, path)
			e.ok(err)
			e.equal(path+" is nil", got == nil, data == nil)
			e.equal(path+" length", len(got), 0)
		}
	}},
	{"the data is copied", func(e *env) {
		s := e.open()
		data := []byte("x")
		_, _, err := s.Create(e.ctx, "/a", data, persistent)
		e.ok(err)
		data[0] = 'y'
		e.holds(s, "/a", "x")
	}},
	{"without a parent", func(e *env) {
		s := e.open()
		_, _, err := s.Create(e.ctx, "/a/b", nil, persistent)
		e.fails(err, coordination.ErrNoNode)
	}},
	{"what exists", func(e *env) {
		s := e.open()
		e.create(s, "/a", "x")
		_, _, err := s.Create(e.ctx, "/a", []byte("y"), persistent)
		e.fails(err, coordination.ErrNodeExists)
		e.holds(s, "/a", "x")
	}},
	{"the root", func(e *env) {
		s := e.open()
		_, _, err := s.Create(e.ctx, "/", nil, persistent)
		e.fails(err, coordination.ErrNodeExists)
	}},
	{"ephemeral", func(e *env) {
		s := e.open()
		e.equal("owner", e.ephemeral(s, "/a").EphemeralOwner, s.ID())
	}},
	{"below an ephemeral", func(e *env) {
		s := e.open()
		e.ephemeral(s, "/a")
		_, _, err := s.Create(e.ctx, "/a/b", nil, persistent)
		e.fails(err, coordination.ErrNoChildrenForEphemerals)
		_, _, err = s.Create(e.ctx, "/a/b", nil, coordination.CreateOptions{Ephemeral: true})
		e.fails(err, coordination.ErrNoChildrenForEphemerals)
	}},
	{"sequential", func(e *env) {
		s := e.open()
		e.create(s, "/q", "")
		e.equal("first", e.sequential(s, "/q/n-"), "/q/n-0000000000")
		e.equal("second", e.sequential(s, "/q/n-"), "/q/n-0000000001")
		e.equal("another prefix", e.sequential(s, "/q/m-"), "/q/m-0000000002")
		e.equal("no prefix", e.sequential(s, "/q/"), "/q/0000000003")
	}},
	{"sequence numbers count creations", func(e *env) {
		s := e.open()
		e.create(s, "/q", "")
		e.create(s, "/q/a", "")
		e.create(s, "/q/b", "")
		e.remove(s, "/q/a")
		e.set(s, "/q/b", "x")
		_, _, err := s.Create(e.ctx, "/q/b", nil, persistent)
		e.fails(err, coordination.ErrNodeExists)
		e.equal("number", e.sequential(s, "/q/n-"), "/q/n-0000000002")
	}},
	{"ephemeral sequential", func(e *env) {
		s := e.open()
		path, stat, err := s.Create(e.ctx, "/n-", nil,
			coordination.CreateOptions{Ephemeral: true, Sequential: true})
		e.ok(err)
		e.equal("path", path, "/n-0000000000")
		e.equal("owner", stat.EphemeralOwner, s.ID())
	}},
	{"the largest node", func(e *env) {
		s := e.open()
		data := strings.Repeat("x", e.harness.Store.Limits().MaxNodeBytes)
		e.create(s, "/a", data)
		e.holds(s, "/a", data)
		_, _, err := s.Create(e.ctx, "/b", []byte(data+"x"), persistent)
		e.fails(err, coordination.ErrTooLarge)
		e.missing(s, "/b")
	}},
}

var readCases = []testCase{
	{"a missing node", func(e *env) {
		s := e.open()
		_, _, err := s.Get(e.ctx, "/a")
		e.fails(err, coordination.ErrNoNode)
		_, _, err = s.Children(e.ctx, "/a")
		e.fails(err, coordination.ErrNoNode)
		e.missing(s, "/a")
	}},
	{"children in order", func(e *env) {
		s := e.open()
		for _, path := range []string{"/b", "/a", "/c", "/b/x", "/a-"} {
			e.create(s, path, "")
		}
		names, stat, err := s.Children(e.ctx, "/")
		e.ok(err)
		e.equal("names", names, []string{"a", "a-", "b", "c"})
		e.equal("number", stat.NumChildren, int32(4))
		e.equal("of a leaf", len(e.children(s, "/a")), 0)
	}},
	{"many", func(e *env) {
		s := e.open()
		a, b := e.create(s, "/a", "x"), e.create(s, "/b", "y")
		results, err := s.GetMany(e.ctx, []string{"/b", "/none", "/a"})
		e.ok(err)
		e.equal("number", len(results), 3)
		e.equal("first", results[0], coordination.GetResult{Data: []byte("y"), Stat: b})
		e.fails(results[1].Err, coordination.ErrNoNode)
		e.equal("third", results[2], coordination.GetResult{Data: []byte("x"), Stat: a})
	}},
	{"none of many", func(e *env) {
		results, err := e.open().GetMany(e.ctx, nil)
		e.ok(err)
		e.equal("number", len(results), 0)
	}},
	{"thousands", func(e *env) {
		s := e.open()
		var paths []string
		var ops []coordination.Op
		for i := range 2500 {
			path := "/n" + strconv.Itoa(i)
			paths = append(paths, path)
			ops = append(ops, coordination.Create(path, []byte(path), persistent))
		}
		for chunk := ops; len(chunk) > 0; chunk = chunk[500:] {
			_, err := s.Txn(e.ctx, chunk[:500]...)
			e.ok(err)
		}
		results, err := s.GetMany(e.ctx, paths)
		e.ok(err)
		for i, r := range results {
			e.ok(r.Err)
			if !bytes.Equal(r.Data, []byte(paths[i])) {
				e.Fatalf("node %d holds %q, want %q", i, r.Data, paths[i])
			}
		}
		e.equal("children", len(e.children(s, "/")), 2500)
	}},
}

var setCases = []testCase{
	{"versions rise by one", func(e *env) {
		s := e.open()
		e.create(s, "/a", "0")
		for version := range int32(3) {
			stat, err := s.Set(e.ctx, "/a", []byte("x"), version)
			e.ok(err)
			e.equal("version", stat.Version, version+1)
			e.equal("stat", e.holds(s, "/a", "x"), stat)
		}
	}},
	{"with another version", func(e *env) {
		s := e.open()
		e.create(s, "/a", "x")
		_, err := s.Set(e.ctx, "/a", []byte("y"), 1)
		e.fails(err, coordination.ErrBadVersion)
		e.equal("version", e.holds(s, "/a", "x").Version, int32(0))
	}},
	{"with any version", func(e *env) {
		s := e.open()
		e.create(s, "/a", "x")
		e.equal("version", e.set(s, "/a", "y").Version, int32(1))
	}},
	{"a missing node", func(e *env) {
		_, err := e.open().Set(e.ctx, "/a", nil, coordination.AnyVersion)
		e.fails(err, coordination.ErrNoNode)
	}},
	{"the same data counts", func(e *env) {
		s := e.open()
		before := e.create(s, "/a", "x")
		after := e.set(s, "/a", "x")
		e.equal("version", after.Version, int32(1))
		e.equal("mzxid rose", after.Mzxid > before.Mzxid, true)
		e.equal("czxid", after.Czxid, before.Czxid)
	}},
	{"the root", func(e *env) {
		s := e.open()
		e.set(s, "/", "x")
		e.holds(s, "/", "x")
	}},
	{"too much", func(e *env) {
		s := e.open()
		e.create(s, "/a", "x")
		_, err := s.Set(e.ctx, "/a", make([]byte, e.harness.Store.Limits().MaxNodeBytes+1), 0)
		e.fails(err, coordination.ErrTooLarge)
		e.holds(s, "/a", "x")
	}},
}

var deleteCases = []testCase{
	{"with its version", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.set(s, "/a", "x")
		e.ok(s.Delete(e.ctx, "/a", 1))
		e.missing(s, "/a")
	}},
	{"with another version", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.fails(s.Delete(e.ctx, "/a", 1), coordination.ErrBadVersion)
		e.stat(s, "/a")
	}},
	{"a missing node", func(e *env) {
		e.fails(e.open().Delete(e.ctx, "/a", coordination.AnyVersion), coordination.ErrNoNode)
	}},
	{"with children", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.create(s, "/a/b", "")
		e.fails(s.Delete(e.ctx, "/a", coordination.AnyVersion), coordination.ErrNotEmpty)
		e.fails(s.Delete(e.ctx, "/a", 7), coordination.ErrBadVersion)
		e.remove(s, "/a/b")
		e.remove(s, "/a")
		e.equal("children", len(e.children(s, "/")), 0)
	}},
	{"created again it is new", func(e *env) {
		s := e.open()
		first := e.create(s, "/a", "")
		e.set(s, "/a", "x")
		e.remove(s, "/a")
		second := e.create(s, "/a", "")
		e.equal("version", second.Version, int32(0))
		e.equal("czxid rose", second.Czxid > first.Czxid, true)
	}},
	{"somebody else's ephemeral", func(e *env) {
		a, b := e.open(), e.open()
		e.ephemeral(a, "/a")
		e.remove(b, "/a")
		e.create(b, "/a", "mine")
		e.ok(a.Close())
		e.sync(b)
		e.holds(b, "/a", "mine")
	}},
}

var statCases = []testCase{
	{"of a new node", func(e *env) {
		stat := e.create(e.open(), "/a", "")
		e.equal("mzxid", stat.Mzxid, stat.Czxid)
		e.equal("pzxid", stat.Pzxid, stat.Czxid)
		e.equal("cversion", stat.Cversion, int32(0))
		e.equal("children", stat.NumChildren, int32(0))
		e.equal("positive", stat.Czxid > 0, true)
	}},
	{"zxids rise over all nodes and sessions", func(e *env) {
		a, b := e.open(), e.open()
		first, second := e.create(a, "/a", ""), e.create(b, "/b", "")
		third := e.set(a, "/a", "x")
		e.equal("second", second.Czxid > first.Czxid, true)
		e.equal("third", third.Mzxid > second.Czxid, true)
	}},
	{"of a parent", func(e *env) {
		s := e.open()
		parent := e.create(s, "/a", "")
		child := e.create(s, "/a/b", "")
		after := e.stat(s, "/a")
		e.equal("pzxid", after.Pzxid, child.Czxid)
		e.equal("cversion", after.Cversion, int32(1))
		e.equal("children", after.NumChildren, int32(1))
		e.equal("version", after.Version, int32(0))
		e.equal("mzxid", after.Mzxid, parent.Mzxid)
	}},
	{"creations and deletions of children count", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.create(s, "/a/b", "")
		e.create(s, "/a/c", "")
		before := e.stat(s, "/a")
		e.remove(s, "/a/b")
		after := e.stat(s, "/a")
		e.equal("cversion", after.Cversion, int32(3))
		e.equal("pzxid rose", after.Pzxid > before.Pzxid, true)
		e.equal("children", after.NumChildren, int32(1))
	}},
	{"grandchildren and data do not count", func(e *env) {
		s := e.open()
		e.create(s, "/a", "")
		e.create(s, "/a/b", "")
		before := e.stat(s, "/a")
		e.create(s, "/a/b/c", "")
		e.set(s, "/a/b", "x")
		e.equal("stat", e.stat(s, "/a"), before)
	}},
}

var pathCases = []testCase{
	{"those that ZooKeeper refuses", func(e *env) {
		s := e.open()
		for _, path := range []string{
			"", "a", "a/b", "/a/", "//", "/a//b", "/.", "/..", "/a/.", "/a/..", "/a/./b", "/a/../b",
			"/a\x00b", "/a\x01", "/a\x1f", "/a\x7f", "/a\u0080", "/a\u009f", "/\ue000", "/\uf8ff",
			"/\ufff0", "/\U0001f600", "/\xff",
		} {
			_, _, err := s.Create(e.ctx, path, nil, persistent)
			e.fails(err, coordination.ErrBadPath)
			_, _, err = s.Get(e.ctx, path)
			e.fails(err, coordination.ErrBadPath)
			_, err = s.Watch(e.ctx, path, coordination.Node)
			e.fails(err, coordination.ErrBadPath)
		}
	}},
	{"those that it takes", func(e *env) {
		s := e.open()
		for _, path := range []string{
			"/.a", "/a.", "/...", "/a..b", "/ ", "/a b", "/ä", "/日本", "/\ufefe", "/%", "/a\u00a0",
		} {
			e.create(s, path, path)
			e.holds(s, path, path)
		}
	}},
	{"chroot", func(e *env) {
		inside, outside := e.open(), e.openWith(coordination.SessionOptions{})
		e.create(inside, "/a", "x")
		e.holds(outside, e.chroot+"/a", "x")
		e.set(outside, e.chroot, "root")
		e.sync(inside)
		e.holds(inside, "/", "root")
		e.equal("children", e.children(inside, "/"), []string{"a"})
		results, err := inside.Txn(e.ctx, coordination.Create("/a/s-", nil,
			coordination.CreateOptions{Sequential: true}))
		e.ok(err)
		e.equal("path", results[0].Path, "/a/s-0000000000")
	}},
	{"a chroot that is no path", func(e *env) {
		_, err := e.harness.Store.Open(e.ctx, coordination.SessionOptions{Chroot: "a/"})
		e.fails(err, coordination.ErrBadPath)
	}},
}
