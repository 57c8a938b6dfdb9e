package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Handler is the first phase of a request. It runs in the connection's reader, strictly in the order in
// which frames came, and must not block on anything slower than an append: what waits belongs into
// [Reply.Wait]. The context ends when the connection does. A panic closes the connection and no other.
type Handler func(ctx context.Context, c *Conn, f *Frame) Reply

// Frame is one request as it came. The server holds one reference during the handler; the pointer and
// the bytes die with it, unless the handler took another.
//
//	buffer   | 4 | frame 1 | 4 | frame 2 | 4 | frame 3 (part of it) |
//	refs         each frame one, and the reader one while it fills it
//
// The bytes are the socket's, read once: a produce request's batches are validated, numbered and written to the log
// out of the same buffer.
type Frame struct {
	// Bytes are header and body without the length. They are the frame's own: the holder may change them
	// in place. Small frames share their buffer with others, so that keeping one keeps up to 16 KiB.
	Bytes []byte
	// Received is when the last byte came.
	Received time.Time

	buffer *Buffer
	refs   atomic.Int32
}

// Retain keeps the bytes beyond the handler; each Retain needs a Release.
func (f *Frame) Retain() {
	if f.refs.Add(1) <= 1 {
		invariant.Fail("frame retained after its last release")
	}
}

// Release gives one reference back. After the last one the bytes belong to somebody else.
func (f *Frame) Release() { f.release() }

// release reports whether this was the last reference.
func (f *Frame) release() bool {
	refs := f.refs.Add(-1)
	if refs < 0 {
		invariant.Fail("frame released %d times too often", -refs)
	}
	if refs > 0 {
		return false
	}
	buffer := f.buffer
	f.Bytes, f.buffer = nil, nil
	buffer.Release()
	return true
}

// Reply is what the first phase decided. Exactly one of Response, Wait, Phase, NoResponse and a lone Close is
// set; Close may join each of them.
//
//	Response                 written now, or queued behind what is waiting
//	Wait                     a place in the queue, filled when it returns
//	Phase                    a place in the queue, filled by whoever brings what it waits for
//	NoResponse               no place at all
//	Close alone              no answer; the connection ends
type Reply struct {
	// Response is the answer, ready now.
	Response *Response
	// Wait is the second phase. It runs in a goroutine of its own, and its context ends when the connection
	// dies, so that a consumer that goes away frees its waiter. It must return then. Nil from it means
	// no answer.
	Wait func(ctx context.Context) *Response
	// Phase is a second phase without a goroutine. Its end is as that of Wait's context.
	Phase Phase
	// Yields says that Phase is to be told of the next frame that comes in behind the request.
	Yields bool
	// Timeout ends the context of Wait, or is the time of Phase; 0 leaves that to them.
	Timeout time.Duration
	// NoResponse says that the request has no answer, as a produce request with acks=0: later answers do
	// not wait for it.
	NoResponse bool
	// Hold stops reading until this answer has left: nothing behind a login may be looked at before it.
	Hold bool
	// Close closes the connection once this answer and those before it have left.
	Close bool
}

// Response is an answer: pieces that leave one after the other, behind a length that the server writes.
type Response struct {
	// Pieces make up header and body.
	Pieces []Piece
	// Throttle mutes the connection for that long once the answer has left (KIP-219). It is what the
	// answer's throttle_time_ms says.
	Throttle time.Duration
	// Close closes the connection once the answer has left. Answers behind it are dropped.
	Close bool
	// Release, where set, is called once, from any goroutine, when the pieces are no longer needed: sent,
	// or dropped with the connection.
	Release func()
}

// Piece is a part of an answer: bytes, or a range of a file where File is set.
type Piece struct {
	// Bytes must not change until the response is released.
	Bytes []byte
	// File and the Length bytes at Offset. They must not be truncated before the response is released: the
	// length has been promised, so a short file closes the connection.
	File   vfs.File
	Offset int64
	Length int
}

// length is how many bytes the piece will be on the wire.
func (p *Piece) length() int {
	if p.File != nil {
		return p.Length
	}
	return len(p.Bytes)
}

// size is the value of the length field.
func (r *Response) size() int {
	size := 0
	for i := range r.Pieces {
		n := r.Pieces[i].length()
		if n < 0 {
			invariant.Fail("piece %d has a length of %d", i, n)
		}
		size += n
	}
	if size > 1<<31-1 {
		invariant.Fail("response of %d bytes does not fit its length field", size)
	}
	return size
}
