package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/internal/leaktest"
)

// echo answers with the request.
func echo(_ context.Context, _ *Conn, f *Frame) Reply {
	return Reply{Response: text(string(f.Bytes))}
}

// text is an answer of one piece.
func text(s string) *Response { return &Response{Pieces: []Piece{{Bytes: []byte(s)}}} }

// journal is a logger whose lines a test can look at.
type journal struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// start runs a server for the test with one listener "L" on a free port, and checks at the end that it
// leaves nothing behind.
func start(t testing.TB, options Options) *Server {
	t.Helper()
	before := goleak.IgnoreCurrent()
	if options.Listeners == nil {
		options.Listeners = []Listener{{Name: "L", Address: "127.0.0.1:0", Protocol: "PLAINTEXT"}}
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		leaktest.Verify(t, before) // which waits for connections that were slow to end
		if n := s.budget.inFlight(); n != 0 {
			t.Errorf("%d bytes are still charged after the end", n)
		}
	})
	return s
}

// client is the test's end of a connection.
type client struct {
	t testing.TB
	net.Conn
}

// dial connects to the server's listener.
func dial(t testing.TB, s *Server) *client {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr("L").String())
	if err != nil {
		t.Fatal(err)
	}
	return attach(t, conn)
}

func attach(t testing.TB, conn net.Conn) *client {
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, Conn: conn}
}

// framed is s with its length.
func framed(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

// send writes one frame for each request, all in one write.
func (c *client) send(requests ...string) {
	c.t.Helper()
	var all []byte
	for _, r := range requests {
		all = append(all, framed(r)...)
	}
	if _, err := c.Write(all); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one answer.
func (c *client) receive() (string, error) {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(c, body)
	return string(body), err
}

// expect reads answers and compares them.
func (c *client) expect(answers ...string) {
	c.t.Helper()
	for i, want := range answers {
		got, err := c.receive()
		if err != nil || got != want {
			c.t.Fatalf("answer %d: %.80q, %v; want %.80q", i, got, err, want)
		}
	}
}

// expectEnd waits for the server to close the connection.
func (c *client) expectEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c); len(rest) > 0 {
		c.t.Fatalf("%q, %v instead of the end", rest, err)
	}
}

// memoryListener is a listener in memory, for tests on the virtual clock.
type memoryListener struct {
	backlog chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{backlog: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9092} }

// dial connects; the server sees the address that from says.
func (l *memoryListener) dial(t testing.TB, from string) *client {
	near, far := net.Pipe()
	l.backlog <- addressed{Conn: far, remote: from}
	return attach(t, near)
}

// addressed is a connection with a chosen remote address.
type addressed struct {
	net.Conn
	remote string
}

func (a addressed) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(a.remote), Port: 40000}
}

// startMemory runs a server on a memory listener; for use inside a bubble, with stop at its end. A test may say what the
// one listener is to do.
func startMemory(t *testing.T, options Options) (*Server, *memoryListener, func()) {
	t.Helper()
	l := newMemoryListener()
	options.Listen = func(string, string) (net.Listener, error) { return l, nil }
	if options.Listeners == nil {
		options.Listeners = []Listener{{Name: "L"}}
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s, l, func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		synctest.Wait() // a handler may give a frame back behind the end of its context
		if n := s.budget.inFlight(); n != 0 {
			t.Errorf("%d bytes are still charged after the end", n)
		}
	}
}

// closedBy waits until a connection has ended for the reason.
func closedBy(t testing.TB, s *Server, reason ending) {
	t.Helper()
	eventually(t, fmt.Sprintf("an ending by %s", reason), func() bool {
		return s.listeners[0].counters.ended[reason].Load() > 0
	})
}

// patience bounds whatever a test waits for; it is far above what anything takes.
const patience = time.Minute

// eventually polls for what other goroutines bring about and nothing signals.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	late := time.After(patience)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !cond() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("no %s within %v", what, patience)
		}
	}
}

// pass lets time pass on the virtual clock of a bubble.
func pass(d time.Duration) { <-time.After(d) }
