package server

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxSendfile is what one sendfile is asked for; the kernel moves less than 2 GiB at once.
const maxSendfile = 1 << 30

// socket is the transport for plain TCP on Linux: one system call to read a request, one to write an
// answer, one for a header and one for a file range.
//
// The whole loop runs inside one RawConn.Read. There the runtime keeps every readiness that epoll reports
// (it is edge-triggered) until the loop waits, while each net.Conn.Read first forgets it and so must try
// to read before it may wait: a system call that ends in EAGAIN for each request. The loop leaves that
// try out when two things hold: TCP_INQ has said that neither bytes nor an end of stream are left, so
// that what comes next is a new edge; and an answer was written since, so that a reset which that edge
// had already covered would have failed the write.
type socket struct {
	conn    *Conn
	tcp     *net.TCPConn
	raw     syscall.RawConn
	inquire bool // TCP_INQ works
	ended   error

	// The rest belongs to the writer.
	writeTurn, nowTurn, fileTurn func(fd uintptr) bool // bound once: each binding allocates
	vectors                      [][]byte
	flags                        int
	now                          []byte
	piece                        *Piece
	file                         uintptr
	done                         int
	failed                       error
	writeDue                     time.Duration // the deadline that is set, since the server's start; 0 none
	moved                        int           // bytes since then
}

var _ transport = (*socket)(nil)

// newTransport picks the transport for a socket that no handshake wrapped.
func newTransport(c *Conn, conn net.Conn) transport {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return newPlain(c, conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return newPlain(c, conn)
	}
	s := &socket{conn: c, tcp: tcp, raw: raw}
	s.writeTurn, s.nowTurn, s.fileTurn = s.writeSome, s.writeOnce, s.fileSome
	err = raw.Control(func(fd uintptr) {
		s.inquire = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_INQ, 1) == nil
	})
	s.inquire = s.inquire && err == nil
	return s
}

func (s *socket) pump(r *reader) error {
	r.greedy = true
	for {
		err := s.raw.Read(s.readSome)
		switch {
		case s.ended != nil:
			return s.ended
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		if err := s.conn.expired(); err != nil {
			return err
		}
	}
}

// readSome reads and serves until there is nothing to read; true ends the pump.
//
//	gate ─▶ space ─▶ recvmsg ─▶ n bytes: received serves every whole frame, flush writes the answers ─▶ again
//	                        ├▶ EAGAIN: rest, wait for an edge
//	                        └▶ 0: the peer has closed its side
//
// It returns false to wait in the poller, with no buffer held between frames, and true to leave for good.
func (s *socket) readSome(fd uintptr) bool {
	r := &s.conn.reader
	for {
		if s.ended = s.conn.gate(); s.ended != nil {
			return true
		}
		space, err := r.space()
		if err != nil {
			s.ended = err
			return true
		}
		r.answered = false
		n, drained, err := s.receive(int(fd), space)
		switch {
		case err == unix.EAGAIN:
			return s.rest(r)
		case err != nil:
			s.ended = err
			return true
		case n == 0:
			s.ended = io.EOF
			return true
		}
		if s.ended = r.received(n); s.ended != nil {
			return true
		}
		if drained && r.answered && r.idle() {
			return s.rest(r)
		}
	}
}

// rest prepares for waiting.
func (s *socket) rest(r *reader) bool {
	r.park()
	s.conn.arm()
	return false
}

// receive reads what is there. drained says that for certain nothing is left, not even an end of stream.
func (s *socket) receive(fd int, p []byte) (n int, drained bool, err error) {
	for {
		if s.inquire {
			n, drained, err = receiveInquiring(fd, p)
		} else {
			n, err = unix.Read(fd, p)
		}
		if err != unix.EINTR {
			return n, drained, err
		}
	}
}

func (s *socket) write(vectors [][]byte, more bool) error {
	s.vectors, s.flags = vectors, unix.MSG_NOSIGNAL
	if more {
		s.flags |= unix.MSG_MORE
	}
	err := s.raw.Write(s.writeTurn)
	s.vectors = nil
	return s.finish(err)
}

// writeSome writes until everything has left; false waits for the socket to take more.
//
// A short write moves on in the vectors, in place: they are the sender's, which does not look at them again.
func (s *socket) writeSome(fd uintptr) bool {
	for len(s.vectors) > 0 {
		n, err := sendVectors(int(fd), s.vectors, s.flags)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			s.stall()
			return false
		case err != nil:
			s.failed = err
			return true
		default:
			s.moved += n
			s.vectors = consume(s.vectors, n)
		}
	}
	return true
}

func (s *socket) writeNow(p []byte) (int, error) {
	s.now, s.done = p, 0
	err := s.finish(s.raw.Write(s.nowTurn))
	s.now = nil
	return s.done, err
}

// writeOnce writes what the socket takes; it never waits.
func (s *socket) writeOnce(fd uintptr) bool {
	for {
		n, err := sendBytes(int(fd), s.now)
		switch {
		case err == unix.EINTR:
			continue
		case err == nil:
			s.done = n
		case err != unix.EAGAIN:
			s.failed = err
		}
		return true
	}
}

// consume takes n written bytes off the front.
func consume(vectors [][]byte, n int) [][]byte {
	for len(vectors) > 0 && n >= len(vectors[0]) {
		n -= len(vectors[0])
		vectors = vectors[1:]
	}
	if n > 0 {
		vectors[0] = vectors[0][n:]
	}
	return vectors
}

func (s *socket) sendsFiles() bool { return true }

func (s *socket) sendFile(fd uintptr, p *Piece) (int, error) {
	s.file, s.piece, s.done = fd, p, 0
	err := s.finish(s.raw.Write(s.fileTurn))
	s.piece = nil
	return s.done, err
}

// fileSome sends until the range has left; false waits for the socket to take more.
//
// Errors of the file and of the socket come out of one call. What can only be the peer's ends the connection quietly;
// the rest names file and offset, as it may be the disk's.
func (s *socket) fileSome(fd uintptr) bool {
	for s.done < s.piece.Length {
		n, err := s.sendRange(int(fd))
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			s.stall()
			return false
		case err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP:
			s.failed = errNoSendfile
			return true
		case err == unix.EPIPE || err == unix.ECONNRESET || err == unix.ETIMEDOUT:
			s.failed = err
			return true
		case err != nil || n == 0:
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			s.failed = &fileError{
				file: s.piece.File, offset: s.piece.Offset + int64(s.done), length: s.piece.Length - s.done, cause: err,
			}
			return true
		default:
			s.moved += n
			s.done += n
		}
	}
	return true
}

// sendRange is one sendfile. The offset is explicit: the descriptor and its position are everybody's.
func (s *socket) sendRange(fd int) (int, error) {
	offset := s.piece.Offset + int64(s.done)
	reads := s.conn.server.fileReads // it may wait for the disk, on a thread
	reads <- struct{}{}
	n, err := unix.Sendfile(fd, int(s.file), &offset, min(s.piece.Length-s.done, maxSendfile))
	<-reads
	return n, err
}

// stall sets the write deadline before the goroutine waits for the peer to take more. It moves on only
// when the peer took a fair amount.
//
//	moved    less than 32 KiB since the deadline was set: it stays, and the peer is stuck when it passes
//	         more: it is set anew, so that a slow peer that reads is served for as long as it takes
func (s *socket) stall() {
	if s.writeDue == 0 || s.moved >= frameProgress {
		s.writeDue, s.moved = s.conn.server.now()+s.conn.server.options.WriteTimeout, 0
		s.conn.setWriteDeadline(s.writeDue)
	}
}

// finish ends a write: err is what waiting for the socket came to.
func (s *socket) finish(err error) error {
	if s.failed != nil {
		err, s.failed = s.failed, nil
	}
	s.moved = 0
	if s.writeDue != 0 && err == nil {
		s.writeDue = 0
		s.conn.setWriteDeadline(0)
		s.conn.lastActive.Store(int64(s.conn.server.now()))
	}
	return err
}

func (s *socket) farewell(linger bool) { farewell(s.conn, s.tcp, linger) }
