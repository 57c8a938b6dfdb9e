package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// brokenFile is a file of which nothing can be read.
type brokenFile struct{ vfs.File }

func (brokenFile) ReadAt([]byte, int64) (int, error) { return 0, errors.New("input/output error") }
func (brokenFile) Descriptor() (fd uintptr, ok bool) { return 0, false }
func (brokenFile) Name() string                      { return "broken.log" }

// write makes a file of random bytes.
func write(t testing.TB, fs vfs.FS, name string, size int) (vfs.File, []byte) {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data) // never fails
	f, err := fs.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return f, data
}

// randomPieces are pieces of all kinds and sizes, and the bytes that they stand for.
func randomPieces(random *rand.Rand, f vfs.File, data []byte) (pieces []Piece, want []byte) {
	for range 1 + random.IntN(30) {
		length := random.IntN(1 + random.IntN(1<<random.IntN(19)))
		from := random.IntN(len(data) - length)
		if random.IntN(2) == 0 {
			pieces = append(pieces, Piece{Bytes: data[from : from+length]})
		} else {
			pieces = append(pieces, Piece{File: f, Offset: int64(from), Length: length})
		}
		want = append(want, data[from:from+length]...)
	}
	return pieces, want
}

// TestPieces sends random answers over TCP and through memory, from real files and from memory, and
// compares what arrives.
func TestPieces(t *testing.T) {
	dir := t.TempDir()
	real, data := write(t, vfs.OS(), filepath.Join(dir, "00.log"), 1<<20)
	if err := os.Remove(filepath.Join(dir, "00.log")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err) // an unlinked segment must still be readable
	}
	memory := vfs.NewMemory()
	inMemory, _ := write(t, memory, "00.log", 1<<20)
	for _, file := range []vfs.File{real, inMemory} {
		for _, way := range []string{"tcp", "pipe"} {
			t.Run(fmt.Sprintf("%T/%s", file, way), func(t *testing.T) { testPieces(t, file, data, way) })
		}
	}
}

func testPieces(t *testing.T, file vfs.File, data []byte, way string) {
	var released atomic.Int64
	random := rand.New(rand.NewPCG(9, 10))
	wants := make(chan []byte, 1000)
	s := start(t, Options{Handler: func(_ context.Context, _ *Conn, f *Frame) Reply {
		pieces, want := randomPieces(random, file, data)
		wants <- want
		return Reply{Response: &Response{Pieces: pieces, Release: func() { released.Add(1) }}}
	}})
	c := attach(t, s.Pipe())
	if way == "tcp" {
		c = dial(t, s)
	}
	const rounds, pipelined = 60, 5
	for range rounds {
		go c.send("1", "2", "3", "4", "5")
		for range pipelined {
			got, err := c.receive()
			if want := <-wants; err != nil || !bytes.Equal([]byte(got), want) {
				t.Fatalf("%d bytes, %v; want %d", len(got), err, len(want))
			}
		}
	}
	eventually(t, "release of all answers", func() bool { return released.Load() == rounds*pipelined })
	stats := s.Stats().Listeners
	_, isReal := file.Descriptor()
	if bySendfile := stats[0].SendfileBytes > 0; bySendfile != (isReal && way == "tcp" && runtime.GOOS == "linux") {
		t.Errorf("%d of %d bytes went by sendfile", stats[0].SendfileBytes, stats[0].BytesOut)
	}
}

// TestShortFile promises more than the file has: the connection is closed, since the length is out.
func TestShortFile(t *testing.T) {
	real, _ := write(t, vfs.OS(), filepath.Join(t.TempDir(), "00.log"), 100_000)
	inMemory, _ := write(t, vfs.NewMemory(), "00.log", 100_000)
	for _, file := range []vfs.File{real, inMemory, brokenFile{}} {
		for _, length := range []int{100, 100_000} {
			t.Run(fmt.Sprintf("%T/%d", file, length), func(t *testing.T) {
				log := new(journal)
				released := make(chan struct{})
				s := start(t, Options{Logger: log.logger(), Handler: func(context.Context, *Conn, *Frame) Reply {
					return Reply{Response: &Response{
						Pieces:  []Piece{{Bytes: []byte("header")}, {File: file, Offset: 99_950, Length: length}},
						Release: func() { close(released) },
					}}
				}})
				c := dial(t, s)
				c.send("x")
				if got, err := c.receive(); err == nil {
					t.Errorf("a whole answer of %d bytes", len(got))
				}
				<-released
				closedBy(t, s, endBadFile)
				if !strings.Contains(log.String(), file.Name()) {
					t.Errorf("logged %s", log)
				}
			})
		}
	}
}

// TestSlowReader has a client take an answer in small steps: it arrives whole.
func TestSlowReader(t *testing.T) {
	file, data := write(t, vfs.OS(), filepath.Join(t.TempDir(), "00.log"), 8<<20)
	s := start(t, Options{SendBuffer: 20_000, Handler: func(context.Context, *Conn, *Frame) Reply {
		return Reply{Response: &Response{Pieces: []Piece{{Bytes: data[:1<<20]}, {File: file, Length: 8 << 20}}}}
	}})
	c := dial(t, s)
	_ = c.Conn.(*net.TCPConn).SetReadBuffer(20_000)
	c.send("x", "y")
	for range 2 {
		got, err := c.receive()
		if err != nil || got != string(data[:1<<20])+string(data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
}

// TestStuckReader has a client take nothing, or next to nothing: it is closed, and the pieces are released.
func TestStuckReader(t *testing.T) {
	file, data := write(t, vfs.OS(), filepath.Join(t.TempDir(), "00.log"), 4<<20)
	for name, piece := range map[string]Piece{"bytes": {Bytes: data}, "file": {File: file, Length: len(data)}} {
		t.Run(name, func(t *testing.T) {
			log := new(journal)
			released := make(chan struct{})
			s := start(t, Options{WriteTimeout: 50 * time.Millisecond, SendBuffer: 20_000, Logger: log.logger(),
				Handler: func(context.Context, *Conn, *Frame) Reply {
					return Reply{Response: &Response{Pieces: []Piece{piece}, Release: func() { close(released) }}}
				}})
			c := dial(t, s)
			_ = c.Conn.(*net.TCPConn).SetReadBuffer(20_000)
			c.send("x")
			<-released
			closedBy(t, s, endStuckWrite)
			if !strings.Contains(log.String(), "takes no answer") {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// TestStuckReaderInMemory is the same for connections that are no sockets.
func TestStuckReaderInMemory(t *testing.T) {
	handler := func(context.Context, *Conn, *Frame) Reply { return Reply{Response: text(strings.Repeat("x", 1<<20))} }
	inBubble(t, Options{Handler: handler}, func(t *testing.T, s *Server, l *memoryListener) {
		begun := time.Now()
		slow, stuck := l.dial(t, "10.0.0.2"), l.dial(t, "10.0.0.2")
		slow.send("x")
		stuck.send("x")
		for range 1<<20/(64<<10) + 1 {
			pass(time.Minute)
			if _, err := slow.Read(make([]byte, 64<<10)); err != nil {
				t.Fatalf("the slow reader was closed after %v: %v", time.Since(begun), err)
			}
		}
		synctest.Wait()
		if got := s.Stats().Listeners[0].Closed["stuck-write"]; got != 1 {
			t.Errorf("%d closed for stuck writes", got)
		}
	})
}

// TestAnswersShareWrites pipelines small requests in one segment; their answers leave in one, too.
func TestAnswersShareWrites(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems' transport reads and answers frame by frame")
	}
	s := start(t, Options{Handler: echo})
	c := dial(t, s)
	for range 20 {
		c.send("a", "b", "c")
		got := make([]byte, 100)
		n, err := c.Read(got)
		if want := append(append(framed("a"), framed("b")...), framed("c")...); err != nil || !bytes.Equal(got[:n], want) {
			t.Fatalf("%q, %v", got[:n], err)
		}
	}
}
