package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// queue keeps a connection's answers in the order of its requests. Only those stand in it that could not
// be written at once: waiting ones, and finished ones behind them.
//
//	requests   1 Fetch (waits)    2 Metadata (ready)    3 Produce acks=0    4 JoinGroup (waits)
//	slots      [1 waiting] ─▶ [2 done] ─▶ [4 waiting]         3 has none: nothing behind it waits for it
//
// At most one goroutine is the writer. It takes the role when it has the answer that is next, and before
// it gives it back it writes what has become next meanwhile; so nobody who finds the role taken needs to
// do anything but leave its answer.
//
//	            answer: the queue is empty
//	            wait: its slot is the head                drain finds nothing more
//	nobody ────────────────────────────────▶ a writer ────────────────────────────▶ nobody
//
// The reader may keep the role over several requests, its answers corked, until the bytes that it has read are served
// (flush). The order of answers is a promise of the protocol: clients match them by order and correlation id.
type queue struct {
	head, tail *slot
	depth      int
	writing    bool // somebody is the writer
	// holds counts answers that must leave before anything more is read: throttled ones, and logins.
	holds      int
	mutedUntil time.Duration // since the server's start; 0 not muted
	closed     bool          // the last answer has left; those behind it are dropped
}

// slot is one answer's place.
type slot struct {
	next     *slot
	response *Response // nil: none, as for acks=0
	done     bool
	hold     bool // it counts in holds
	close    bool // Reply.Close
	sleep    *Sleep
}

func (q *queue) push(s *slot) {
	if q.tail == nil {
		q.head = s
	} else {
		q.tail.next = s
	}
	q.tail = s
	q.depth++
}

func (q *queue) pop() *slot {
	s := q.head
	q.head = s.next
	if q.head == nil {
		q.tail = nil
	}
	q.depth--
	return s
}

// serve runs the first phase of one request and sends it on its way.
//
// inFlight counts a request from here until emit has dealt with its answer, or until there is none to come.
func (c *Conn) serve(f *Frame) error {
	if err := c.gate(); err != nil {
		f.release()
		return err
	}
	counters := &c.acceptor.counters
	counters.requests.Add(1)
	counters.inFlight.Add(1)
	c.lastActive.Store(int64(f.Received.Sub(c.server.started)))
	reply, ok := c.call(f)
	if f.release() {
		c.reader.spare = f
	}
	if !ok {
		counters.inFlight.Add(-1)
		return endPanic
	}
	switch {
	case reply.Wait != nil:
		s := &slot{hold: reply.Hold, close: reply.Close}
		c.enqueue(s)
		go c.wait(s, reply.Wait, reply.Timeout)
	case reply.Phase != nil:
		c.begin(reply)
	case reply.Response != nil:
		if err := c.answer(reply); err != nil {
			return err
		}
	default:
		counters.inFlight.Add(-1)
	}
	if reply.Close {
		return endReply
	}
	return nil
}

// call runs the handler and turns its panic into the end of this connection.
func (c *Conn) call(f *Frame) (reply Reply, ok bool) {
	defer c.recovered("first phase", &ok)
	if behind := c.yielding; behind != nil {
		c.yielding = nil
		behind.Post(Overtaken)
	}
	reply = c.server.options.Handler(c.ctx, c, f)
	ways := 0
	for _, way := range [...]bool{reply.Response != nil, reply.Wait != nil, reply.Phase != nil, reply.NoResponse} {
		if way {
			ways++
		}
	}
	if ways > 1 || ways == 0 && !reply.Close {
		invariant.Fail("a reply with %d ways to answer", ways)
	}
	return reply, true
}

// recovered logs a panic of a handler's phase. It is called deferred.
func (c *Conn) recovered(phase string, ok *bool) {
	if r := recover(); r != nil {
		*ok = false
		c.logBug(phase, &Bug{Panic: r, Stack: debug.Stack()})
	}
}

// logBug logs what a handler's phase has panicked with.
func (c *Conn) logBug(phase string, bug *Bug) {
	c.server.options.Logger.Error("panic in a request; its connection is closed",
		slog.String("phase", phase), slog.Uint64("connection", c.ID), slog.String("listener", c.Listener),
		slog.String("remote", c.RemoteAddr.String()), slog.String("panic", fmt.Sprint(bug.Panic)),
		slog.String("stack", string(bug.Stack)))
}

// enqueue gives a waiting answer its place; false where it must not wait, see [Ended].
func (c *Conn) enqueue(s *slot) (mayWait bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.hold {
		c.mu.holds++
	}
	c.mu.push(s)
	return !c.mu.dead && !c.mu.closed && !(c.mu.stopping && c.mu.ended == endShutdown)
}

// wait is the goroutine of a second phase.
func (c *Conn) wait(s *slot, phase func(context.Context) *Response, timeout time.Duration) {
	response, ok := c.callWait(phase, timeout)
	if !ok {
		c.kill(endPanic)
	}
	if c.fill(s, response) {
		_ = c.drain(newSender(c)) // an error has ended the connection already
	}
}

// begin gives a phase that sleeps its place in the queue, and runs it for the first time.
func (c *Conn) begin(reply Reply) {
	s := &slot{hold: reply.Hold, close: reply.Close}
	s.sleep = newSleep(&c.server.alarms, reply.Phase, func(r *Response, bug *Bug) { c.finish(s, r, bug) })
	if !c.enqueue(s) {
		s.sleep.Post(Ended)
	}
	if reply.Yields {
		c.yielding = s.sleep
	}
	s.sleep.Begin(reply.Timeout)
}

// finish brings the answer of a phase that slept. Whoever has woken it has other things to do than to wait for the peer.
func (c *Conn) finish(s *slot, response *Response, bug *Bug) {
	if bug != nil {
		c.logBug("second phase", bug)
		c.kill(endPanic)
	}
	if c.fill(s, response) {
		c.drainNow(newSender(c))
	}
}

// rouse gives the phases that sleep a reason.
func (c *Conn) rouse(why Why) {
	var sleeping []*Sleep
	c.mu.Lock()
	for s := c.mu.head; s != nil; s = s.next {
		if s.sleep != nil && !s.done {
			sleeping = append(sleeping, s.sleep)
		}
	}
	c.mu.Unlock()
	for _, s := range sleeping {
		s.Post(why)
	}
}

// fill puts the answer of a second phase into its place; true where the caller is the writer now.
func (c *Conn) fill(s *slot, response *Response) (writer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.response, s.done = response, true
	if response != nil && response.Throttle > 0 && !s.hold {
		s.hold = true
		c.mu.holds++
	}
	if c.mu.writing || c.mu.head != s {
		return false
	}
	c.mu.writing = true
	c.lastActive.Store(int64(c.server.now()))
	return true
}

// callWait runs a second phase under the connection's context.
func (c *Conn) callWait(phase func(context.Context) *Response, timeout time.Duration) (r *Response, ok bool) {
	defer c.recovered("waiting phase", &ok)
	ctx := c.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return phase(ctx), true
}

// answer writes a ready answer, or queues it behind those that are not ready. What was written may still
// be corked: the requests that came in the same read are answered in the same write, see flush.
//
// corked is looked at under mu together with the queue: while the reader has the role nobody else can become the
// writer, and an answer that is next goes straight into its sender.
func (c *Conn) answer(reply Reply) error {
	s := slot{response: reply.Response, done: true, close: reply.Close}
	s.hold = reply.Hold || reply.Response.Throttle > 0
	c.mu.Lock()
	first := c.mu.head == nil && (c.corked != nil || !c.mu.writing)
	if s.hold {
		c.mu.holds++
	}
	if !first {
		queued := s
		c.mu.push(&queued)
		c.mu.Unlock()
		return nil
	}
	c.mu.writing = true
	c.mu.Unlock()
	if c.corked == nil {
		c.corked = newSender(c)
	}
	return c.emit(c.corked, &s)
}

// flush writes what the reader has corked and gives up the writer's role.
func (c *Conn) flush() error {
	s := c.corked
	if s == nil {
		return nil
	}
	c.corked = nil
	c.reader.answered = true
	return c.drain(s)
}

// drain is the writer's duty: it writes every answer that is next until there is none, then it stops
// being the writer. The sender is given back.
//
// The look at the head and the return of the role are one step under mu: an answer is done either before it, and is
// taken here, or after it, and its goroutine finds the role free. It goes on after an error, since what is queued must
// be released; emit writes nothing then.
func (c *Conn) drain(w *sender) error {
	defer w.discard()
	var failed error
	for {
		c.mu.Lock()
		if head := c.mu.head; head != nil && head.done {
			s := c.mu.pop()
			c.pokeLocked()
			c.mu.Unlock()
			if err := c.emit(w, s); err != nil {
				failed = err
			}
			continue
		}
		if w.empty() || c.mu.dead {
			c.mu.writing = false
			c.pokeLocked()
			c.mu.Unlock()
			return failed
		}
		c.mu.Unlock()
		if err := w.flush(); err != nil {
			failed = c.broken(err)
		}
	}
}

// drainNow is drain for somebody who must not wait for the peer. What is large, what the socket does not take at once, and
// what comes while it writes, is left to a goroutine: it writes once.
//
// It may wait for a disk, but seldom and not for long. The small ranges of files that it copies are nearly always what
// was appended just now, and are in the page cache. They are not where records have lain there for long and were not enough
// to answer with (fetch.min.bytes); then it reads at most gatherSize, once. An append runs two phases itself, and has
// given back its partition's lock before.
func (c *Conn) drainNow(w *sender) {
	for wrote := false; ; {
		c.mu.Lock()
		head := c.mu.head
		ready := head != nil && head.done
		switch {
		case ready && !wrote && w.fits(head):
			s := c.mu.pop()
			c.pokeLocked()
			c.mu.Unlock()
			_ = c.emit(w, s) // an error has ended the connection already
			continue
		case !ready && (w.empty() || c.mu.dead):
			c.mu.writing = false
			c.pokeLocked()
			c.mu.Unlock()
			w.discard()
			return
		}
		c.mu.Unlock()
		if !ready {
			left, err := w.flushNow()
			if err != nil {
				_ = c.broken(err) // it ends the connection
			}
			if wrote = !left || err != nil; wrote {
				continue
			}
		}
		go func() { _ = c.drain(w) }() // likewise
		return
	}
}

// emit puts one answer into the sender and does what follows from it. After the end of the connection
// answers are only released.
//
// Release comes when the pieces have left or been copied: add sends borrowed pieces before it returns, and only
// copied bytes stay in the sender. The connection's state is looked at again for each answer, as the one before may
// have been its last.
func (c *Conn) emit(w *sender, s *slot) error {
	defer c.acceptor.counters.inFlight.Add(-1)
	defer c.release(s.response)
	if !c.mayAnswer() {
		return endReply
	}
	last := s.close
	if s.response != nil {
		if err := c.add(w, s.response); err != nil {
			return c.broken(err)
		}
		last = last || s.response.Close
	}
	if !s.hold && !last {
		return nil
	}
	if err := w.flush(); err != nil {
		return c.broken(err)
	}
	c.sent(s, last)
	return nil
}

// add is the sender's, with a panic over a malformed answer as an error: the writer must survive it.
func (c *Conn) add(w *sender, r *Response) (err error) {
	ok := true
	defer func() {
		if !ok {
			err = endPanic
		}
	}()
	defer c.recovered("sending", &ok)
	return w.add(r)
}

// release lets the handler have its pieces back.
func (c *Conn) release(r *Response) {
	if r == nil || r.Release == nil {
		return
	}
	ok := true
	defer func() {
		if !ok {
			c.kill(endPanic)
		}
	}()
	defer c.recovered("release", &ok)
	r.Release()
}

// mayAnswer reports whether answers still leave.
func (c *Conn) mayAnswer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.mu.dead && !c.mu.closed
}

// sent follows an answer that mutes, holds or ends the connection.
//
// The mute begins when the answer has left and not when it was made: the client counts throttle_time_ms from there.
func (c *Conn) sent(s *slot, last bool) {
	c.mu.Lock()
	if s.hold {
		c.mu.holds--
	}
	if s.response != nil && s.response.Throttle > 0 {
		c.mu.mutedUntil = c.server.now() + s.response.Throttle
		c.acceptor.counters.throttled.Add(int64(s.response.Throttle))
	}
	c.mu.closed = c.mu.closed || last
	c.pokeLocked()
	c.mu.Unlock()
	if last {
		c.stopReading(endReply)
		c.cancel() // what waits behind it has no reader
		c.rouse(Ended)
	}
}
