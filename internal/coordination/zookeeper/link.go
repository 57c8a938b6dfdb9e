package zookeeper

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/jute"
)

// link is one connection of a session. reader and writer are goroutines of their own; flying and the xids
// belong to the session's lock.
type link struct {
	session *Session
	server  string
	conn    net.Conn
	reader  *bufio.Reader
	// patience is a third of the session's timeout: how long the server may be silent.
	patience time.Duration

	flying []*request // sent and not answered, in the order of their xids
	xid    int32      // the last one given
	pinged time.Time  // when the ping that is under way was sent

	failing sync.Once
	failed  chan struct{} // closed when the connection is given up
	reason  error         // why; read after failed is closed
}

// maxReply bounds what a server may answer: a list of a million children is well below it.
const maxReply = 64 << 20

// newLink wraps a connection.
func newLink(s *Session, server string, conn net.Conn, patience time.Duration) *link {
	l := &link{session: s, server: server, conn: conn, patience: patience, failed: make(chan struct{})}
	l.reader = bufio.NewReaderSize(impatient{l}, 64<<10)
	return l
}

// fail gives the connection up. The first reason stays.
func (l *link) fail(reason error) {
	l.failing.Do(func() {
		l.reason = reason
		close(l.failed)
		_ = l.conn.Close() // what it says adds nothing to the reason
	})
}

// serve sends and receives until the connection breaks, and returns why.
func (l *link) serve() error {
	var writing sync.WaitGroup
	writing.Go(l.write)
	l.fail(l.read())
	writing.Wait()
	return l.reason
}

// impatient reads from the connection and gives up after a time without a byte.
type impatient struct{ l *link }

// Read implements io.Reader.
func (i impatient) Read(b []byte) (int, error) {
	if err := i.l.conn.SetReadDeadline(time.Now().Add(i.l.patience)); err != nil {
		return 0, err
	}
	n, err := i.l.conn.Read(b)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		err = fmt.Errorf("no answer from %s for %v", i.l.server, i.l.patience)
	}
	return n, err
}

// packet reads one packet without its length. Memory is taken only as the bytes come.
func (l *link) packet() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(l.reader, length[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(length[:])))
	if n < 0 || n > maxReply {
		return nil, fmt.Errorf("%s sent a packet of %d bytes, and %d are allowed", l.server, n, maxReply)
	}
	if n <= 1<<20 {
		b := make([]byte, n)
		_, err := io.ReadFull(l.reader, b)
		return b, err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, l.reader, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// read takes answers and events until the connection breaks.
func (l *link) read() error {
	for {
		packet, err := l.packet()
		if err != nil {
			return err
		}
		if err := l.received(packet); err != nil {
			return err
		}
	}
}

// received hands one packet on. An error breaks the connection.
func (l *link) received(packet []byte) error {
	r := jute.NewReader(packet)
	var header jute.ReplyHeader
	header.Read(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("%s: %w", l.server, err)
	}
	switch header.Xid {
	case jute.XidEvent:
		return l.event(r)
	case jute.XidPing:
		l.session.ponged(l, header)
		return nil
	case jute.XidAuth, jute.XidSetWatches:
		return nil // those of the login are read there
	}
	q, took, err := l.session.answered(l, header)
	if err != nil {
		return err
	}
	l.session.store.options.Observe(took)
	q.finish(r.Rest(), errorOf(header.Err))
	switch header.Err {
	case jute.SessionExpired:
		l.session.end(errExpired())
		return errExpired()
	case jute.SessionMoved: // a delayed packet of ours reached a server that we have left
		return fmt.Errorf("%s: %w", l.server, header.Err)
	}
	return nil
}

// event hands an event to the watches.
func (l *link) event(r *jute.Reader) error {
	var event jute.WatchEvent
	event.Read(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("an event of %s: %w", l.server, err)
	}
	l.session.dispatch(event)
	return nil
}

// answered takes the oldest request that is under way, which is what a reply is for, and how long it took.
func (s *Session) answered(l *link, header jute.ReplyHeader) (*request, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.flying) == 0 || l.flying[0].xid != header.Xid {
		return nil, 0, fmt.Errorf("%s answered request %d, which is not the next", l.server, header.Xid)
	}
	r := l.flying[0]
	l.flying[0] = nil
	l.flying = l.flying[1:]
	s.mu.zxid, r.zxid = max(s.mu.zxid, header.Zxid), header.Zxid
	s.heardLocked(r.sent)
	return r, time.Since(r.sent), nil
}

// ponged notes the answer to a ping.
func (s *Session) ponged(l *link, header jute.ReplyHeader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.zxid = max(s.mu.zxid, header.Zxid)
	s.heardLocked(l.pinged)
	l.pinged = time.Time{}
}

// maxBatch is how many requests are taken for one write.
const maxBatch = 256

// write sends what is queued, and pings where nothing is, until the connection breaks.
func (l *link) write() {
	idle := time.NewTimer(l.patience / 2)
	defer idle.Stop()
	w := bufio.NewWriterSize(l.conn, 64<<10)
	for {
		frames := l.session.take(l)
		if len(frames) == 0 {
			select {
			case <-l.session.wake:
				continue
			case <-idle.C:
				if frames = l.session.ping(l); frames == nil {
					idle.Reset(l.patience / 2) // the last one has not been answered: reading will time out
					continue
				}
			case <-l.failed:
				return
			}
		}
		if err := l.send(w, frames); err != nil {
			l.fail(fmt.Errorf("writing to %s: %w", l.server, err))
			return
		}
		idle.Reset(l.patience / 2)
	}
}

// send writes frames, and gives up where the server does not take them.
func (l *link) send(w *bufio.Writer, frames [][]byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.patience)); err != nil {
		return err
	}
	for _, frame := range frames {
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	return w.Flush()
}

// take moves requests from the queue onto a connection and returns their frames. From here on they count as
// sent.
func (s *Session) take(l *link) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.mu.queue), maxBatch)
	if n == 0 || s.mu.link != l {
		return nil
	}
	now := time.Now()
	frames := make([][]byte, n)
	for i, r := range s.mu.queue[:n] {
		l.xid++
		if l.xid <= 0 {
			l.xid = 1
		}
		r.setXid(l.xid)
		r.sent = now
		frames[i] = r.frame
	}
	l.flying = append(l.flying, s.mu.queue[:n]...)
	clear(s.mu.queue[:n])
	s.mu.queue = s.mu.queue[n:]
	return frames
}

// ping is the frame of a ping; nil where one is under way.
func (s *Session) ping(l *link) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.pinged.IsZero() {
		return nil
	}
	l.pinged = time.Now()
	r := newRequest(jute.OpPing, nil, true)
	r.setXid(jute.XidPing)
	return [][]byte{r.frame}
}
