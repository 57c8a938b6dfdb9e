package zookeeper

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// request is a packet on its way there and back. Its fields but answered belong to the session's
// lock, zxid after the answer to the caller.
//
//	queued ──▶ sent ──▶ answered
//	  ▲         │ cut
//	  └─────────┤ a read
//	            └──▶ ErrUnknownOutcome: a write
type request struct {
	op    jute.Op
	frame []byte // length, xid, op, body
	xid   int32
	// read says that it changes nothing, and may be sent again.
	read bool
	cuts int // how many connections broke under it
	sent time.Time
	zxid int64 // of the answer: of a write, its transaction
	// answered gets one answer; nobody may be waiting for it.
	answered chan answer
}

// answer is what became of a request: the body of the reply, or why there is none.
type answer struct {
	body []byte
	err  error
}

// maxCuts is how many connections may break under one read before it fails: it may be what breaks them.
const maxCuts = 5

// xidAt is where the xid lies in a frame.
const xidAt = 4

// newRequest encodes a request. The xid is filled in when it is sent.
func newRequest(op jute.Op, body jute.Record, read bool) *request {
	frame := make([]byte, xidAt, 128)
	frame = (&jute.RequestHeader{Op: op}).Append(frame)
	if body != nil {
		frame = body.Append(frame)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-xidAt))
	return &request{op: op, frame: frame, read: read, answered: make(chan answer, 1)}
}

// size is what the server compares with its jute.maxbuffer.
func (r *request) size() int { return len(r.frame) - xidAt }

// setXid numbers the frame.
func (r *request) setXid(xid int32) {
	r.xid = xid
	binary.BigEndian.PutUint32(r.frame[xidAt:], uint32(xid))
}

// finish hands out the answer.
func (r *request) finish(body []byte, err error) { r.answered <- answer{body: body, err: err} }

// call sends a request and waits for the body of its answer.
func (s *Session) call(ctx context.Context, op jute.Op, body jute.Record, read bool) ([]byte, error) {
	return s.do(ctx, newRequest(op, body, read))
}

// do sends a request that is encoded and waits for the body of its answer.
func (s *Session) do(ctx context.Context, r *request) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, cancelled(ctx, coordination.ErrNotSent)
	}
	if r.size() > s.store.options.MaxPacket {
		return nil, fmt.Errorf("%w: a request of %d bytes, where %d are allowed",
			coordination.ErrTooLarge, r.size(), s.store.options.MaxPacket)
	}
	if err := s.submit(r); err != nil {
		return nil, err
	}
	return s.await(ctx, r)
}

// submit queues requests behind all others, together.
func (s *Session) submit(requests ...*request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submitLocked(requests...)
}

func (s *Session) submitLocked(requests ...*request) error {
	if s.mu.state == coordination.Lost {
		return s.mu.err
	}
	s.mu.queue = append(s.mu.queue, requests...)
	s.signal()
	return nil
}

// signal wakes the writer.
func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// await waits for the answer to a request, or for the end of ctx.
func (s *Session) await(ctx context.Context, r *request) ([]byte, error) {
	select {
	case a := <-r.answered:
		return a.body, a.err
	case <-ctx.Done():
		return nil, cancelled(ctx, s.abandon(r))
	}
}

// abandon gives a request up and tells whether it may have happened.
func (s *Session) abandon(r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.mu.queue, r); i >= 0 {
		s.mu.queue = slices.Delete(s.mu.queue, i, i+1)
		return coordination.ErrNotSent
	}
	if r.read {
		return coordination.ErrNotSent
	}
	return coordination.ErrUnknownOutcome
}

// requeue decides what becomes of requests whose connection broke. Those that may be sent again go before
// all that waits, in their order. The lock is held.
func (s *Session) requeue(cut []*request, reason error) {
	again := make([]*request, 0, len(cut)+len(s.mu.queue))
	for _, r := range cut {
		r.cuts++
		switch {
		case !r.read:
			r.finish(nil, fmt.Errorf("%w: %w", coordination.ErrUnknownOutcome, reason))
		case r.cuts >= maxCuts:
			r.finish(nil, fmt.Errorf("%w: %d connections broke before its answer, the last with: %w",
				coordination.ErrNotSent, r.cuts, reason))
		default:
			again = append(again, r)
		}
	}
	s.mu.queue = append(again, s.mu.queue...)
}
