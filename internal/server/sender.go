package server

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

const (
	// smallPiece is up to where a byte piece is copied beside its neighbours: a copy of 4 KiB costs 50 ns, one
	// more vector or write many times that.
	smallPiece = 4 << 10
	// smallRange is up to where a file range is read and copied instead of sent by sendfile, measured: below
	// it one write wins, from 16 KiB on sendfile does.
	smallRange = 8 << 10
	// gatherSize is the buffer for what is copied; streamSize the one for file ranges that cannot go by
	// sendfile.
	gatherSize = 16 << 10
	streamSize = 256 << 10
	// vectorCount is how many slices are written at once.
	vectorCount = 16
)

// sender turns answers into writes. It belongs to the writer of a connection and lives as long as the
// writer has something to write. Copied bytes may stay in it until flush, so that several answers leave in
// one write; what is not copied has left, or failed, when add returns.
type sender struct {
	conn   *Conn
	buffer *Buffer // nil until needed
	used   int     // bytes of buffer taken
	from   int     // where the last vector begins in buffer, if own
	own    bool    // the last vector is of buffer
	// vectors are what has to be written, in order; slices of buffer among them.
	vectors  [][]byte
	space    [vectorCount][]byte // backs vectors
	borrowed bool                // a vector is not of buffer
}

// fileError says that a file range could not be sent whole; its length had been promised.
type fileError struct {
	file   vfs.File
	offset int64
	length int
	cause  error
}

// Error names what could not be sent.
func (e *fileError) Error() string {
	return fmt.Sprintf("%d bytes at %d of %s: %v", e.length, e.offset, e.file.Name(), e.cause)
}

// Unwrap gives the cause to errors.Is.
func (e *fileError) Unwrap() error { return e.cause }

// newSender returns an empty sender for c.
func newSender(c *Conn) *sender {
	w := c.server.senders.Get().(*sender)
	w.conn = c
	w.vectors = w.space[:0]
	return w
}

// discard gives the sender back, with what was not flushed.
func (w *sender) discard() {
	if w.buffer != nil {
		w.buffer.Release()
	}
	pool := &w.conn.server.senders
	*w = sender{}
	pool.Put(w)
}

// empty reports whether everything has been written.
func (w *sender) empty() bool { return len(w.vectors) == 0 }

// add appends an answer.
//
//	piece                          how it leaves
//	bytes up to 4 KiB              copied into the buffer
//	longer bytes                   a vector of their own; written before add returns
//	file range up to 8 KiB         read into the buffer
//	longer, Linux TCP              what is gathered goes out with MSG_MORE, then sendfile
//	longer, elsewhere              through the buffer, 256 KiB at a time
//
//	vectors   [ buffer[0:21] ] [ piece ] [ buffer[21:60] ] ...      up to 16, then they are written
func (w *sender) add(r *Response) error {
	room, err := w.room(lengthSize)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(room, uint32(r.size()))
	w.take(lengthSize)
	for i := range r.Pieces {
		p := &r.Pieces[i]
		switch {
		case p.File == nil && len(p.Bytes) <= smallPiece:
			err = w.copy(p.Bytes)
		case p.File == nil:
			err = w.gather(p.Bytes)
		default:
			err = w.file(p)
		}
		if err != nil {
			return err
		}
	}
	if w.borrowed {
		return w.flush()
	}
	return nil
}

// room makes n bytes at the end of the buffer, writing out what is in the way, and returns them. They
// count once take says so.
func (w *sender) room(n int) ([]byte, error) {
	if w.buffer != nil && w.used+n > len(w.buffer.Bytes) || len(w.vectors) == vectorCount {
		if err := w.push(true); err != nil {
			return nil, err
		}
		if w.buffer != nil && n > len(w.buffer.Bytes) {
			w.buffer.Release()
			w.buffer = nil
		}
	}
	if w.buffer == nil {
		w.buffer = w.conn.server.buffers.Get(max(n, gatherSize))
	}
	return w.buffer.Bytes[w.used : w.used+n], nil
}

// take appends the n bytes behind used to what has to be written.
func (w *sender) take(n int) {
	if !w.own {
		w.from, w.own = w.used, true
		w.vectors = append(w.vectors, nil)
	}
	w.used += n
	w.vectors[len(w.vectors)-1] = w.buffer.Bytes[w.from:w.used]
}

// copy appends a small piece.
func (w *sender) copy(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	room, err := w.room(len(p))
	if err != nil {
		return err
	}
	copy(room, p)
	w.take(len(p))
	return nil
}

// gather appends a large piece without copying it.
func (w *sender) gather(p []byte) error {
	if len(w.vectors) == vectorCount {
		if err := w.push(true); err != nil {
			return err
		}
	}
	w.vectors = append(w.vectors, p)
	w.own, w.borrowed = false, true
	return nil
}

// file appends a range, the cheapest way that the connection and the file have.
func (w *sender) file(p *Piece) error {
	if p.Length == 0 {
		return nil
	}
	if fd, ok := p.File.Descriptor(); ok && p.Length > smallRange && w.conn.transport.sendsFiles() {
		if err := w.push(true); err != nil {
			return err
		}
		sent, err := w.conn.transport.sendFile(fd, p)
		w.conn.counted(int64(sent), int64(sent))
		if err != errNoSendfile {
			return err
		}
		return w.stream(p, sent)
	}
	return w.stream(p, 0)
}

// stream appends a range from done on through the buffer, in as many writes as it takes.
func (w *sender) stream(p *Piece, done int) error {
	for done < p.Length {
		n := min(p.Length-done, streamSize)
		room, err := w.room(n)
		if err != nil {
			return err
		}
		if err := w.conn.server.readFile(p, done, room); err != nil {
			return err
		}
		w.take(n)
		done += n
	}
	return nil
}

// readFile fills dst from the range.
func (s *Server) readFile(p *Piece, from int, dst []byte) error {
	s.fileReads <- struct{}{}
	n, err := p.File.ReadAt(dst, p.Offset+int64(from))
	<-s.fileReads
	if n == len(dst) {
		return nil // io.EOF right behind it is no fault
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &fileError{file: p.File, offset: p.Offset + int64(from), length: len(dst), cause: err}
}

// flush writes everything.
func (w *sender) flush() error { return w.push(false) }

// push writes everything; more says that the answer goes on, so that the system may wait for it before
// it sends a short packet.
func (w *sender) push(more bool) error {
	if len(w.vectors) == 0 {
		return nil
	}
	size := 0
	for _, v := range w.vectors {
		size += len(v)
	}
	err := w.conn.transport.write(w.vectors, more)
	w.reset()
	if err != nil {
		return err
	}
	w.conn.counted(int64(size), 0)
	return nil
}

// reset forgets what has been written.
func (w *sender) reset() {
	clear(w.space[:])
	w.vectors, w.used, w.own, w.borrowed = w.space[:0], 0, false, false
}

// fits reports whether an answer can be added without a write, and without waiting for anything: it is copied
// beside what is there, and follows from nothing.
func (w *sender) fits(s *slot) bool {
	if s.hold || s.close {
		return false
	}
	if s.response == nil {
		return true
	}
	if s.response.Close {
		return false
	}
	size := lengthSize
	for i := range s.response.Pieces {
		p := &s.response.Pieces[i]
		n := p.length()
		switch {
		case n < 0 || p.File == nil && n > smallPiece || p.File != nil && n > smallRange:
			return false
		case p.File != nil && len(w.conn.server.fileReads) == cap(w.conn.server.fileReads):
			return false
		}
		size += n
	}
	return w.used+size <= gatherSize
}

// flushNow writes what the connection takes at once; left says that there is more. It is for a sender with answers
// that fit: they are in one vector.
func (w *sender) flushNow() (left bool, err error) {
	n, err := w.conn.transport.writeNow(w.vectors[0])
	w.conn.counted(int64(n), 0)
	if err == nil && n < len(w.vectors[0]) {
		w.vectors[0] = w.vectors[0][n:]
		w.from += n
		return true, nil
	}
	w.reset()
	return false, err
}

// counted notes bytes that left.
func (c *Conn) counted(bytes, bySendfile int64) {
	c.acceptor.counters.bytesOut.Add(bytes)
	c.acceptor.counters.sendfileBytes.Add(bySendfile)
}
