package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/coordtest"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
)

// shared is the server that most tests use; nil where this machine has no ZooKeeper.
var shared *zktest.Server

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "zookeeper")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	shared, err = zktest.Start(zktest.Options{Dir: dir})
	switch {
	case errors.Is(err, zktest.ErrMissing):
		shared = nil
		fmt.Fprintln(os.Stderr, "NOT RUN: tests against a real ZooKeeper:", err)
	case err != nil:
		panic(err)
	default:
		defer shared.Kill()
	}
	m.Run()
}

// server is the shared server. Where there is none the test does not run, and says so.
func server(t testing.TB) *zktest.Server {
	t.Helper()
	if shared == nil {
		t.Skip("NOT RUN: this machine has no ZooKeeper") // test/run zookeeper says so too
	}
	return shared
}

// network dials, and can cut every connection that goes through it without either side hearing of it.
type network struct {
	mu      sync.Mutex
	conns   []*conn
	blocked bool
	refused func(address string) bool
}

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	refused, blocked := n.refused != nil && n.refused(address), n.blocked
	n.mu.Unlock()
	if refused {
		return nil, errors.New("refused by the test")
	}
	if blocked {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	inner, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
	return c, nil
}

// block makes a black hole of all connections, present and future.
func (n *network) block() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.blocked = true
	for _, c := range n.conns {
		c.block()
	}
}

// unblock lets new connections through. The old ones stay as they are.
func (n *network) unblock() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.blocked = false
	n.conns = nil
}

// cut closes all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Conn.Close()
	}
	n.conns = nil
}

// conn is a connection that can become a black hole: what is written is lost, and nothing comes.
type conn struct {
	net.Conn
	mu   sync.Mutex
	hole bool
}

func (c *conn) block() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hole = true
}

func (c *conn) isHole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hole
}

func (c *conn) Write(b []byte) (int, error) {
	if c.isHole() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if !c.isHole() || err != nil {
			return n, err
		}
	}
}

// open opens a store on a server through a network.
func storeOn(n *network, addresses ...string) *Store {
	o := Options{Servers: addresses, Logger: slog.New(slog.DiscardHandler)}
	if testing.Verbose() && os.Getenv("ZK_LOG") != "" {
		o.Logger = slog.Default()
	}
	if n != nil {
		o.Dial = n.dial
	}
	return New(o)
}

// openSession opens a session that ends with the test.
func openSession(t testing.TB, s *Store, timeout time.Duration) *Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	session, err := s.Open(ctx, coordination.SessionOptions{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session.(*Session)
}

// separate opens every session over a network of its own, so that one of them can be cut off.
type separate struct {
	*Store
	address  string
	mu       sync.Mutex
	networks map[int64]*network
}

func (s *separate) Open(ctx context.Context, o coordination.SessionOptions) (coordination.Session, error) {
	n := &network{}
	session, err := storeOn(n, s.address).Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.networks[session.ID()] = n
	return session, nil
}

// expire ends a session as the server does when its time is over: over another connection, in the session's
// name. The session learns it when it connects again.
func (s *separate) expire(t *testing.T, session coordination.Session) {
	t.Helper()
	victim := session.(*Session)
	s.mu.Lock()
	n := s.networks[victim.ID()]
	s.mu.Unlock()
	victim.mu.Lock()
	double := newSession(victim.store, "", coordination.SessionOptions{Timeout: victim.mu.timeout})
	double.mu.id, double.mu.password = victim.mu.id, victim.mu.password
	victim.mu.Unlock()
	double.store = storeOn(nil, s.address)
	double.work.Go(double.run)
	<-double.opened
	if err := double.Close(); err != nil {
		t.Fatal(err)
	}
	n.cut()
	<-victim.Done()
}

func TestConformance(t *testing.T) {
	defer leaktest.Verify(t, goleak.IgnoreCurrent())
	address := server(t).Address
	store := &separate{Store: storeOn(nil, address), address: address, networks: map[int64]*network{}}
	coordtest.Run(t, coordtest.Harness{Store: store, Expire: store.expire, Timeout: 10 * time.Second})
}
