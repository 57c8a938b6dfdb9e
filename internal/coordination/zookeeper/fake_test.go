package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// fake is a server that a test plays, in virtual time: every connection comes out of accepted.
type fake struct {
	*testing.T
	accepted chan net.Conn
}

func newFake(t *testing.T) *fake { return &fake{T: t, accepted: make(chan net.Conn)} }

func (f *fake) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case f.accepted <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// peer is the server's end of one connection.
type peer struct {
	*testing.T
	net.Conn
}

// read takes the client's next packet.
func (p peer) read() *jute.Reader {
	p.Helper()
	var length [4]byte
	if _, err := io.ReadFull(p, length[:]); err != nil {
		p.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(p, b); err != nil {
		p.Fatal(err)
	}
	return jute.NewReader(b)
}

// request takes the client's next request, and answers pings on the way.
func (p peer) request() (jute.RequestHeader, *jute.Reader) {
	p.Helper()
	for {
		r := p.read()
		var header jute.RequestHeader
		if header.Read(r); header.Op != jute.OpPing {
			return header, r
		}
		p.reply(header, 0, nil)
	}
}

func (p peer) write(records ...jute.Record) {
	p.Helper()
	frame := make([]byte, 4)
	for _, r := range records {
		if r != nil {
			frame = r.Append(frame)
		}
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := p.Write(frame); err != nil {
		p.Fatal(err)
	}
}

func (p peer) reply(h jute.RequestHeader, code jute.Code, body jute.Record) {
	p.Helper()
	p.write(&jute.ReplyHeader{Xid: h.Xid, Zxid: 100, Err: code}, body)
}

// accept takes the next connection and lets the session in; timeout 0 says that it has expired.
func (f *fake) accept(session int64, timeout time.Duration) (peer, jute.ConnectRequest) {
	f.Helper()
	p := peer{T: f.T, Conn: <-f.accepted}
	var request jute.ConnectRequest
	request.Read(p.read())
	p.write(&jute.ConnectResponse{Timeout: int32(timeout.Milliseconds()), SessionID: session, Password: make([]byte, 16)})
	return p, request
}

// open opens a session with a timeout on a played server.
func (f *fake) open(timeout time.Duration) (*Session, peer) {
	f.Helper()
	store := New(Options{Servers: []string{"127.0.0.1:1"}, Dial: f.dial})
	opened := make(chan coordination.Session)
	go func() {
		s, err := store.Open(f.Context(), coordination.SessionOptions{Timeout: timeout})
		if err != nil {
			f.Error(err)
		}
		opened <- s
	}()
	p, _ := f.accept(7, timeout)
	return (<-opened).(*Session), p
}

// finish ends the session without a server.
func finish(s *Session) {
	s.end(errClosed())
	s.work.Wait()
}

// result is what a call on its own goroutine returned.
type result struct {
	data []byte
	err  error
}

func get(s *Session, path string) chan result {
	c := make(chan result, 1)
	go func() {
		data, _, err := s.Get(context.Background(), path)
		c <- result{data, err}
	}()
	return c
}

func set(ctx context.Context, s *Session, path string) chan result {
	c := make(chan result, 1)
	go func() {
		_, err := s.Set(ctx, path, nil, coordination.AnyVersion)
		c <- result{err: err}
	}()
	return c
}

// A connection breaks under a write and a read: the write may have happened, the read is sent again, and what
// was not sent waits for the next connection.
func TestCutUnderRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, p := f.open(6 * time.Second)
		defer finish(s)
		write := set(context.Background(), s, "/w")
		if h, _ := p.request(); h.Op != jute.OpSetData {
			t.Fatalf("operation %d", h.Op)
		}
		read := get(s, "/r")
		if h, _ := p.request(); h.Op != jute.OpGetData {
			t.Fatalf("operation %d", h.Op)
		}
		p.Close()
		if r := <-write; !errors.Is(r.err, coordination.ErrUnknownOutcome) || errors.Is(r.err, coordination.ErrSessionLost) {
			t.Fatalf("write: %v", r.err)
		}
		synctest.Wait()
		late := set(context.Background(), s, "/late")
		p, again := f.accept(7, 6*time.Second)
		if again.SessionID != 7 {
			t.Fatalf("session %d is asked for", again.SessionID)
		}
		h, _ := p.request()
		if h.Op != jute.OpGetData {
			t.Fatalf("operation %d comes first", h.Op)
		}
		p.reply(h, 0, &jute.GetDataResponse{Data: []byte("x")})
		if r := <-read; r.err != nil || string(r.data) != "x" {
			t.Fatalf("read: %q, %v", r.data, r.err)
		}
		h, _ = p.request()
		p.reply(h, 0, &jute.Stat{})
		if r := <-late; r.err != nil {
			t.Fatalf("late: %v", r.err)
		}
	})
}

// A server that does not answer any more costs a third of the session's timeout.
func TestHungServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, p := f.open(6 * time.Second)
		defer finish(s)
		began := time.Now()
		write := set(context.Background(), s, "/w")
		p.request()
		if r := <-write; !errors.Is(r.err, coordination.ErrUnknownOutcome) {
			t.Fatalf("write: %v", r.err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, want a third of 6 s", took)
		}
		if state := <-s.States(); state != coordination.Suspended {
			t.Errorf("state %v", state)
		}
		hung := <-f.accepted // and one that takes connections, and says nothing
		defer hung.Close()
		began = time.Now()
		p, _ = f.accept(7, 6*time.Second)
		if took := time.Since(began); took > 2*time.Second+firstPause {
			t.Errorf("the next server was tried after %v", took)
		}
		if state := <-s.States(); state != coordination.Connected {
			t.Errorf("state %v", state)
		}
		p.Close()
	})
}

// A caller that stops waiting learns whether its request can have happened.
func TestCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, p := f.open(6 * time.Second)
		defer finish(s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		write := set(ctx, s, "/w")
		p.request()
		if r := <-write; !errors.Is(r.err, coordination.ErrUnknownOutcome) || !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("sent: %v", r.err)
		}
		p.Close()
		synctest.Wait()
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if r := <-set(ctx, s, "/w"); !errors.Is(r.err, coordination.ErrNotSent) || !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("not sent: %v", r.err)
		}
	})
}

// Behind its deadline a session goes on asking: only a server ends it. One that has expired never comes back.
func TestDeadlineAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, p := f.open(6 * time.Second)
		opened := time.Now()
		if d := s.Deadline(); !d.Equal(opened.Add(6 * time.Second)) {
			t.Errorf("deadline %v after the opening", d.Sub(opened))
		}
		time.Sleep(1 * time.Second)
		for range 10 { // pings move the deadline to when they were sent
			r := p.read()
			var h jute.RequestHeader
			if h.Read(r); h.Op != jute.OpPing {
				t.Fatalf("operation %d", h.Op)
			}
			pinged := time.Now()
			time.Sleep(100 * time.Millisecond)
			p.reply(h, 0, nil)
			synctest.Wait()
			if d := s.Deadline(); !d.Equal(pinged.Add(6 * time.Second)) {
				t.Errorf("deadline %v after the ping", d.Sub(pinged))
			}
		}
		p.Close()
		synctest.Wait()
		waiting := set(context.Background(), s, "/w")
		time.Sleep(time.Minute)
		if d := s.Deadline(); d.After(time.Now()) || s.Err() != nil {
			t.Fatalf("deadline %v, err %v", d, s.Err())
		}
		p, _ = f.accept(7, 0)
		defer p.Close()
		<-s.Done()
		if r := <-waiting; !errors.Is(r.err, coordination.ErrSessionLost) {
			t.Errorf("what waited: %v", r.err)
		}
		if !errors.Is(s.Err(), coordination.ErrSessionLost) {
			t.Errorf("err %v", s.Err())
		}
		s.work.Wait()
	})
}

// A read that breaks every connection fails at last.
func TestPoisonedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, p := f.open(6 * time.Second)
		defer finish(s)
		read := get(s, "/poison")
		for range maxCuts {
			p.request() // which it is sent again with
			p.Close()
			p, _ = f.accept(7, 6*time.Second)
		}
		if r := <-read; !errors.Is(r.err, coordination.ErrNotSent) {
			t.Fatalf("read: %v", r.err)
		}
	})
}

// Watches are registered anew before anything else is asked, in requests of bounded size.
func TestWatchesAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, p := f.open(6 * time.Second)
		defer finish(s)
		const n = 3000
		paths := map[string]bool{}
		var last coordination.Watch
		for i := range n {
			path := "/" + string(rune('a'+i%26)) + time.Duration(i).String() + "-a-path-that-is-long-enough-to-fill-requests-quickly"
			paths[path] = true
			opened := make(chan coordination.Watch, 1)
			go func() {
				w, err := s.Watch(context.Background(), path, coordination.Mode(1+i%3))
				if err != nil {
					t.Error(err)
				}
				opened <- w
			}()
			h, _ := p.request()
			p.reply(h, 0, &jute.ErrorResult{})
			last = <-opened
		}
		p.Close()
		read := get(s, "/")
		p, _ = f.accept(7, 6*time.Second)
		sets := 0
		for len(paths) > 0 {
			h, r := p.request()
			if h.Op != jute.OpSetWatches2 || len(r.Rest()) > 128<<10 {
				t.Fatalf("operation %d of %d bytes", h.Op, len(r.Rest()))
			}
			var set jute.SetWatches
			set.Read(r)
			for _, path := range append(set.Persistent, set.Recursive...) {
				delete(paths, path)
			}
			sets++
			p.reply(h, 0, nil)
		}
		if sets < 2 {
			t.Errorf("%d requests", sets)
		}
		if e := <-last.Events(); e.Kind != coordination.Resync {
			t.Errorf("event %v", e)
		}
		h, _ := p.request()
		p.reply(h, 0, &jute.GetDataResponse{})
		<-read
	})
}

// A server that lets nobody in leaves a sentence that names it.
func TestOpenTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		store := New(Options{Servers: []string{"127.0.0.1:1"}, Dial: f.dial})
		_, err := store.Open(ctx, coordination.SessionOptions{})
		if !errors.Is(err, coordination.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("never asked: %v", err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		go func() {
			p := peer{T: t, Conn: <-f.accepted}
			p.read()
			<-ctx.Done()
			p.Close()
		}()
		if _, err = store.Open(ctx, coordination.SessionOptions{}); !errors.Is(err, coordination.ErrUnknownOutcome) {
			t.Fatalf("asked: %v", err)
		}
	})
}
