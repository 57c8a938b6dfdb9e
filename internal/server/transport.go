package server

import (
	"errors"
	"net"
	"os"
	"time"
)

const (
	// lingerTime and lingerBytes bound how long and how much is read after the last answer of a connection
	// that we close: closing with unread bytes makes the system reset it, which can destroy the answer on
	// its way.
	lingerTime  = time.Second
	lingerBytes = 64 << 10
	// writeStep is what a plain transport writes under one deadline.
	writeStep = 64 << 10
)

// transport moves a connection's bytes. pump is called once, by the reading goroutine; write and sendFile
// only by the connection's writer.
//
//	socket    plain TCP on Linux: reads greedily, sendfile, MSG_MORE
//	plain     TLS (a handshake wraps the socket), pipes, other systems: one read for a length, one for its frame
type transport interface {
	// pump feeds r until the connection ends and says why.
	pump(r *reader) error
	// write sends all vectors, which it may change; more says that the answer goes on.
	write(vectors [][]byte, more bool) error
	// writeNow sends what the socket takes without waiting, which may be nothing.
	writeNow(p []byte) (int, error)
	// sendsFiles reports whether sendFile is worth a call.
	sendsFiles() bool
	// sendFile sends a range of the file with descriptor fd and returns how much of it has left; with
	// errNoSendfile the rest has to be read and written.
	sendFile(fd uintptr, p *Piece) (int, error)
	// farewell tells the peer that nothing more comes; linger then gives it time to read the rest.
	farewell(linger bool)
}

// errNoSendfile says that this file or system cannot.
var errNoSendfile = errors.New("no sendfile here")

// plain is the transport for everything: TLS, memory, other systems' sockets.
type plain struct {
	conn     *Conn
	socket   net.Conn
	writeDue time.Duration // the write deadline that is set, since the server's start
}

var _ transport = (*plain)(nil)

func newPlain(c *Conn, socket net.Conn) *plain { return &plain{conn: c, socket: socket} }

func (p *plain) pump(r *reader) error {
	for {
		if err := p.conn.gate(); err != nil {
			return err
		}
		r.park()
		p.conn.arm()
		space, err := r.space()
		if err != nil {
			return err
		}
		n, err := p.socket.Read(space)
		if n > 0 {
			if err := r.received(n); err != nil {
				return err
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = p.conn.expired()
		}
		if err != nil {
			return err
		}
	}
}

// write sends in steps, each with at least half of the timeout, so that a slow peer is not a stuck one.
func (p *plain) write(vectors [][]byte, _ bool) error {
	for _, v := range vectors {
		for len(v) > 0 {
			step := v[:min(len(v), writeStep)]
			p.arm()
			if _, err := p.socket.Write(step); err != nil {
				return err
			}
			v = v[len(step):]
		}
	}
	return nil
}

// writeNow sends nothing: a write here may wait, for a handshake or for the reader of a pipe.
func (p *plain) writeNow([]byte) (int, error) { return 0, nil }

// arm moves the write deadline when less than half of the timeout is left.
func (p *plain) arm() {
	now, timeout := p.conn.server.now(), p.conn.server.options.WriteTimeout
	if p.writeDue-now < timeout/2 {
		p.writeDue = now + timeout
		p.conn.setWriteDeadline(p.writeDue)
	}
}

func (p *plain) sendsFiles() bool { return false }

func (p *plain) sendFile(uintptr, *Piece) (int, error) { return 0, errNoSendfile }

func (p *plain) farewell(linger bool) { farewell(p.conn, p.socket, linger) }

// setWriteDeadline sets the deadline, 0 for none, unless the connection has been killed by one in the past.
func (c *Conn) setWriteDeadline(due time.Duration) {
	var at time.Time
	if due != 0 {
		at = c.server.started.Add(due)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.dead {
		_ = c.mu.socket.SetWriteDeadline(at)
	}
}

// farewell is the transports' own, for sockets that can close one direction.
func farewell(c *Conn, socket net.Conn, linger bool) {
	half, ok := socket.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || !linger {
		return
	}
	c.mu.Lock()
	if !c.mu.dead {
		_ = socket.SetReadDeadline(time.Now().Add(lingerTime))
	}
	c.mu.Unlock()
	rest := c.server.buffers.Get(1)
	defer rest.Release()
	for read := 0; read < lingerBytes; {
		n, err := socket.Read(rest.Bytes)
		read += n
		if err != nil {
			return // the peer has closed too, or does not
		}
	}
}
