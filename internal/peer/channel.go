// Package peer is an ordered channel to another broker, or to this one: requests leave in the order in
// which they were asked for, several may be under way at once, and each answer finds its request.
//
//	Do ─┐  turn (one slot)                         ┌─▶ done of the oldest
//	Do ─┼─▶ dial if needed ─▶ pending ─▶ write     │
//	Do ─┘                        └────────────▶ read loop ─▶ length, correlation id, body
//
// A channel connects when it is first used and again after it lost its connection; it never repeats a
// request by itself, since only the caller knows whether that is harmless. The bytes on the connection are
// Kafka's frames; what happens before the first one (TLS, SASL) is the business of the dial function.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxInFlight bounds the requests that wait for an answer on one connection; one more waits for its turn.
const maxInFlight = 64

// maxResponse bounds the frame of one answer, in bytes: a broker of Kafka's never sends more.
const maxResponse = 100 << 20

// bufferMax is up to which size, in bytes, a channel keeps its buffer for the next request.
const bufferMax = 1 << 20

// ErrClosed is why a request failed on a closed channel.
var ErrClosed = errors.New("channel is closed")

// Error is a request without an answer.
type Error struct {
	// Sent is true where the other side may have got the request, and may have acted on it. Where it is
	// false, it did not, and asking again is safe.
	Sent bool
	// Err is what went wrong.
	Err error
}

// Error says what went wrong, and whether the request had been sent.
func (e *Error) Error() string {
	if e.Sent {
		return "no answer to a request that was sent: " + e.Err.Error()
	}
	return "request not sent: " + e.Err.Error()
}

// Unwrap is what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Sent reports whether the request behind err may have reached the other side; true for errors that are
// not of this package, since that is the safe answer.
func Sent(err error) bool {
	var e *Error
	return !errors.As(err, &e) || e.Sent
}

// Channel is an ordered channel to one broker. Its methods may be called concurrently.
type Channel struct {
	dial     func(context.Context) (net.Conn, error)
	clientID string
	// spare is room for one answer, see GiveBack.
	spare chan []byte

	// connection is the newest one; nil before the first. Only who has the turn replaces it.
	connection atomic.Pointer[connection]
	// turn lends its one value to whoever dials and writes; what follows belongs to them.
	turn        chan struct{}
	correlation int32
	buffer      []byte

	closing   chan struct{}
	closeOnce sync.Once
}

// New makes a channel that connects with dial when it is first used. The client id is what the other side
// shows in its logs and metrics.
func New(dial func(context.Context) (net.Conn, error), clientID string) *Channel {
	c := &Channel{dial: dial, clientID: clientID, spare: make(chan []byte, 1), turn: make(chan struct{}, 1), closing: make(chan struct{})}
	c.turn <- struct{}{}
	return c
}

// Do sends a request in the version that is set on it and waits for the answer. Errors are of type *Error.
// Where ctx runs into its deadline before the answer came, the other side counts as hung: the connection
// is closed, and all requests behind this one fail with it. Where ctx is cancelled, only this request is
// given up. Requests that have no answer (Produce with acks=0) are not for a channel.
func (c *Channel) Do(ctx context.Context, request kmsg.Request) (kmsg.Response, error) {
	response, _, err := c.Lend(ctx, request)
	return response, err
}

// Lend is Do, and also returns the memory that the answer lies in, for [Channel.GiveBack].
func (c *Channel) Lend(ctx context.Context, request kmsg.Request) (kmsg.Response, []byte, error) {
	sent, err := c.send(ctx, request, c.connected)
	if err != nil {
		return nil, nil, err
	}
	return sent.Wait(ctx, nil)
}

// Call is a request that was sent; one goroutine waits for its answer.
type Call struct {
	*call
	on *connection
}

// Send sends a request over the connection that there is, and returns when it has been written. It does not connect:
// where the connection is lost, the request was not sent.
func (c *Channel) Send(ctx context.Context, request kmsg.Request) (Call, error) {
	return c.send(ctx, request, c.present)
}

// errNotConnected is why a request was not sent over a lost connection.
var errNotConnected = errors.New("the connection is lost")

// present gives the connection, where there is one that works.
func (c *Channel) present(context.Context) (*connection, error) {
	if on := c.connection.Load(); on != nil && !on.lost() {
		return on, nil
	}
	return nil, errNotConnected
}

// ErrInterrupted is why a [Call.Wait] ended that goes on when it is called again.
var ErrInterrupted = errors.New("something else is to be done")

// Wait waits for the answer as Do does; it ends with ErrInterrupted when interrupt, which may be nil, is readable
// before. Besides the answer it returns the memory that it lies in, for [Channel.GiveBack].
func (p Call) Wait(ctx context.Context, interrupt <-chan struct{}) (kmsg.Response, []byte, error) {
	select {
	case answer := <-p.done:
		return answer.response, answer.frame, answer.err
	case <-interrupt:
		return nil, nil, ErrInterrupted
	case <-p.on.dead:
		select {
		case answer := <-p.done: // it came just before
			return answer.response, answer.frame, answer.err
		default:
			return nil, nil, &Error{Sent: true, Err: p.on.reason()}
		}
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.on.end(fmt.Errorf("no answer within the deadline of an earlier request: %w", ctx.Err()))
		}
		return nil, nil, &Error{Sent: true, Err: ctx.Err()}
	}
}

// GiveBack lets a later answer use the memory of an earlier one, which nobody looks at any more. Whoever fetches
// megabytes at a time would otherwise make the garbage collector work for each of them.
func (c *Channel) GiveBack(frame []byte) {
	select {
	case c.spare <- frame:
	default:
	}
}

// send writes a request when its turn has come, over the connection that connect gives.
func (c *Channel) send(ctx context.Context, request kmsg.Request, connect func(context.Context) (*connection, error)) (Call, error) {
	select {
	case <-c.turn:
	case <-c.closing:
		return Call{}, &Error{Err: ErrClosed}
	case <-ctx.Done():
		return Call{}, &Error{Err: ctx.Err()}
	}
	defer func() { c.turn <- struct{}{} }()
	on, err := connect(ctx)
	if err != nil {
		return Call{}, &Error{Err: err}
	}
	c.correlation++
	waiting := &call{request: request, correlation: c.correlation, done: make(chan answer, 1)}
	select {
	case on.pending <- waiting:
	case <-on.dead:
		return Call{}, &Error{Err: on.reason()}
	case <-ctx.Done():
		return Call{}, &Error{Err: ctx.Err()}
	}
	if sent, err := on.write(ctx, c.frame(request)); err != nil {
		return Call{}, &Error{Sent: sent, Err: err}
	}
	return Call{waiting, on}, nil
}

// connected gives the connection, and makes one where there is none that works.
func (c *Channel) connected(ctx context.Context) (*connection, error) {
	if c.closed() {
		return nil, ErrClosed
	}
	if on := c.connection.Load(); on != nil && !on.lost() {
		return on, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.cancelOnClose(cancel)()
	conn, err := c.dial(ctx)
	if c.closed() {
		err = errors.Join(ErrClosed, err)
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close() // never used
		}
		return nil, err
	}
	on := newConnection(conn, c.spare)
	c.connection.Store(on)
	if c.closed() { // since the last look, so that Close may have missed this one
		on.end(ErrClosed)
	}
	go on.read()
	return on, nil
}

func (c *Channel) closed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// cancelOnClose calls cancel when the channel is closed before stop is called.
func (c *Channel) cancelOnClose(cancel func()) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		select {
		case <-c.closing:
			cancel()
		case <-stopped:
		}
	}()
	return func() { close(stopped) }
}

// frame encodes a request, with its length, into the channel's buffer.
func (c *Channel) frame(request kmsg.Request) []byte {
	b := wire.AppendInt32(c.buffer[:0], 0)
	b = wire.AppendRequestHeader(b, wire.RequestHeader{
		Key: request.Key(), Version: request.GetVersion(), CorrelationID: c.correlation, ClientID: c.clientID,
	})
	b = request.AppendTo(b)
	wire.AppendInt32(b[:0], int32(len(b)-wire.LengthSize))
	if c.buffer = b[:0]; cap(b) > bufferMax {
		c.buffer = nil
	}
	return b
}

// Close ends the channel: requests that wait fail, and so does every later one. Closing twice is fine.
func (c *Channel) Close() {
	c.closeOnce.Do(func() {
		close(c.closing)
		if on := c.connection.Load(); on != nil {
			on.end(ErrClosed)
		}
	})
}
