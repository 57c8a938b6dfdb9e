package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

const (
	// firstBackoff and lastBackoff bound the pause after a failed accept. Out of descriptors, the same
	// connection stays at the head of the backlog, and accepting again at once would only spin.
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = time.Second
)

// acceptor takes the connections of one listener. It never blocks on one of them.
type acceptor struct {
	server   *Server
	options  Listener
	socket   net.Listener // nil for the internal one
	counters counters
}

// run accepts until the listener is closed.
//
// The backlog is the system's: a connection that waits in it has been accepted for its peer, which may send already.
// So nothing here may take long, or clients time out on a broker that looks alive. An error of Accept is of one
// connection (reset in the backlog) or of the process (no descriptors, no memory); both pass, and only a closed
// listener ends the loop.
func (a *acceptor) run() {
	defer a.server.accepting.Done()
	backoff := firstBackoff
	for {
		socket, err := a.socket.Accept()
		if err == nil {
			backoff = firstBackoff
			a.admit(socket)
			continue
		}
		select {
		case <-a.server.draining:
			return
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		a.server.occasional.log(slog.LevelError, "cannot accept connections",
			slog.String("listener", a.options.Name), slog.String("error", err.Error()),
			slog.Duration("retry", backoff))
		if !a.pause(backoff) {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// pause waits; false when the server stops meanwhile.
func (a *acceptor) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.server.draining:
		return false
	}
}

// admit serves the connection or closes it, as the limits say.
//
// From here to forget the connection is counted once: by admission where it was taken, by ended where it was not.
func (a *acceptor) admit(socket net.Conn) {
	host := hostOf(socket.RemoteAddr())
	refusal, ok := a.server.admission.enter(&a.options, host)
	if !ok {
		a.counters.ended[refusal].Add(1)
		a.server.occasional.log(slog.LevelWarn, "refused a connection: too many",
			slog.String("listener", a.options.Name), slog.String("remote", host),
			slog.String("limit", refusal.String()))
		_ = socket.Close() // nothing was said on it
		return
	}
	a.tune(socket)
	if !a.serve(socket) {
		a.server.admission.leave(&a.options, host)
	}
}

// tune sets the socket's options that an operator asked for.
func (a *acceptor) tune(socket net.Conn) {
	tcp, ok := socket.(*net.TCPConn)
	if !ok {
		return
	}
	options := &a.server.options
	// The system may refuse a size or trim it; the connection works either way.
	if options.SendBuffer > 0 {
		_ = tcp.SetWriteBuffer(options.SendBuffer)
	}
	if options.ReceiveBuffer > 0 {
		_ = tcp.SetReadBuffer(options.ReceiveBuffer)
	}
}

// serve starts the connection's goroutine; false, and socket closed, when the server stops.
//
// The connection is complete before it is registered, since Shutdown and Stats may reach it from then on. Its context
// is its own and not the server's: after Shutdown has begun, requests in flight may still take their time.
func (a *acceptor) serve(socket net.Conn) bool {
	c := &Conn{
		Listener:   a.options.Name,
		Protocol:   a.options.Protocol,
		Internal:   a.socket == nil,
		RemoteAddr: socket.RemoteAddr(),
		Host:       hostOf(socket.RemoteAddr()),
		server:     a.server,
		acceptor:   a,
		wake:       make(chan struct{}, 1),
		stopped:    make(chan struct{}),
		frameLimit: a.server.limits.Load().MaxFrame,
	}
	c.reader.conn = c
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.socket = socket
	c.mu.principal = Anonymous
	c.lastActive.Store(int64(a.server.now()))
	if !a.server.register(c) {
		c.cancel()
		_ = socket.Close() // nothing was said on it
		return false
	}
	a.counters.accepted.Add(1)
	a.counters.connections.Add(1)
	go c.run()
	return true
}

// hostOf is an address without its port.
func hostOf(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return host
}
