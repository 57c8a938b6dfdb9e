package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestConn checks what a handler sees of its connection.
func TestConn(t *testing.T) {
	expiry := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := start(t, Options{Handler: func(_ context.Context, c *Conn, f *Frame) Reply {
		if string(f.Bytes) == "set" {
			c.SetPrincipal("User:alice")
			c.SetClientSoftware("franz-go", "1.2")
			c.SetSessionExpiry(expiry)
		}
		name, version := c.ClientSoftware()
		return Reply{Response: text(fmt.Sprint(c.Listener, c.Protocol, c.Internal, c.Host, c.RemoteAddr.Network(),
			c.Principal(), name, version, c.SessionExpiry().Equal(expiry), c.ID > 0))}
	}})
	c := dial(t, s)
	c.send("get", "set", "get")
	c.expect("LPLAINTEXTfalse127.0.0.1tcpUser:ANONYMOUSfalse true",
		"LPLAINTEXTfalse127.0.0.1tcpUser:alicefranz-go1.2true true",
		"LPLAINTEXTfalse127.0.0.1tcpUser:alicefranz-go1.2true true")
	p := attach(t, s.Pipe())
	go p.send("get")
	p.expect("internaltruepipepipeUser:ANONYMOUSfalse true")
}

// TestOptions reports all faults at once, and a port that is taken.
func TestOptions(t *testing.T) {
	_, err := New(Options{PipelineDepth: -1, Listeners: []Listener{{Name: "A"}, {Name: "A"}, {Name: "internal"}, {}}})
	for _, want := range []string{"no handler", `"A"`, `"internal"`, `""`, "PipelineDepth is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	s := start(t, Options{Handler: echo})
	_, err = New(Options{Handler: echo, Listeners: []Listener{
		{Name: "FREE", Address: "127.0.0.1:0"}, {Name: "TAKEN", Address: s.Addr("L").String()},
	}})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "TAKEN") {
		t.Errorf("a taken port: %v", err)
	}
	if s.Addr("none") != nil {
		t.Error("an address for an unknown listener")
	}
}

// TestBacklog has connections wait until Start.
func TestBacklog(t *testing.T) {
	s, err := New(Options{Handler: echo, Listeners: []Listener{{Name: "L", Address: "127.0.0.1:0"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s)
	c.send("early")
	s.Start()
	c.expect("early")
	_ = c.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestShutdownDrains answers what is in flight, takes nothing new, and ends without a goroutine left.
func TestShutdownDrains(t *testing.T) {
	waiting, release := make(chan struct{}), make(chan struct{})
	var s *Server
	s = start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		name := string(f.Bytes)
		return Reply{Wait: func(context.Context) *Response {
			waiting <- struct{}{}
			<-s.Draining()
			<-release
			return text(name)
		}}
	}})
	busy, idle, partial := dial(t, s), dial(t, s), dial(t, s)
	busy.send("in flight")
	<-waiting
	if _, err := partial.Write([]byte{0, 0}); err != nil {
		t.Fatal(err)
	}
	pipe := attach(t, s.Pipe())
	ended := make(chan error)
	go func() { ended <- s.Shutdown(context.Background()) }()
	<-s.Draining()
	idle.expectEnd()
	pipe.expectEnd()
	_, _ = io.ReadAll(partial) // a reset is right, too: its bytes were not read
	busy.send("too late")
	close(release)
	busy.expect("in flight")
	if got, err := busy.receive(); err == nil {
		t.Errorf("%q was answered", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr("L").String()); err == nil {
		t.Error("the port still answers")
	}
	attach(t, s.Pipe()).expectEnd()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// TestShutdownCutsOff ends waits, mutes, stuck writes and readers that wait for the budget when the
// context ends.
func TestShutdownCutsOff(t *testing.T) {
	handler := func(ctx context.Context, _ *Conn, f *Frame) Reply {
		switch string(f.Bytes[:4]) {
		case "mute":
			return Reply{Response: &Response{Throttle: time.Hour}}
		case "pins":
			f.Retain()
			context.AfterFunc(ctx, f.Release)
		case "long":
			return Reply{Response: text(strings.Repeat("x", 1<<20))}
		}
		return Reply{Wait: func(ctx context.Context) *Response { <-ctx.Done(); return nil }}
	}
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := startMemory(t, Options{Handler: handler, Limits: Limits{InFlightBytes: 64 << 10}})
		defer stop()
		for _, requests := range [][]string{{"wait"}, {"mute", "wait"}, {"long", "wait"}, {"pins" + strings.Repeat("x", 50_000)},
			{"more" + strings.Repeat("x", 50_000)}, {"wait", "long"}} {
			c := l.dial(t, "10.0.0.2")
			go func() {
				for _, r := range requests {
					_, _ = c.Write(framed(r))
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		err := s.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if got := s.Stats().Listeners[0]; got.Connections != 0 || got.InFlight != 0 || got.Closed["shutdown"] != 6 {
			t.Errorf("%+v", got)
		}
	})
}

// TestShutdownStubborn gives up on a handler that does not end.
func TestShutdownStubborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, l, stop := startMemory(t, Options{Handler: func(context.Context, *Conn, *Frame) Reply {
			return Reply{Wait: func(context.Context) *Response { <-release; return nil }}
		}})
		c := l.dial(t, "10.0.0.2")
		c.send("x")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "do not end") {
			t.Error(err)
		}
		close(release)
		stop()
	})
}

// TestSeveralServers run in one process and share a pool.
func TestSeveralServers(t *testing.T) {
	pool := NewBuffers(1 << 20)
	var clients []*client
	for range 3 {
		c := dial(t, start(t, Options{Handler: echo, Buffers: pool}))
		c.send("x")
		c.expect("x")
		clients = append(clients, c)
	}
	var group sync.WaitGroup
	for i, c := range clients {
		group.Go(func() {
			for range 100 {
				c.send(fmt.Sprint(i))
				c.expect(fmt.Sprint(i))
			}
		})
	}
	group.Wait()
}

// TestHandshake wraps connections, names principals, and neither waits for nor trusts silent peers.
func TestHandshake(t *testing.T) {
	handshake := func(ctx context.Context, raw net.Conn, c *Conn) (net.Conn, error) {
		stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(longAgo) })
		defer stop()
		var hello [1]byte
		if _, err := io.ReadFull(raw, hello[:]); err != nil {
			return nil, err
		}
		c.SetPrincipal("User:" + string(hello[:]))
		return raw, nil
	}
	inBubble(t, Options{
		Handler:   func(_ context.Context, c *Conn, _ *Frame) Reply { return Reply{Response: text(c.Principal())} },
		Listeners: []Listener{{Name: "L", Handshake: handshake}},
	}, func(t *testing.T, s *Server, l *memoryListener) {
		begun := time.Now()
		silent, c := l.dial(t, "10.0.0.2"), l.dial(t, "10.0.0.2")
		if _, err := c.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
		go c.send("x", "y")
		c.expect("User:a", "User:a")
		silent.expectEnd()
		if took := time.Since(begun); took != DefaultHandshakeTimeout {
			t.Errorf("the silent peer was closed after %v", took)
		}
		synctest.Wait() // a peer sees the end before the server has counted it
		if got := s.Stats().Listeners[0].Closed["handshake"]; got != 1 {
			t.Errorf("%d closed in their handshakes", got)
		}
	})
}
