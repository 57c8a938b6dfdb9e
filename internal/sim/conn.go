package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how many bytes one direction of a connection takes before its reader has read them.
const window = 256 << 10

// end is one end of a connection.
type end struct {
	network *network
	host    string
	peer    *end
	out     *stream // what this end sends

	read, write deadline
	// readable and writable have a value when it is worth to look again.
	readable, writable chan struct{}

	mu struct {
		sync.Mutex
		inbox    []byte
		finished bool  // the peer sends no more
		closed   bool  // by this side
		broken   error // the connection is gone
		flying   int   // bytes of ours that the peer has not read
	}
}

var _ net.Conn = (*end)(nil)

func newEnd(n *network, host string, out *stream) *end {
	e := &end{network: n, host: host, out: out, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1)}
	e.read.init()
	e.write.init()
	return e
}

// Read implements net.Conn.
func (e *end) Read(b []byte) (int, error) {
	for {
		expired := e.read.wait()
		select {
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		n, err, done := e.take(b)
		if n > 0 {
			e.peer.taken(n)
		}
		if done {
			return n, err
		}
		select {
		case <-e.readable:
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// take reads what has arrived; not done where nothing has.
func (e *end) take(b []byte) (n int, err error, done bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.mu.closed:
		return 0, net.ErrClosed, true
	case len(e.mu.inbox) > 0 && e.mu.broken == nil:
		n = copy(b, e.mu.inbox)
		e.mu.inbox = e.mu.inbox[n:]
		if len(e.mu.inbox) > 0 {
			signal(e.readable)
		}
		return n, nil, true
	case e.mu.broken != nil:
		return 0, e.mu.broken, true
	case e.mu.finished:
		return 0, io.EOF, true
	}
	return 0, nil, len(b) == 0
}

// taken makes room for n more bytes.
func (e *end) taken(n int) {
	e.mu.Lock()
	e.mu.flying -= n
	e.mu.Unlock()
	signal(e.writable)
}

// Write implements net.Conn.
func (e *end) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		expired := e.write.wait()
		select {
		case <-expired:
			return written, os.ErrDeadlineExceeded
		default:
		}
		n, err := e.put(b)
		if err != nil {
			return written, err
		}
		written, b = written+n, b[n:]
		if n > 0 || len(b) == 0 {
			continue
		}
		select {
		case <-e.writable:
		case <-expired:
			return written, os.ErrDeadlineExceeded
		}
	}
	return written, nil
}

// put sends as much as the window takes.
func (e *end) put(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.mu.closed:
		return 0, net.ErrClosed
	case e.mu.broken != nil:
		return 0, e.mu.broken
	}
	n := min(len(b), window-e.mu.flying)
	if n <= 0 {
		return 0, nil
	}
	data := append([]byte(nil), b[:n]...)
	e.mu.flying += n
	e.network.send(e.out, func() { e.peer.arrive(data) })
	return n, nil
}

// arrive takes bytes in. A side that has closed, or a life that has ended, answers with a reset.
func (e *end) arrive(data []byte) {
	e.mu.Lock()
	gone := e.mu.closed || e.mu.broken != nil
	if !gone {
		e.mu.inbox = append(e.mu.inbox, data...)
	}
	e.mu.Unlock()
	if gone {
		if !e.network.isDark(e.host) {
			e.network.send(e.out, func() { e.peer.reset(syscall.ECONNRESET) })
		}
		return
	}
	signal(e.readable)
}

// reset breaks the connection at this end.
func (e *end) reset(why error) {
	e.mu.Lock()
	if e.mu.broken == nil {
		e.mu.broken = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", why)}
	}
	e.mu.Unlock()
	signal(e.readable)
	signal(e.writable)
}

// Close implements net.Conn: what was written still arrives, and then the end.
func (e *end) Close() error {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return net.ErrClosed
	}
	e.mu.closed = true
	broken := e.mu.broken != nil
	if !broken {
		e.network.send(e.out, func() {
			e.peer.mu.Lock()
			e.peer.mu.finished = true
			e.peer.mu.Unlock()
			signal(e.peer.readable)
		})
	}
	e.mu.Unlock()
	e.network.forget(e)
	signal(e.readable)
	signal(e.writable)
	return nil
}

// signal says that it is worth to look again.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// LocalAddr implements net.Conn.
func (e *end) LocalAddr() net.Addr { return address(e.host + ":0") }

// RemoteAddr implements net.Conn.
func (e *end) RemoteAddr() net.Addr { return address(e.peer.host + ":0") }

// SetDeadline implements net.Conn.
func (e *end) SetDeadline(t time.Time) error {
	e.read.set(t)
	e.write.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (e *end) SetReadDeadline(t time.Time) error {
	e.read.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (e *end) SetWriteDeadline(t time.Time) error {
	e.write.set(t)
	return nil
}

// deadline is a time that may be moved while somebody waits for it.
type deadline struct {
	mu      sync.Mutex
	moved   int // how often it was set
	timer   *time.Timer
	expired chan struct{} // closed when the time has come
}

func (d *deadline) init() { d.expired = make(chan struct{}) }

// wait is closed when the deadline has passed.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expired
}

// set moves the deadline; the zero time is none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.moved++
	select {
	case <-d.expired:
		d.expired = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	left, moved := time.Until(t), d.moved
	if left <= 0 {
		close(d.expired)
		return
	}
	d.timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.moved == moved {
			close(d.expired)
		}
	})
}
