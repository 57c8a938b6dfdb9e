package quorum

import (
	"context"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/coordtest"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// open opens a store that is closed when the test ends.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = "/data"
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// session opens a session.
func session(t testing.TB, s *Store) coordination.Session {
	t.Helper()
	session, err := s.Open(context.Background(), coordination.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// expire ends a session as if it had expired.
func expire(s *Store) func(*testing.T, coordination.Session) {
	return func(t *testing.T, session coordination.Session) {
		c := tree.Command{Kind: tree.CloseSession, Session: session.ID()}
		if _, err := s.Commit(context.Background(), nil, c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConformanceInMemory(t *testing.T) {
	s := open(t, Options{FS: vfs.NewVolatile()})
	coordtest.Run(t, coordtest.Harness{Store: s, Expire: expire(s)})
}

func TestConformanceOnDisk(t *testing.T) {
	s := open(t, Options{FS: vfs.OS(), Dir: t.TempDir(), SnapshotBytes: 64 << 10})
	coordtest.Run(t, coordtest.Harness{Store: s, Expire: expire(s)})
}
