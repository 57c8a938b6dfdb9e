package server

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAdmission goes through the limits one by one.
func TestAdmission(t *testing.T) {
	open, inter := &Listener{Name: "OPEN"}, &Listener{Name: "INTER", InterBroker: true}
	a := newAdmission(Limits{Descriptors: 10, MaxConnections: 4, ListenerConnections: map[string]int{"OPEN": 3, "INTER": 8},
		PerIP: 2, PerIPOverrides: map[string]int{"10.0.0.9": 0, "10.0.0.8": 100}})
	enter := func(l *Listener, host, want string) {
		t.Helper()
		got := "in"
		if refusal, ok := a.enter(l, host); !ok {
			got = refusal.String()
		}
		if got != want {
			t.Errorf("%s from %s: %s, want %s", l.Name, host, got, want)
		}
	}
	enter(open, "10.0.0.9", "max-connections-per-ip")
	enter(open, "10.0.0.1", "in")
	enter(open, "10.0.0.1", "in")
	enter(open, "10.0.0.1", "max-connections-per-ip")
	enter(open, "10.0.0.8", "in")
	enter(open, "10.0.0.8", "listener-max-connections")
	enter(&Listener{Name: "OTHER"}, "10.0.0.8", "in")
	enter(&Listener{Name: "OTHER"}, "10.0.0.8", "max-connections")
	for range 6 {
		enter(inter, "10.0.0.8", "in")
	}
	enter(inter, "10.0.0.8", "descriptors")
	a.leave(open, "10.0.0.1")
	enter(open, "10.0.0.1", "in")
	a.setLimits(Limits{})
	enter(open, "10.0.0.1", "in")
	for range 3 {
		a.leave(open, "10.0.0.1")
	}
	if n, ok := a.mu.byIP["10.0.0.1"]; ok {
		t.Errorf("%d connections of an address that has none", n)
	}
}

// TestRefused closes what is over a limit, and takes it when there is room.
func TestRefused(t *testing.T) {
	log := new(journal)
	s := start(t, Options{Handler: echo, Limits: Limits{PerIP: 2}, Logger: log.logger()})
	first, second := dial(t, s), dial(t, s)
	for _, c := range []*client{first, second} {
		c.send("x")
		c.expect("x")
	}
	dial(t, s).expectEnd()
	if stats := s.Stats().Listeners[0]; stats.Refused["max-connections-per-ip"] != 1 || stats.Connections != 2 {
		t.Errorf("%+v", stats)
	}
	if !strings.Contains(log.String(), "max-connections-per-ip") {
		t.Errorf("logged %s", log)
	}
	for range 100 { // whoever comes the moment the count says that there is room finds it
		_ = first.Close()
		for s.Stats().Listeners[0].Connections != 1 {
			runtime.Gosched()
		}
		first = dial(t, s)
		first.send("x")
		first.expect("x")
	}
	s.SetLimits(Limits{PerIP: 1})
	dial(t, s).expectEnd()
}

// failingListener fails to accept, as without descriptors, before it works.
type failingListener struct {
	*memoryListener
	failures int
	attempts int
}

func (l *failingListener) Accept() (net.Conn, error) {
	l.attempts++
	if l.failures > 0 {
		l.failures--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.memoryListener.Accept()
}

// TestAcceptFails backs off, logs, and goes on when it works again; it never spins.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(journal)
		l := &failingListener{memoryListener: newMemoryListener(), failures: 20}
		s, err := New(Options{Handler: echo, Logger: log.logger(), Listeners: []Listener{{Name: "L"}},
			Listen: func(string, string) (net.Listener, error) { return l, nil }})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s.Start()
		c := l.dial(t, "10.0.0.2")
		c.send("x")
		c.expect("x")
		if took := time.Since(begun); took < 5*time.Second || took > 20*time.Second {
			t.Errorf("accepted after %v", took)
		}
		if got := log.String(); !strings.Contains(got, syscall.EMFILE.Error()) || strings.Count(got, "\n") > 3 {
			t.Errorf("logged %s", got)
		}
		_ = c.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestShutdownWhileBackingOff ends the pause after a failed accept; what needs no accept works meanwhile.
func TestShutdownWhileBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &failingListener{memoryListener: newMemoryListener(), failures: 1 << 30}
		s, err := New(Options{Handler: echo, Listeners: []Listener{{Name: "L"}},
			Listen: func(string, string) (net.Listener, error) { return l, nil }})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		pass(time.Minute)
		c := attach(t, s.Pipe())
		go c.send("x")
		c.expect("x")
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if l.attempts > 80 {
			t.Errorf("%d attempts in a minute", l.attempts)
		}
	})
}

// TestManySilent opens and drops connections faster than they can be served.
func TestManySilent(t *testing.T) {
	s := start(t, Options{Handler: echo, Limits: Limits{MaxConnections: 20}})
	for i := range 300 {
		c, err := net.Dial("tcp", s.Addr("L").String())
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
		_ = c.Close()
	}
	eventually(t, "end of all connections", func() bool {
		stats := s.Stats().Listeners[0]
		return stats.Connections == 0 && stats.Accepted+stats.Refused["max-connections"] == 300
	})
	c := dial(t, s)
	c.send("x")
	c.expect("x")
}

// TestHostOf takes addresses apart.
func TestHostOf(t *testing.T) {
	for want, address := range map[string]net.Addr{
		"127.0.0.1": &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1},
		"::1":       &net.TCPAddr{IP: net.IPv6loopback, Port: 1},
		"example":   named("example:9092"),
		"pipe":      named("pipe"),
	} {
		if got := hostOf(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	if !errors.Is(fmt.Errorf("%w", endIdle), endIdle) {
		t.Error("endings are no errors")
	}
}

type named string

func (named) Network() string  { return "test" }
func (n named) String() string { return string(n) }
