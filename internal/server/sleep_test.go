package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sleeper is a phase that answers when it is told to, or has to.
type sleeper struct {
	name  string
	ready atomic.Bool
	asked atomic.Int32
	sleep chan *Sleep // gets the sleep when it has begun
}

func newSleeper(name string) *sleeper { return &sleeper{name: name, sleep: make(chan *Sleep, 1)} }

func (p *sleeper) Run(s *Sleep, why Why) *Response {
	p.asked.Add(1)
	switch {
	case why&Begun != 0:
		p.sleep <- s
	case why&Ended != 0:
		return text(p.name + " ended")
	case why&TimeUp != 0:
		return text(p.name + " late")
	case why&Overtaken != 0:
		return text(p.name + " overtaken")
	}
	if p.ready.Load() {
		return text(p.name)
	}
	return nil
}

// wake makes the phase answer.
func (p *sleeper) wake() {
	p.ready.Store(true)
	s := <-p.sleep
	s.Wake()
	p.sleep <- s
}

// sleepers are phases by the frame that begins them; other frames are answered at once.
func sleepers(all ...*sleeper) Handler {
	return func(_ context.Context, _ *Conn, f *Frame) Reply {
		for _, p := range all {
			if p.name == string(f.Bytes) {
				return Reply{Phase: p, Yields: strings.HasPrefix(p.name, "yields"), Timeout: time.Minute}
			}
		}
		return Reply{Response: text(string(f.Bytes))}
	}
}

func TestSleepersAnswerInTheOrderOfRequests(t *testing.T) {
	a, b := newSleeper("a"), newSleeper("b")
	c := dial(t, start(t, Options{Handler: sleepers(a, b)}))
	c.send("1", "a", "2", "b", "3")
	c.expect("1")
	b.wake()
	a.wake()
	c.expect("a", "2", "b", "3")
	a.wake() // there is nothing to answer any more
	c.send("4")
	c.expect("4")
}

func TestWhatEndsASleep(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		by           func(p *sleeper, s *Server, c *client)
	}{
		{"a", "a", func(p *sleeper, _ *Server, _ *client) { p.wake() }},
		{"a", "a late", func(*sleeper, *Server, *client) { pass(time.Minute) }},
		{"yields", "yields overtaken", func(_ *sleeper, _ *Server, c *client) { c.send("next") }},
		{"a", "a ended", func(_ *sleeper, s *Server, _ *client) { go func() { _ = s.Shutdown(context.Background()) }() }},
	} {
		t.Run(test.answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSleeper(test.name)
				s, l, stop := startMemory(t, Options{Handler: sleepers(p)})
				defer stop()
				c := l.dial(t, "10.0.0.2")
				c.send(test.name)
				synctest.Wait()
				test.by(p, s, c)
				c.expect(test.answer)
				_ = c.Close()
			})
		})
	}
}

// A peer that goes away takes its sleeping requests along; who would have woken them finds nothing to do.
func TestSleepOfAPeerThatIsGone(t *testing.T) {
	a, b := newSleeper("a"), newSleeper("b")
	s := start(t, Options{Handler: sleepers(a, b)})
	c := dial(t, s)
	c.send("a", "b")
	sleep := <-b.sleep
	_ = c.Close()
	closedBy(t, s, endPeer)
	asked := a.asked.Load()
	sleep.Wake()
	a.wake()
	if n := s.Stats().Listeners[0].InFlight; n != 0 || a.asked.Load() != asked {
		t.Errorf("%d requests are in flight, asked %d times after the end", n, a.asked.Load()-asked)
	}
}

func TestPanicOfAPhaseIsItsConnections(t *testing.T) {
	var log journal
	bad := phase(func(_ *Sleep, why Why) *Response {
		switch {
		case why&Woken != 0:
			ouch()
		case why&Ended != 0:
			return text("")
		}
		return nil
	})
	sleeping := make(chan *Sleep, 1)
	s := start(t, Options{Logger: log.logger(), Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		if string(f.Bytes) == "wake" {
			(<-sleeping).Wake()
			return Reply{Response: text("woken")}
		}
		return Reply{Phase: phase(func(s *Sleep, why Why) *Response {
			if why&Begun != 0 {
				sleeping <- s
			}
			return bad(s, why)
		})}
	}})
	asleep, awake := dial(t, s), dial(t, s)
	asleep.send("sleep")
	awake.send("wake", "wake not")
	awake.expect("woken")
	asleep.expectEnd()
	for _, said := range []string{"panic=ouch ", "server.ouch("} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("the log does not say %q: %s", said, log.String())
		}
	}
}

// ouch is where a phase panics.
func ouch() { panic("ouch") }

// phase is a function as a [Phase].
type phase func(s *Sleep, why Why) *Response

func (p phase) Run(s *Sleep, why Why) *Response { return p(s, why) }

// Who wakes a request is not held up by a peer that takes no answers, however large they are; they leave in order when
// the peer takes them.
func TestAStuckPeerHoldsNobodyUp(t *testing.T) {
	const requests, size = 60, 12 << 10
	for name, pieces := range map[string]int{"small answers": 1, "large answers": 4} {
		t.Run(name, func(t *testing.T) {
			sleeps := make(chan *Sleep, requests)
			handler := func(_ context.Context, _ *Conn, f *Frame) Reply {
				r := text(string(f.Bytes))
				for range pieces {
					for range size / smallPiece {
						r.Pieces = append(r.Pieces, Piece{Bytes: make([]byte, smallPiece)})
					}
				}
				return Reply{Phase: phase(func(s *Sleep, why Why) *Response {
					if why&Begun == 0 {
						return r
					}
					sleeps <- s
					return nil
				})}
			}
			c := dial(t, start(t, Options{Handler: handler, SendBuffer: 32 << 10}))
			if err := c.Conn.(*net.TCPConn).SetReadBuffer(32 << 10); err != nil {
				t.Fatal(err)
			}
			for i := range requests {
				c.send(fmt.Sprint(i))
				(<-sleeps).Wake()
			}
			for i := range requests {
				got, err := c.receive()
				want := fmt.Sprint(i)
				if err != nil || len(got) != len(want)+pieces*size || !strings.HasPrefix(got, want+"\x00") {
					t.Fatalf("answer %d: %d bytes, %.4q, %v", i, len(got), got, err)
				}
			}
		})
	}
}

// pipelined is the transport of a peer that goes on asking: whenever something is written to it, its reader has left
// the next answer in the queue.
type pipelined struct {
	transport
	conn         *Conn
	writes, more int // in writeNow
}

func (p *pipelined) writeNow(b []byte) (int, error) {
	n, err := p.transport.writeNow(b)
	if p.writes++; p.more > 0 {
		p.more--
		p.conn.acceptor.counters.inFlight.Add(1)
		p.conn.mu.Lock()
		p.conn.mu.push(&slot{response: text("more"), done: true})
		p.conn.mu.Unlock()
	}
	return n, err
}

// Who wakes a request writes once: a peer that goes on asking does not make it its writer for good.
func TestAPeerThatGoesOnAskingHoldsNobodyUp(t *testing.T) {
	p, peer := newSleeper("a"), &pipelined{more: 10}
	c := dial(t, start(t, Options{Handler: func(ctx context.Context, c *Conn, f *Frame) Reply {
		if string(f.Bytes) == "begin" {
			peer.transport, peer.conn, c.transport = c.transport, c, peer
		}
		return sleepers(p)(ctx, c, f)
	}}))
	c.send("begin")
	c.expect("begin")
	c.send("a")
	s := <-p.sleep
	p.sleep <- s
	eventually(t, "sleep", func() bool { return s.events.Load() == 0 }) // else its reader would answer
	p.wake()
	if peer.writes != 1 {
		t.Errorf("who woke it wrote %d times", peer.writes)
	}
	c.expect("a", "more")
}

// However many wake a request at a time, it runs once at a time, misses nothing, and is answered once.
func TestManyWakeOneSleep(t *testing.T) {
	const rounds, wakers = 200, 4
	for range rounds {
		var running, done atomic.Int32
		var news atomic.Int32
		answered := make(chan struct{}, 2)
		s := NewSleep(phase(func(*Sleep, Why) *Response {
			if running.Add(1) != 1 {
				t.Error("it runs twice at a time")
			}
			defer running.Add(-1)
			if news.Load() < wakers {
				return nil
			}
			return text("")
		}), func(*Response, *Bug) {
			done.Add(1)
			answered <- struct{}{}
		})
		var wg sync.WaitGroup
		for range wakers {
			wg.Go(func() {
				news.Add(1)
				s.Wake()
			})
		}
		s.Begin(time.Hour)
		<-answered
		wg.Wait()
		if n := done.Load(); n != 1 {
			t.Fatalf("answered %d times", n)
		}
	}
}

// A sleep that asked to be woken after a time is, and not by an earlier wish.
func TestWakeAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answered := make(chan time.Duration, 1)
		runs := 0
		s := NewSleep(phase(func(s *Sleep, _ Why) *Response {
			if runs++; runs == 4 {
				return text("")
			}
			s.WakeAfter(time.Duration(runs) * time.Second)
			return nil
		}), func(*Response, *Bug) { answered <- time.Since(began) })
		s.Begin(0)
		if took := <-answered; took != 6*time.Second {
			t.Errorf("answered after %v, want 1 + 2 + 3 s", took)
		}
	})
}

// A phase that waits when its time is up, as for a disk, makes no other late.
func TestAlarmsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarms
		var both sync.WaitGroup
		both.Add(2)
		for range 2 {
			newSleep(&a, phase(func(_ *Sleep, why Why) *Response {
				if why&TimeUp == 0 {
					return nil
				}
				both.Done()
				both.Wait()
				return text("")
			}), func(*Response, *Bug) {}).Begin(time.Second)
		}
		both.Wait()
	})
}

// However many sleep, each is woken in its time; one timer does it.
func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarms
		began := time.Now()
		const many = 50
		late := make(chan time.Duration, many)
		for i := range many {
			after := time.Duration((i*37)%many+1) * time.Second
			s := newSleep(&a, phase(func(_ *Sleep, why Why) *Response {
				if why&(TimeUp|Ended) == 0 {
					return nil
				}
				if why&TimeUp != 0 {
					late <- time.Since(began) - after
				}
				return text("")
			}), func(*Response, *Bug) {})
			s.Begin(after)
			if i%3 == 0 {
				s.Post(Ended)
			}
		}
		pass(time.Hour)
		synctest.Wait()
		if n := len(late); n != many-(many+2)/3 || len(a.due) != 0 {
			t.Errorf("%d were woken, %d are left", n, len(a.due))
		}
		for range len(late) {
			if d := <-late; d != 0 {
				t.Errorf("woken %v late", d)
			}
		}
	})
}
