package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// roundTrip is one request of 100 bytes and its answer, without allocations of its own.
func roundTrip(t testing.TB, c net.Conn) func() {
	request, answer := framed(string(make([]byte, 100))), make([]byte, 104)
	return func() {
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Fatal(err)
		}
	}
}

// ready answers every request with the same response, so that only the server's work counts.
func ready() Handler {
	response := &Response{Pieces: []Piece{{Bytes: make([]byte, 100)}}}
	return func(context.Context, *Conn, *Frame) Reply { return Reply{Response: response} }
}

// TestAllocations holds the server to its budget for a small request and its answer.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates and drops pooled objects")
	}
	file, _ := write(t, vfs.OS(), filepath.Join(t.TempDir(), "00.log"), 200_000)
	ranges := &Response{Pieces: []Piece{{Bytes: make([]byte, 40)}, {File: file, Length: 60}}}
	waiting := func(context.Context) *Response { return ranges }
	for name, test := range map[string]struct {
		handler Handler
		most    float64
	}{
		"ready":      {ready(), 0},
		"file range": {func(context.Context, *Conn, *Frame) Reply { return Reply{Response: ranges} }, 0},
		"waiting":    {func(context.Context, *Conn, *Frame) Reply { return Reply{Wait: waiting} }, 2},
	} {
		c := dial(t, start(t, Options{Handler: test.handler}))
		if got := testing.AllocsPerRun(2000, roundTrip(t, c)); got > test.most {
			t.Errorf("%s: %v allocations a request, at most %v expected", name, got, test.most)
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	run := func(b *testing.B, address string) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		trip := roundTrip(b, c)
		b.ReportAllocs()
		for b.Loop() {
			trip()
		}
	}
	b.Run("server", func(b *testing.B) { run(b, start(b, Options{Handler: ready()}).Addr("L").String()) })
	b.Run("minimal", func(b *testing.B) { run(b, minimal(b)) })
}

// minimal is the least that a server in Go can do for a frame: the bar for BenchmarkEcho.
func minimal(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buffer, answer := make([]byte, 16<<10), framed(string(make([]byte, 100)))
				for {
					if _, err := io.ReadAtLeast(c, buffer, 104); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func BenchmarkPipelined(b *testing.B) {
	c := dial(b, start(b, Options{Handler: ready()}))
	const depth = 50
	request := bytes.Repeat(framed(string(make([]byte, 100))), depth)
	answer := make([]byte, len(request))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*depth/b.Elapsed().Seconds(), "requests/s")
}

func BenchmarkFileRange(b *testing.B) {
	file, data := write(b, vfs.OS(), filepath.Join(b.TempDir(), "00.log"), 1<<20)
	for name, piece := range map[string]Piece{
		"sendfile": {File: file, Length: len(data)},
		"copy":     {File: undescribed{file}, Length: len(data)},
		"bytes":    {Bytes: data},
	} {
		b.Run(name, func(b *testing.B) {
			response := &Response{Pieces: []Piece{{Bytes: make([]byte, 60)}, piece}}
			c := dial(b, start(b, Options{Handler: func(context.Context, *Conn, *Frame) Reply {
				return Reply{Response: response}
			}}))
			request, answer := framed("x"), make([]byte, 4+60+len(data))
			b.ReportAllocs()
			b.SetBytes(int64(len(answer)))
			for b.Loop() {
				_, _ = c.Write(request)
				if _, err := io.ReadFull(c, answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// undescribed hides a file's descriptor.
type undescribed struct{ vfs.File }

func (undescribed) Descriptor() (fd uintptr, ok bool) { return 0, false }

// BenchmarkLargeFrames sends 1 MiB frames; nothing of them is copied after the first.
func BenchmarkLargeFrames(b *testing.B) {
	c := dial(b, start(b, Options{Handler: ready()}))
	request, answer := make([]byte, 4+1<<20), make([]byte, 104)
	binary.BigEndian.PutUint32(request, 1<<20)
	b.ReportAllocs()
	b.SetBytes(1 << 20)
	for b.Loop() {
		_, _ = c.Write(request)
		if _, err := io.ReadFull(c, answer); err != nil {
			b.Fatal(err)
		}
	}
}
