package server

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"time"
)

// frameProgress is what a frame that has begun must bring in each [Options.FrameTimeout] if it does not
// end: a byte a second is no progress.
const frameProgress = 32 << 10

// now is the server's monotonic clock: wall-clock steps change no timeout.
func (s *Server) now() time.Duration { return time.Since(s.started) }

// gate lets the reader go on, or says why the connection ends. It waits while the pipeline is full, while
// an answer that holds or throttles has not left, and while the connection is muted.
//
//	waits for           is poked by
//	pipeline depth      drain, with each answer that it takes
//	holds               sent, when the answer has left
//	mutedUntil          its own timer, or the end of the connection
//	stopping            stopReading, kill
//
// No call is lost: gated is set under mu together with the look at the state, every change pokes under mu, and wake
// has room for one. A call that comes too early costs one more round.
func (c *Conn) gate() error {
	for flushed := false; ; {
		c.mu.Lock()
		if c.mu.stopping {
			defer c.mu.Unlock()
			return c.mu.ended
		}
		var mute time.Duration
		if c.mu.mutedUntil > 0 {
			if mute = c.mu.mutedUntil - c.server.now(); mute <= 0 {
				mute, c.mu.mutedUntil = 0, 0
			}
		}
		if mute == 0 && c.mu.holds == 0 && c.mu.depth < c.server.options.PipelineDepth {
			c.mu.Unlock()
			return nil
		}
		if !flushed {
			// Whoever waits for the client to read must have written.
			c.mu.Unlock()
			if err := c.flush(); err != nil {
				return err
			}
			flushed = true
			continue
		}
		c.mu.gated = true
		c.mu.Unlock()
		c.sleep(mute)
	}
}

// sleep waits to be poked, for at most timeout where that is above zero.
func (c *Conn) sleep(timeout time.Duration) {
	if timeout <= 0 {
		<-c.wake
		return
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.wake:
	case <-timer.C:
	}
}

// pokeLocked wakes the reader where it waits for a change of the queue.
func (c *Conn) pokeLocked() {
	if !c.mu.gated {
		return
	}
	c.mu.gated = false
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// awaitQueue returns when nothing is in flight.
func (c *Conn) awaitQueue() {
	for {
		c.mu.Lock()
		if c.mu.head == nil && !c.mu.writing {
			c.mu.Unlock()
			return
		}
		c.mu.gated = true
		c.mu.Unlock()
		c.sleep(0)
	}
}

// tryCharge takes size bytes of the budget for a frame where that needs no waiting. Small frames and the
// broker's own are free: control must not wait behind data.
func (c *Conn) tryCharge(size int, held *claim) (claim, bool) {
	if size <= smallBuffer || c.Internal {
		return claim{}, true
	}
	if held != nil {
		return claim{}, false
	}
	return c.server.budget.tryTake(int64(roundUp(size)))
}

// charge is tryCharge that waits; held is what the beginning of the frame has.
func (c *Conn) charge(size int, held *claim) (claim, error) {
	charge, ok := c.server.budget.take(c.stopped, int64(roundUp(size)), held)
	c.reader.progressSince = 0 // the peer could not send while we did not read
	if !ok {
		return claim{}, c.gate()
	}
	return charge, nil
}

// arm sets the deadline for the bytes that the reader is about to wait for. It is lazy: a deadline that is
// too early is looked at when it passes, so that a busy connection sets one in a minute, not one a frame.
//
//	waiting for            deadline
//	the rest of a frame    FrameTimeout from the begin of its window; must bring frameProgress by then
//	a new frame            IdleTimeout from the last activity; none where that is below 0, or for the broker's own
//
// A deadline that is set stays although the connection is active in the meantime: expired then sees that, and lets
// arm set another. Where a frame begins, an idle deadline that is farther away is drawn nearer.
func (c *Conn) arm() {
	var due time.Duration
	switch idle := c.server.options.IdleTimeout; {
	case !c.reader.idle():
		due = c.reader.windowStart(c.server.now()) + c.server.options.FrameTimeout
		if c.readDeadline != 0 && c.readDeadline <= due {
			return
		}
	case c.readDeadline != 0 || idle < 0 || c.Internal:
		return
	default:
		due = time.Duration(c.lastActive.Load()) + idle
	}
	c.setReadDeadline(due)
}

// setReadDeadline sets the deadline, 0 for none, unless reading has been stopped by one in the past.
func (c *Conn) setReadDeadline(due time.Duration) {
	c.readDeadline = due
	var at time.Time
	if due != 0 {
		at = c.server.started.Add(due)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.stopping {
		_ = c.mu.socket.SetReadDeadline(at)
	}
}

// expired looks at a read deadline that has passed: nil means go on reading.
//
//	stopping                                          the ending that was noted
//	a frame that has not moved for its window         slow-frame
//	something is in flight                            goes on; the waiting counts as activity
//	idle for as long as allowed                       idle
//	otherwise                                         goes on; the deadline was an old one
func (c *Conn) expired() error {
	now, idle := c.server.now(), c.server.options.IdleTimeout
	c.mu.Lock()
	stopping, ended := c.mu.stopping, c.mu.ended
	inFlight := c.mu.head != nil || c.mu.writing
	c.mu.Unlock()
	switch {
	case stopping:
		return ended
	case c.reader.stalled(now, c.server.options.FrameTimeout):
		return endSlowFrame
	case inFlight:
		c.lastActive.Store(int64(now))
	case c.reader.idle() && idle >= 0 && !c.Internal && now-time.Duration(c.lastActive.Load()) >= idle:
		return endIdle
	}
	c.setReadDeadline(0)
	return nil
}

// judge is the ending that err, which ended the reading, stands for; it logs what an operator should see.
func (c *Conn) judge(err error) ending {
	c.mu.Lock()
	stopping, ended := c.mu.stopping, c.mu.ended
	c.mu.Unlock()
	var e ending
	var bad *badLength
	switch {
	case stopping:
		return ended
	case errors.As(err, &bad):
		c.logEnd("closed a connection that sent what is no request", err)
		return endBadFrame
	case errors.As(err, &e):
		if e == endSlowFrame {
			c.logEnd("closed a connection whose request stopped arriving", nil)
		}
		return e
	}
	return endPeer
}

// broken ends a connection on which an answer could not be written.
func (c *Conn) broken(err error) ending {
	e := endPeer
	var e2 ending
	var file *fileError
	switch {
	case errors.As(err, &e2):
		e = e2
	case errors.As(err, &file):
		e = endBadFile
		c.logEnd("closed a connection in the middle of an answer", err)
	case errors.Is(err, os.ErrDeadlineExceeded) && c.alive():
		e = endStuckWrite
		c.logEnd("closed a connection that takes no answer", nil)
	}
	c.kill(e)
	return e
}

// logEnd logs the end of a connection, at most one of a kind in ten seconds.
func (c *Conn) logEnd(message string, err error) {
	attributes := []slog.Attr{
		slog.String("listener", c.Listener), slog.String("remote", c.RemoteAddr.String()),
		slog.Uint64("connection", c.ID),
	}
	if err != nil && !errors.Is(err, io.EOF) {
		attributes = append(attributes, slog.String("reason", err.Error()))
	}
	c.server.occasional.log(slog.LevelWarn, message, attributes...)
}
