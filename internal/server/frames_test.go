package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestFrameSizes echoes frames around every size at which buffers change.
func TestFrameSizes(t *testing.T) {
	sizes := []int{1, 3, 4, 5, 4095, 4096, smallBuffer - 5, smallBuffer - 4, smallBuffer - 3, smallBuffer, firstStep - 4,
		firstStep, firstStep + 1, 256 << 10, 1<<20 - 4, 1<<20 + 4, 4<<20 + 5, 9 << 20}
	s := start(t, Options{Handler: echo})
	random := rand.New(rand.NewPCG(1, 2))
	c := dial(t, s)
	for range 3 {
		random.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
		go func() {
			for i, size := range sizes {
				c.send(strings.Repeat(string(rune('a'+i)), size))
			}
		}()
		for i, size := range sizes {
			c.expect(strings.Repeat(string(rune('a'+i)), size))
		}
	}
}

// TestBadLengths closes at once, takes no memory and logs what the bytes look like.
func TestBadLengths(t *testing.T) {
	for _, test := range []struct{ sent, logged string }{
		{"\x00\x00\x00\x00", "a frame length of 0"},
		{"\xff\xff\xff\xff", "a frame length of -1"},
		{"\x80\x00\x00\x00", "a frame length of -2147483648"},
		{"\x7f\xff\xff\xff", "a frame of 2147483647 bytes, above the limit of 1000"},
		{"\x00\x00\x03\xe9", "a frame of 1001 bytes, above the limit of 1000"},
		{"GET / HTTP/1.1\r\n\r\n", "HTTP on a port"},
		{"POST /api HTTP/1.1\r\n", "HTTP on a port"},
		{"PRI * HTTP/2.0\r\n", "HTTP on a port"},
		{"\x16\x03\x01\x02\x00\x01", "a TLS handshake on a port"},
		{"SSH-2.0-OpenSSH\r\n", "SSH on a port"},
		{"ruok", "a ZooKeeper command on a port"},
		{"hello, is there anybody", "text (\\\"hello, is there \\\") on a port"},
	} {
		t.Run(fmt.Sprintf("%.8q", test.sent), func(t *testing.T) {
			log := new(journal)
			s := start(t, Options{Handler: echo, Limits: Limits{MaxFrame: 1000}, Logger: log.logger()})
			c := dial(t, s)
			c.send("good")
			c.expect("good")
			if _, err := c.Write([]byte(test.sent)); err != nil {
				t.Fatal(err)
			}
			if got, err := c.receive(); err == nil {
				t.Errorf("answered with %q", got)
			}
			closedBy(t, s, endBadFrame)
			if !strings.Contains(log.String(), test.logged) {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// TestBadLengthLogging floods with garbage and counts lines.
func TestBadLengthLogging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(journal)
		_, l, stop := startMemory(t, Options{Handler: echo, Logger: log.logger()})
		for range 50 {
			c := l.dial(t, "10.0.0.2")
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n")) // closed before all of it is read
			c.expectEnd()
		}
		pass(logEvery)
		c := l.dial(t, "10.0.0.2")
		_, _ = c.Write([]byte("GET /"))
		c.expectEnd()
		stop()
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "skipped=49") {
			t.Errorf("logged %s", got)
		}
	})
}

// TestSetMaxFrame lowers the limit for a connection, as before a login.
func TestSetMaxFrame(t *testing.T) {
	s := start(t, Options{Handler: func(_ context.Context, c *Conn, f *Frame) Reply {
		switch string(f.Bytes) {
		case "low":
			c.SetMaxFrame(4)
		case "high":
			c.SetMaxFrame(math.MaxInt32)
		}
		return Reply{Response: text(string(f.Bytes))}
	}})
	c := dial(t, s)
	c.send("before", "low", "high", "behind", "low", "beyond")
	c.expect("before", "low", "high", "behind", "low")
	if got, err := c.receive(); err == nil {
		t.Errorf("answered with %q", got)
	}
	closedBy(t, s, endBadFrame)
}

// TestLyingLength claims the largest frame on many connections and sends little of it: memory follows
// what came.
func TestLyingLength(t *testing.T) {
	s := start(t, Options{Handler: echo})
	const connections = 50
	for i := range connections {
		c := dial(t, s)
		sent := binary.BigEndian.AppendUint32(nil, DefaultMaxFrame)
		sent = append(sent, make([]byte, 100*i)...)
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "charge", func() bool {
		return s.Stats().Listeners[0].BytesIn == connections*lengthSize+100*connections*(connections-1)/2
	})
	if got := s.Stats().InFlightBytes; got > connections*firstStep {
		t.Errorf("%d bytes are charged for %d", got, s.Stats().Listeners[0].BytesIn)
	}
}

// TestHalfFrames cuts a stream of frames at every byte.
func TestHalfFrames(t *testing.T) {
	s := start(t, Options{Handler: echo})
	stream := append(append(framed("first"), framed("second, longer")...), framed("x")...)
	c := dial(t, s)
	for cut := range stream {
		if _, err := c.Write(stream[:cut]); err != nil {
			t.Fatal(err)
		}
		// The server takes the first part by itself if it is quick; both ways are right.
		if _, err := c.Write(stream[cut:]); err != nil {
			t.Fatal(err)
		}
		c.expect("first", "second, longer", "x")
	}
	// A stream that ends inside a frame is the peer's end, and no request.
	if _, err := c.Write(stream[:len(stream)-1]); err != nil {
		t.Fatal(err)
	}
	c.expect("first", "second, longer")
	_ = c.Close()
	closedBy(t, s, endPeer)
}

// TestFrameTimeout closes a connection whose frame does not move on, and none that does.
func TestFrameTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := startMemory(t, Options{Handler: echo})
		defer stop()
		slow := l.dial(t, "10.0.0.2")
		begun := time.Now()
		var writers sync.WaitGroup
		defer writers.Wait()
		writers.Go(func() {
			_, _ = slow.Write(binary.BigEndian.AppendUint32(nil, 1<<20))
			for {
				if _, err := slow.Write([]byte{0}); err != nil {
					return
				}
				pass(time.Second)
			}
		})
		fair := l.dial(t, "10.0.0.3")
		writers.Go(func() {
			_, _ = fair.Write(binary.BigEndian.AppendUint32(nil, 1<<20))
			for range 1024 {
				_, _ = fair.Write(make([]byte, 1024))
				pass(time.Second / 2)
			}
		})
		slow.expectEnd()
		if took := time.Since(begun); took < DefaultFrameTimeout || took > DefaultFrameTimeout+time.Second {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait() // a peer sees the end before the server has counted it
		if got := s.Stats().Listeners[0].Closed["slow-frame"]; got != 1 {
			t.Errorf("%d closed for slow frames", got)
		}
		fair.expect(strings.Repeat("\x00", 1<<20))
	})
}

// TestRetain keeps frames beyond their handlers while their neighbours in the buffer come and go.
func TestRetain(t *testing.T) {
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		f.Retain()
		want := bytes.Clone(f.Bytes)
		return Reply{Wait: func(context.Context) *Response {
			defer f.Release()
			if !bytes.Equal(f.Bytes, want) {
				return text("changed")
			}
			return text(string(f.Bytes))
		}}
	}})
	c := dial(t, s)
	random := rand.New(rand.NewPCG(3, 4))
	var requests []string
	for i := range 400 {
		requests = append(requests, strings.Repeat(fmt.Sprint(i, " "), 1+random.IntN(1<<random.IntN(14))))
	}
	go c.send(requests...)
	c.expect(requests...)
}

// FuzzReader feeds any bytes in any steps: the frames that come out are those that went in, in both ways
// of reading, and nothing stays charged.
func FuzzReader(f *testing.F) {
	f.Add(framed("hello"), uint16(1), true)
	f.Add(append(framed("a"), framed(strings.Repeat("b", 20000))...), uint16(700), true)
	f.Add(append(framed(strings.Repeat("b", 70000)), framed("x")...), uint16(9000), false)
	f.Add([]byte("\x7f\xff\xff\xff"), uint16(3), false)
	f.Add([]byte("\x00\x00\x00\x00"), uint16(3), true)
	f.Add([]byte("\x00\x10\x00\x00abc"), uint16(2), true)
	f.Fuzz(func(t *testing.T, stream []byte, step uint16, greedy bool) {
		const limit = 1 << 20
		var got [][]byte
		s, err := New(Options{Limits: Limits{MaxFrame: limit, InFlightBytes: 1 << 20},
			Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
				got = append(got, bytes.Clone(f.Bytes))
				return Reply{NoResponse: true}
			}})
		if err != nil {
			t.Fatal(err)
		}
		c := &Conn{server: s, acceptor: s.internal, frameLimit: limit, stopped: make(chan struct{})}
		c.reader = reader{conn: c, greedy: greedy}
		rest, want := stream, cutAll(stream, limit)
		for len(rest) > 0 {
			c.reader.park()
			space, err := c.reader.space()
			if err != nil {
				t.Fatal(err)
			}
			n := copy(space, rest[:min(len(rest), int(step)+1)])
			rest = rest[n:]
			if err := c.reader.received(n); err != nil {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames, want %d", len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d differs", i)
			}
		}
		if charged := s.budget.inFlight(); charged > int64(16*max(len(stream), firstStep)) {
			t.Fatalf("%d bytes charged for %d", charged, len(stream))
		}
		c.reader.drop()
		if s.budget.inFlight() != 0 {
			t.Fatal("bytes stay charged")
		}
	})
}

// cutAll is the plain way to read frames, up to the first bad or unfinished one.
func cutAll(stream []byte, limit int) (frames [][]byte) {
	for len(stream) >= lengthSize {
		n := int32(binary.BigEndian.Uint32(stream))
		if n <= 0 || int(n) > limit || len(stream) < lengthSize+int(n) {
			return frames
		}
		frames = append(frames, stream[lengthSize:lengthSize+n])
		stream = stream[lengthSize+n:]
	}
	return frames
}
