package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// readBuffer is the size of a connection's read buffer, in bytes.
const readBuffer = 16 << 10

// eager is up to which size, in bytes, the space for an answer is made before its bytes are there.
const eager = 1 << 20

// call is one request that waits for its answer.
type call struct {
	request     kmsg.Request
	correlation int32
	done        chan answer // holds one, so that nobody waits for a caller who gave up
}

type answer struct {
	response kmsg.Response
	frame    []byte // the response may alias it
	err      error
}

// connection is one connection of a channel, and the requests that wait on it, oldest first.
type connection struct {
	net     net.Conn
	pending chan *call
	spare   chan []byte // of the channel

	dead    chan struct{} // closed by end
	endOnce sync.Once
	err     error // why it ended; set before dead is closed
}

func newConnection(conn net.Conn, spare chan []byte) *connection {
	return &connection{net: conn, spare: spare, pending: make(chan *call, maxInFlight), dead: make(chan struct{})}
}

// end closes the connection once; whoever waits on it fails with the first reason.
func (c *connection) end(reason error) {
	c.endOnce.Do(func() {
		c.err = reason
		close(c.dead)
		_ = c.net.Close() // nothing more is expected from it
	})
}

// lost reports whether the connection has ended.
func (c *connection) lost() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// reason waits for the end and says why.
func (c *connection) reason() error {
	<-c.dead
	return c.err
}

// write sends one frame. A frame that ctx cuts in two ends the connection.
func (c *connection) write(ctx context.Context, frame []byte) (sent bool, err error) {
	cut := context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	n, err := c.net.Write(frame)
	if !cut() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.end(fmt.Errorf("writing: %w", err))
	}
	return n > 0, err
}

// read hands out answers until the connection ends.
func (c *connection) read() {
	r := bufio.NewReaderSize(c.net, readBuffer)
	for {
		if err := c.readOne(r); err != nil {
			c.end(err)
			return
		}
	}
}

// readOne reads one answer and gives it to the oldest request. Whoever answers out of order, or without
// being asked, cannot be understood any further.
func (c *connection) readOne(r io.Reader) error {
	var prefix [wire.LengthSize]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the other side closed the connection")
		}
		return fmt.Errorf("reading: %w", err)
	}
	length, err := wire.FrameLength(prefix[:], maxResponse)
	if err != nil {
		return err
	}
	frame, err := c.readFrame(r, length)
	if err != nil {
		return fmt.Errorf("reading an answer of %d bytes: %w", length, err)
	}
	var waiting *call
	select {
	case waiting = <-c.pending:
	default:
		return errors.New("an answer came to no request")
	}
	key, version := waiting.request.Key(), waiting.request.GetVersion()
	correlation, body, err := wire.ParseResponseHeader(frame, key, version)
	if err != nil {
		return err
	}
	if correlation != waiting.correlation {
		return fmt.Errorf("answer has correlation id %d, the oldest request %d", correlation, waiting.correlation)
	}
	response := waiting.request.ResponseKind()
	if err := response.ReadFrom(body); err != nil {
		return fmt.Errorf("answer to key %d, version %d: %w", key, version, err)
	}
	waiting.done <- answer{response: response, frame: frame}
	return nil
}

// readFrame reads a frame into a buffer of its own, which the response may alias. A large one grows with
// the bytes that arrive, so that a length that lies costs nothing; but for one that was given back.
func (c *connection) readFrame(r io.Reader, length int) ([]byte, error) {
	select {
	case spare := <-c.spare:
		if cap(spare) >= length {
			_, err := io.ReadFull(r, spare[:length])
			return spare[:length], err
		}
	default:
	}
	if length <= eager {
		frame := make([]byte, length)
		_, err := io.ReadFull(r, frame)
		return frame, err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(length)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
