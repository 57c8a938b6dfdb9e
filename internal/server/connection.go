package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Anonymous is the principal of a connection that has not said who it is.
const Anonymous = "User:ANONYMOUS"

// Conn is one connection. Its exported fields never change; its methods may be called concurrently,
// except where they say otherwise.
//
//	          stopReading                    queue is empty
//	serving ──────────────▶ stopping ───────────────────────▶ farewell ──▶ dead ──▶ socket closed ──▶ forgotten
//	   │       no frame is read any more,                                    ▲
//	   └────────────────────────────── kill: error, timeout, panic ──────────┘
//
// Three kinds of goroutines meet here:
//
//	reader    one, from run; owns reader, transport's reading side, frameLimit, corked
//	writer    at most one: whoever has the role (queue.writing); owns the transport's writing side
//	waiting   one for each request in a second phase that is not a [Phase]; touches its slot, under mu
//
// A [Phase] that sleeps is run by whoever wakes it, a reader of another connection most often.
//
// mu is held for a few instructions and never across a read, a write or a handler. Deadlines in the past are how a
// goroutine that is inside a system call is called back; after dead no other is set, and after stopping only that
// of the farewell.
type Conn struct {
	// ID is unique in this server.
	ID uint64
	// Listener is the name of the listener that it came in by; Protocol the listener's security protocol.
	Listener, Protocol string
	// Internal says that the broker itself is at the other end ([Server.Pipe]): trusted by construction.
	Internal bool
	// RemoteAddr is the peer; Host its address without the port.
	RemoteAddr net.Addr
	Host       string

	server   *Server
	acceptor *acceptor
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	wake     chan struct{} // the reader waits here while it may not read; see gate
	stopped  chan struct{} // closed when stopping

	// Only the reading goroutine uses these.
	reader     reader
	transport  transport
	frameLimit int
	corked     *sender // with answers not yet written; whoever has it is the writer
	yielding   *Sleep  // to be told of the next frame; nil for none
	// readDeadline is the socket's, since the server's start; 0 none.
	readDeadline time.Duration

	lastActive atomic.Int64 // since the server's start, when a frame came or an answer left

	mu struct {
		sync.Mutex
		queue
		socket net.Conn // wrapped by the handshake; replaced once
		gated  bool     // the reader waits on wake
		// stopping: no further frame is read, and when the queue is empty the connection is closed. dead:
		// nothing is read or written any more; implies stopping. ended says why.
		stopping, dead bool
		ended          ending

		principal                   string
		softwareName, softwareValue string
		sessionExpiry               time.Time
	}
}

// Principal is who the peer is, such as User:alice; [Anonymous] until a login.
func (c *Conn) Principal() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.principal
}

// SetPrincipal says who the peer is.
func (c *Conn) SetPrincipal(principal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.principal = principal
}

// ClientSoftware is what the client said of itself in ApiVersions; empty if it did not.
func (c *Conn) ClientSoftware() (name, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.softwareName, c.mu.softwareValue
}

// SetClientSoftware keeps what the client said of itself (KIP-511).
func (c *Conn) SetClientSoftware(name, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.softwareName, c.mu.softwareValue = name, version
}

// SessionExpiry is until when the login holds (KIP-368); the zero time is for ever. The server does not
// act on it: any request but a new login after it closes the connection, which the handler decides.
func (c *Conn) SessionExpiry() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.sessionExpiry
}

// SetSessionExpiry sets until when the login holds.
func (c *Conn) SetSessionExpiry(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.sessionExpiry = at
}

// SetMaxFrame bounds the frames from the next one on, as before a login
// (sasl.server.max.receive.size); above [Limits.MaxFrame] it has no effect. Only a [Handler] may call it.
func (c *Conn) SetMaxFrame(bytes int) {
	c.frameLimit = min(bytes, c.server.limits.Load().MaxFrame)
}

// Close ends the connection from outside, without waiting for what is in flight.
func (c *Conn) Close() { c.kill(endReply) }

// run is the connection's goroutine, from its birth to its end.
func (c *Conn) run() {
	defer c.server.forget(c)
	if !c.handshake() {
		return
	}
	c.settle(c.judge(c.pump()))
}

// pump reads until the connection ends. A handler that breaks the rules of its frame panics outside of
// its call; that ends this connection, too, and no other.
func (c *Conn) pump() (err error) {
	ok := true
	defer func() {
		if !ok {
			err = endPanic
			_ = c.flush() // somebody may wait for the writer's role; an error has ended the connection
		}
	}()
	defer c.recovered("reading", &ok)
	return c.transport.pump(&c.reader)
}

// handshake lets the listener wrap the socket.
func (c *Conn) handshake() bool {
	socket := c.mu.socket
	if handshake := c.acceptor.options.Handshake; handshake != nil {
		ctx, cancel := context.WithTimeout(c.ctx, c.server.options.HandshakeTimeout)
		defer cancel()
		wrapped, err := handshake(ctx, socket, c)
		if err != nil {
			c.logEnd("handshake failed", err)
			c.kill(endHandshake)
			c.closeSocket()
			return false
		}
		c.mu.Lock()
		c.mu.socket = wrapped
		if c.mu.dead {
			_ = wrapped.SetDeadline(longAgo) // killed meanwhile
		}
		c.mu.Unlock()
		c.transport = newPlain(c, wrapped)
		return true
	}
	c.transport = newTransport(c, socket)
	return true
}

// settle ends the connection: after a graceful ending what is in flight is answered first.
//
// A graceful ending waits for the answers of what was read, which the peer is still owed; every other one cancels
// the context first, so that waiting phases return soon. In the end the queue is empty either way: no goroutine of a
// connection outlives it, and no response stays unreleased.
func (c *Conn) settle(e ending) {
	graceful := e == endReply || e == endShutdown
	if graceful {
		c.stopReading(e)
		c.awaitQueue()
	}
	if graceful && c.alive() {
		c.transport.farewell(e == endReply)
	}
	c.kill(e)
	c.closeSocket()
	c.reader.drop()
	c.awaitQueue() // the waiting phases have been told; none outlives its connection
}

// kill ends reading and writing at once. The first reason counts. It does not close the socket, since
// closing waits for whoever is inside a read or write; the reading goroutine does that when it is out.
func (c *Conn) kill(e ending) {
	c.mu.Lock()
	if !c.mu.dead {
		c.stopLocked(e)
		c.mu.dead = true
		_ = c.mu.socket.SetDeadline(longAgo)
	}
	c.pokeLocked()
	c.mu.Unlock()
	c.cancel()
	c.rouse(Ended)
}

// stopReading makes the reader leave its loop; what is in flight goes on. Where the server stops, what sleeps
// answers with what it has.
func (c *Conn) stopReading(e ending) {
	c.mu.Lock()
	if !c.mu.stopping {
		c.stopLocked(e)
		_ = c.mu.socket.SetReadDeadline(longAgo)
	}
	c.pokeLocked()
	c.mu.Unlock()
	if e == endShutdown {
		c.rouse(Ended)
	}
}

// stopLocked notes that no further frame is read, and why; the first reason counts.
func (c *Conn) stopLocked(e ending) {
	if !c.mu.stopping {
		c.mu.stopping, c.mu.ended = true, e
		close(c.stopped)
	}
}

// alive reports whether the connection can still write.
func (c *Conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.mu.dead
}

// closeSocket gives the descriptor back.
func (c *Conn) closeSocket() {
	c.mu.Lock()
	socket := c.mu.socket
	c.mu.Unlock()
	_ = socket.Close() // a peer may have closed it first; there is nobody to tell
}

// longAgo is a deadline that has passed, also on a virtual clock that starts in the year 2000.
var longAgo = time.Unix(1, 0)
