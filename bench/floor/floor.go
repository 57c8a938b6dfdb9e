package floor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"
)

// Server is a floor server. Its topics are those that a client has created.
type Server struct {
	dir     string // "" throws records away
	address *net.TCPAddr

	mu     sync.Mutex
	topics map[string][]*partition
	// appended is closed, and made anew, when a partition gets longer while somebody waits.
	appended chan struct{}
	waiting  int
}

// Serve answers on a listener until it is closed. Records go to files in dir; they are thrown away where dir is "".
func Serve(listener net.Listener, dir string) error {
	s := &Server{dir: dir, address: listener.Addr().(*net.TCPAddr), topics: map[string][]*partition{}, appended: make(chan struct{})}
	return accept(listener, func(conn net.Conn) { s.serve(conn.(*net.TCPConn)) })
}

// accept serves every connection in a goroutine of its own, until the listener is closed.
func accept(listener net.Listener, serve func(net.Conn)) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		go serve(conn)
	}
}

// Echo sends back whatever comes on any connection, until the listener is closed.
func Echo(listener net.Listener) error {
	return accept(listener, func(conn net.Conn) {
		defer conn.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if _, err := conn.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
}

// serve answers one request after another.
func (s *Server) serve(conn *net.TCPConn) {
	defer func() { _ = conn.Close() }() // the client notices
	frames := &frames{conn: conn, buffer: make([]byte, 64<<10), guess: 4 << 10}
	out := make([]byte, 0, 64<<10)
	for {
		frame, err := frames.next()
		if err != nil {
			return
		}
		if out, err = s.answer(conn, frame, out[:0]); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				fmt.Fprintln(os.Stderr, "floor:", err)
			}
			return
		}
	}
}

// frames reads requests; the next one is expected to be as long as the last, so that it is read in one piece.
type frames struct {
	conn   net.Conn
	buffer []byte
	have   int // bytes in buffer
	used   int // of them those of the last frame
	guess  int
}

// next returns a request without its length; it is valid until the next call.
func (f *frames) next() ([]byte, error) {
	f.have = copy(f.buffer, f.buffer[f.used:f.have])
	f.used = 0
	want := f.guess
	for {
		if f.have >= 4 {
			size := 4 + int(binary.BigEndian.Uint32(f.buffer))
			if size > 256<<20 {
				return nil, fmt.Errorf("a request of %d bytes", size)
			}
			if f.have >= size {
				f.used, f.guess = size, size
				return f.buffer[4:size], nil
			}
			want = size
		}
		if len(f.buffer) < want {
			f.buffer = append(make([]byte, 0, want), f.buffer[:f.have]...)[:want]
		}
		n, err := f.conn.Read(f.buffer[f.have:max(want, f.have+1)])
		if err != nil {
			return nil, err
		}
		f.have += n
	}
}

// partition is a file with batches.
type partition struct {
	mu      sync.Mutex
	file    *os.File // nil where records are thrown away
	end     int64    // the next offset
	size    int64
	batches []placed
}

// placed says where in the file a batch begins.
type placed struct{ offset, position int64 }

func (s *Server) create(topic string, partitions int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[topic] != nil {
		return fmt.Errorf("topic %s exists", topic)
	}
	made := make([]*partition, partitions)
	for i := range made {
		made[i] = &partition{}
		if s.dir == "" {
			continue
		}
		var err error
		if made[i].file, err = os.Create(filepath.Join(s.dir, fmt.Sprintf("%s-%d", topic, i))); err != nil {
			return err
		}
	}
	s.topics[topic] = made
	return nil
}

func (s *Server) remove(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.topics[topic] {
		if p.file != nil {
			// Its pages go, dirty ones too. It is not closed: somebody may be reading it.
			_ = errors.Join(os.Remove(p.file.Name()), p.file.Truncate(0)) // it is in a folder that is deleted anyway
		}
	}
	delete(s.topics, topic)
}

// find returns a partition, nil where there is none.
func (s *Server) find(topic []byte, number int32) *partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	partitions := s.topics[string(topic)]
	if number < 0 || int(number) >= len(partitions) {
		return nil
	}
	return partitions[number]
}

// wake wakes those who wait for records.
func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 {
		close(s.appended)
		s.appended, s.waiting = make(chan struct{}), 0
	}
}

// await waits until something is appended, or a while has passed.
func (s *Server) await(appended <-chan struct{}, while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-appended:
		return true
	case <-timer.C:
		return false
	}
}

// next is what await waits for; whoever looks for records takes it first.
func (s *Server) nextAppend() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	return s.appended
}

// from finds the file's bytes from the batch with an offset on, up to most bytes and at least one batch, and the end.
func (p *partition) from(offset, most int64) (position, length, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset >= p.end || p.file == nil {
		return 0, 0, p.end
	}
	first := sort.Search(len(p.batches), func(i int) bool { return p.batches[i].offset > offset }) - 1
	position = p.batches[first].position
	length = min(p.size-position, most)
	if first+1 < len(p.batches) {
		length = max(length, p.batches[first+1].position-position)
	} else {
		length = p.size - position
	}
	return position, length, p.end
}
