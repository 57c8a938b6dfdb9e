package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOrder answers waiting requests in any order; the client sees request order.
func TestOrder(t *testing.T) {
	gates := map[string]chan struct{}{"a": make(chan struct{}), "c": make(chan struct{}), "d": make(chan struct{})}
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		gate, waits := gates[name]
		if !waits {
			return Reply{Response: text(name)}
		}
		return Reply{Wait: func(context.Context) *Response {
			<-gate
			return text(name)
		}}
	}})
	c := dial(t, s)
	c.send("x", "a", "b", "c", "d", "e")
	c.expect("x")
	close(gates["d"])
	close(gates["c"])
	close(gates["a"])
	c.expect("a", "b", "c", "d", "e")
	c.send("y")
	c.expect("y")
}

// TestOrderRandom has many connections with requests that end in an order that the scheduler picks.
func TestOrderRandom(t *testing.T) {
	var n atomic.Int64
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		if n.Add(1)%3 == 0 {
			return Reply{Response: text(name)}
		}
		return Reply{Wait: func(context.Context) *Response { return text(name) }}
	}})
	const connections, requests = 8, 300
	done := make(chan struct{})
	for i := range connections {
		c := dial(t, s)
		go func() {
			for j := range requests {
				c.send(fmt.Sprint(i, " ", j))
			}
		}()
		go func() {
			defer func() { done <- struct{}{} }()
			for j := range requests {
				if got, err := c.receive(); got != fmt.Sprint(i, " ", j) {
					t.Errorf("connection %d, answer %d: %q, %v", i, j, got, err)
					return
				}
			}
		}()
	}
	for range connections {
		<-done
	}
	eventually(t, "end of the requests", func() bool { return s.Stats().Listeners[0].InFlight == 0 })
	if got := s.Stats().Listeners[0].Requests; got != connections*requests {
		t.Errorf("%d requests counted", got)
	}
}

// TestNoResponse is BR-049: acks=0 has no answer, and later answers do not wait for one.
func TestNoResponse(t *testing.T) {
	join := make(chan struct{})
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		switch name := string(f.Bytes); name {
		case "acks=0":
			return Reply{NoResponse: true}
		case "acks=0, waits":
			return Reply{Wait: func(context.Context) *Response { return nil }}
		case "join":
			return Reply{Wait: func(context.Context) *Response { <-join; return text(name) }}
		default:
			return Reply{Response: text(name)}
		}
	}})
	c := dial(t, s)
	c.send("acks=0", "join", "acks=0, waits", "heartbeat", "acks=0", "metadata")
	close(join)
	c.expect("join", "heartbeat", "metadata")
	eventually(t, "end of the requests", func() bool { return s.Stats().Listeners[0].InFlight == 0 })
}

// TestFirstPhaseInOrder pipelines and checks that handlers never overlap or overtake.
func TestFirstPhaseInOrder(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, string(f.Bytes))
		return Reply{Wait: func(context.Context) *Response { return text("ok") }}
	}})
	c := dial(t, s)
	var want []string
	for i := range 200 {
		want = append(want, fmt.Sprint(i))
	}
	go c.send(want...)
	for range want {
		c.expect("ok")
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, " "); got != strings.Join(want, " ") {
		t.Errorf("first phases ran as %s", got)
	}
}

// TestDisconnectCancelsWaits is the long-polling consumer that goes away.
func TestDisconnectCancelsWaits(t *testing.T) {
	for _, how := range []string{"close", "reset", "half close"} {
		t.Run(how, func(t *testing.T) {
			waiting, ended := make(chan struct{}), make(chan error, 2)
			s := start(t, Options{Handler: func(context.Context, *Conn, *Frame) Reply {
				return Reply{Wait: func(ctx context.Context) *Response {
					waiting <- struct{}{}
					<-ctx.Done()
					ended <- ctx.Err()
					return text("too late")
				}}
			}})
			c := dial(t, s)
			c.send("fetch", "fetch")
			<-waiting
			<-waiting
			tcp := c.Conn.(interface {
				SetLinger(int) error
				CloseWrite() error
			})
			switch how {
			case "close":
				_ = c.Close()
			case "reset":
				_ = tcp.SetLinger(0)
				_ = c.Close()
			case "half close":
				_ = tcp.CloseWrite()
			}
			for range 2 {
				if err := <-ended; err != context.Canceled {
					t.Errorf("the wait ended with %v", err)
				}
			}
			closedBy(t, s, endPeer)
		})
	}
}

// TestWaitTimeout ends a second phase by Reply.Timeout while the connection lives on.
func TestWaitTimeout(t *testing.T) {
	s := start(t, Options{Handler: func(context.Context, *Conn, *Frame) Reply {
		return Reply{Timeout: time.Millisecond, Wait: func(ctx context.Context) *Response {
			<-ctx.Done()
			return text(ctx.Err().Error())
		}}
	}})
	c := dial(t, s)
	c.send("x")
	c.expect(context.DeadlineExceeded.Error())
}

// TestPanic closes the connection of the request and no other.
func TestPanic(t *testing.T) {
	log := new(journal)
	s := start(t, Options{Logger: log.logger(), Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		switch name := string(f.Bytes); name {
		case "first phase":
			panic("ouch")
		case "waiting phase":
			return Reply{Wait: func(context.Context) *Response { panic("ouch") }}
		case "release":
			return Reply{Response: &Response{Release: func() { panic("ouch") }}}
		case "sending":
			return Reply{Response: &Response{Pieces: []Piece{{File: brokenFile{}, Length: -1}}}}
		case "reading":
			f.Release()
			return Reply{NoResponse: true}
		case "no way":
			return Reply{}
		default:
			return Reply{Response: text(name)}
		}
	}})
	other := dial(t, s)
	for i, phase := range []string{"first phase", "waiting phase", "release", "sending", "reading", "no way"} {
		c := dial(t, s)
		c.send("before", phase, "behind")
		if got, err := c.receive(); err == nil && got != "before" {
			t.Errorf("%s: %q", phase, got)
		}
		for {
			if _, err := c.receive(); err != nil {
				break
			}
		}
		eventually(t, "an ending by panic", func() bool { return s.Stats().Listeners[0].Closed["panic"] == int64(i+1) })
		other.send("alive")
		other.expect("alive")
	}
	for _, want := range []string{"phase=\"first phase\"", "phase=\"waiting phase\"", "phase=release", "phase=sending",
		"phase=reading", "order_test.go", "panic=ouch"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

// TestClose closes after the answer, which arrives although more requests had been sent.
func TestClose(t *testing.T) {
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		switch name {
		case "reply":
			return Reply{Response: text(name), Close: true}
		case "response":
			r := text(name)
			r.Close = true
			return Reply{Response: r}
		case "wait":
			return Reply{Close: true, Wait: func(context.Context) *Response { return text(name) }}
		case "waiting response":
			r := text(name)
			r.Close = true
			return Reply{Wait: func(context.Context) *Response { return r }}
		case "nothing":
			return Reply{Close: true}
		case "slow":
			return Reply{Wait: func(context.Context) *Response { return text(name) }}
		}
		return Reply{Response: text(name)}
	}})
	for _, how := range []string{"reply", "response", "wait", "waiting response"} {
		c := dial(t, s)
		c.send("first", "slow", how)
		c.expect("first", "slow", how)
		c.expectEnd()
	}
	c := dial(t, s)
	c.send("first", "slow", "nothing", "behind")
	c.expect("first", "slow")
	c.expectEnd()
	// What stands behind an answer that closes is never answered.
	c = dial(t, s)
	c.send("reply", "behind", strings.Repeat("x", 40000))
	c.expect("reply")
	c.expectEnd()
}

// TestEndBehindRequest sends a request and ends the stream in one go, so that both stand in the socket
// when the server reads: the end must not be missed, whether the request has an answer or not.
func TestEndBehindRequest(t *testing.T) {
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		switch name := string(f.Bytes); name {
		case "no answer":
			return Reply{NoResponse: true}
		case "waits":
			return Reply{Wait: func(ctx context.Context) *Response { <-ctx.Done(); return nil }}
		default:
			return Reply{Response: text(name)}
		}
	}})
	opened := int64(0)
	for range 50 {
		for _, request := range []string{"answer", "no answer", "waits"} {
			for _, how := range []string{"close", "reset", "half close"} {
				c, err := net.Dial("tcp", s.Addr("L").String())
				if err != nil {
					t.Fatal(err)
				}
				opened++
				_, _ = c.Write(framed(request))
				switch tcp := c.(*net.TCPConn); how {
				case "reset":
					_ = tcp.SetLinger(0)
				case "half close":
					_ = tcp.CloseWrite()
					_, _ = io.ReadAll(c) // ends when the server closes
				}
				_ = c.Close()
			}
		}
	}
	eventually(t, "end of all connections", func() bool {
		stats := s.Stats().Listeners[0]
		return stats.Accepted == opened && stats.Connections == 0 && stats.InFlight == 0
	})
}
