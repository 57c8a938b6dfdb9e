package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs a test with a server on a memory listener and the virtual clock.
func inBubble(t *testing.T, options Options, test func(t *testing.T, s *Server, l *memoryListener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := startMemory(t, options)
		defer stop()
		test(t, s, l)
	})
}

// TestThrottle is KIP-219: the answer comes first, then the connection is not read for the time; others
// are.
func TestThrottle(t *testing.T) {
	throttled := func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		r := text(name)
		if strings.HasPrefix(name, "throttled") {
			r.Throttle = 5 * time.Second
		}
		if strings.HasSuffix(name, "waits") {
			return Reply{Wait: func(context.Context) *Response { return r }}
		}
		return Reply{Response: r}
	}
	for _, request := range []string{"throttled", "throttled, waits"} {
		t.Run(request, func(t *testing.T) {
			inBubble(t, Options{Handler: throttled}, func(t *testing.T, s *Server, l *memoryListener) {
				c, other := l.dial(t, "10.0.0.2"), l.dial(t, "10.0.0.2")
				begun := time.Now()
				c.send(request)
				c.expect(request)
				go c.send("behind")
				if took := time.Since(begun); took != 0 {
					t.Errorf("the throttled answer took %v", took)
				}
				other.send("other")
				other.expect("other")
				if took := time.Since(begun); took != 0 {
					t.Errorf("another connection's answer took %v", took)
				}
				c.expect("behind")
				if took := time.Since(begun); took != 5*time.Second {
					t.Errorf("the next answer took %v", took)
				}
				if got := s.Stats().Listeners[0].Throttled; got != 5*time.Second {
					t.Errorf("%v throttled", got)
				}
				// A client that waits by itself is not delayed twice (BR-155).
				c.send(request)
				c.expect(request)
				pass(5 * time.Second)
				again := time.Now()
				c.send("behind")
				c.expect("behind")
				if took := time.Since(again); took != 0 {
					t.Errorf("an obedient client was delayed by %v", took)
				}
			})
		})
	}
}

// TestThrottleBehindWait has a throttled answer wait for its turn: nothing more is read meanwhile.
func TestThrottleBehindWait(t *testing.T) {
	handled := make(chan string, 10)
	handler := func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		handled <- name
		if name == "waits" {
			return Reply{Wait: func(context.Context) *Response {
				pass(3 * time.Second)
				return text(name)
			}}
		}
		return Reply{Response: &Response{Pieces: text(name).Pieces, Throttle: time.Second}}
	}
	inBubble(t, Options{Handler: handler}, func(t *testing.T, _ *Server, l *memoryListener) {
		c := l.dial(t, "10.0.0.2")
		begun := time.Now()
		go c.send("waits", "throttled", "behind")
		synctest.Wait()
		if len(handled) != 2 {
			t.Errorf("%d requests were looked at", len(handled))
		}
		c.expect("waits", "throttled")
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("the throttled answer took %v", took)
		}
		c.expect("behind")
		if took := time.Since(begun); took != 4*time.Second {
			t.Errorf("the answer behind it took %v", took)
		}
	})
}

// TestHold looks at nothing behind a login before that is answered (BR-157).
func TestHold(t *testing.T) {
	handled := make(chan string, 10)
	handler := func(_ context.Context, c *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		handled <- name
		if name == "login" {
			return Reply{Hold: true, Wait: func(context.Context) *Response {
				pass(time.Second)
				c.SetPrincipal("User:alice")
				return text(name)
			}}
		}
		return Reply{Response: text(c.Principal()), Hold: name == "held"}
	}
	inBubble(t, Options{Handler: handler}, func(t *testing.T, _ *Server, l *memoryListener) {
		c := l.dial(t, "10.0.0.2")
		go c.send("handshake", "login", "held", "metadata")
		synctest.Wait()
		c.expect(Anonymous)
		synctest.Wait()
		if len(handled) != 2 {
			t.Errorf("%d requests were looked at before the login", len(handled))
		}
		c.expect("login", "User:alice", "User:alice")
	})
}

// TestPipelineDepth stops reading at the depth and goes on below it.
func TestPipelineDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := 0
		turns := map[string]chan struct{}{}
		for _, name := range []string{"1", "2", "3", "4", "5"} {
			turns[name] = make(chan struct{})
		}
		handler := func(_ context.Context, _ *Conn, f *Frame) Reply {
			handled++
			name := string(f.Bytes)
			return Reply{Wait: func(context.Context) *Response { <-turns[name]; return text(name) }}
		}
		_, l, stop := startMemory(t, Options{Handler: handler, PipelineDepth: 3})
		defer stop()
		c := l.dial(t, "10.0.0.2")
		go c.send("1", "2", "3", "4", "5")
		synctest.Wait()
		if handled != 3 {
			t.Errorf("%d requests in flight", handled)
		}
		close(turns["2"])
		synctest.Wait()
		if handled != 3 {
			t.Errorf("%d requests were looked at while three are unanswered", handled)
		}
		close(turns["1"])
		c.expect("1", "2")
		synctest.Wait()
		if handled != 5 {
			t.Errorf("%d requests were looked at after two answers", handled)
		}
		for _, name := range []string{"5", "4", "3"} {
			close(turns[name])
		}
		c.expect("3", "4", "5")
	})
}

// TestIdle closes connections that do nothing, silent ones too (BR-121), and none that waits for an
// answer.
func TestIdle(t *testing.T) {
	handler := func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		if name == "long poll" {
			return Reply{Wait: func(context.Context) *Response {
				pass(25 * time.Minute)
				return text(name)
			}}
		}
		return Reply{Response: text(name)}
	}
	inBubble(t, Options{Handler: handler}, func(t *testing.T, s *Server, l *memoryListener) {
		begun := time.Now()
		silent, busy, waits := l.dial(t, "10.0.0.2"), l.dial(t, "10.0.0.2"), l.dial(t, "10.0.0.2")
		ends := make(chan time.Duration, 3)
		watch := func(c *client) { c.expectEnd(); ends <- time.Since(begun) }
		waits.send("long poll")
		go watch(silent)
		pass(9 * time.Minute)
		busy.send("x")
		busy.expect("x")
		go watch(busy)
		if got := <-ends; got != 10*time.Minute {
			t.Errorf("the silent connection ended after %v", got)
		}
		if got := <-ends; got != 19*time.Minute {
			t.Errorf("the idle connection ended after %v", got)
		}
		waits.expect("long poll")
		if got := time.Since(begun); got != 25*time.Minute {
			t.Errorf("the long poll took %v", got)
		}
		waits.expectEnd()
		if got := time.Since(begun); got != 35*time.Minute {
			t.Errorf("the connection with the long poll ended after %v", got)
		}
		synctest.Wait() // a peer sees the end before the server has counted it
		if got := s.Stats().Listeners[0].Closed["idle"]; got != 3 {
			t.Errorf("%d closed for idleness", got)
		}
	})
}

// TestNeverIdle is a timeout below zero, and the broker's own connection.
func TestNeverIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := startMemory(t, Options{Handler: echo, IdleTimeout: -1})
		defer stop()
		own, err := New(Options{Handler: echo})
		if err != nil {
			t.Fatal(err)
		}
		clients := []*client{l.dial(t, "10.0.0.2"), attach(t, s.Pipe()), attach(t, own.Pipe())}
		pass(24 * time.Hour)
		for _, c := range clients {
			c.send("x")
			c.expect("x")
		}
		if err := own.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestBudget has frames wait for one another, in order, and none fail.
func TestBudget(t *testing.T) {
	const size = 200 << 10 // a buffer of 256 KiB
	handled, release := make(chan struct{}, 10), make(chan struct{})
	handler := func(_ context.Context, _ *Conn, f *Frame) Reply {
		if len(f.Bytes) < size {
			return Reply{Response: text("small")}
		}
		handled <- struct{}{}
		f.Retain()
		return Reply{Wait: func(context.Context) *Response {
			<-release
			f.Release()
			return text("large")
		}}
	}
	s := start(t, Options{Handler: handler, Limits: Limits{InFlightBytes: 600 << 10}})
	var clients []*client
	for range 5 {
		c := dial(t, s)
		clients = append(clients, c)
		go c.send(strings.Repeat("x", size))
	}
	<-handled
	<-handled
	eventually(t, "connection that waits for the budget", func() bool {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return len(s.budget.mu.growing)+len(s.budget.mu.starting) > 0
	})
	if got := s.budget.inFlight(); got > 600<<10+256<<10 {
		t.Errorf("%d bytes in flight", got)
	}
	other := dial(t, s)
	other.send("heartbeat")
	other.expect("small")
	for range 5 {
		release <- struct{}{}
	}
	for _, c := range clients {
		c.expect("large")
	}
	eventually(t, "end of the charges", func() bool { return s.budget.inFlight() == 0 })
}

// TestBudgetLarger lets a frame pass that is larger than the whole budget.
func TestBudgetLarger(t *testing.T) {
	s := start(t, Options{Handler: echo, Limits: Limits{InFlightBytes: 1000}})
	for range 4 {
		c := dial(t, s)
		want := strings.Repeat("x", 5<<20)
		go c.send(want)
		defer c.expect(want)
	}
}
