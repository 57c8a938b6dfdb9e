package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// internalListener is the listener name of [Server.Pipe].
const internalListener = "internal"

// killGrace is how long Shutdown waits, after it has ended the connections, for handlers to notice.
const killGrace = 5 * time.Second

// Server serves connections of several listeners. Several servers may live in one process.
type Server struct {
	options    Options
	limits     atomic.Pointer[Limits]
	started    time.Time // of the monotonic clock that all timeouts use
	listeners  []*acceptor
	internal   *acceptor
	buffers    *Buffers
	budget     *budget
	admission  *admission
	occasional *occasional
	senders    sync.Pool     // of *sender
	alarms     alarms        // of the requests that sleep
	fileReads  chan struct{} // a slot for each file read that may run
	draining   chan struct{} // closed when Shutdown begins
	accepting  sync.WaitGroup
	idle       chan struct{} // closed when draining and no connection is left

	mu struct {
		sync.Mutex
		connections map[*Conn]struct{}
		nextID      uint64
		serving     bool
		draining    bool
	}
}

// New opens the listeners. Until Start, connections wait in the system's backlog; that way the ports are
// known, and taken, before the broker registers itself.
//
// A listener that cannot be opened closes those before it: New leaves all ports or none.
func New(options Options) (*Server, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("server options: %w", err)
	}
	options = options.withDefaults()
	s := &Server{
		options:    options,
		started:    time.Now(),
		buffers:    options.Buffers,
		budget:     newBudget(options.Limits.InFlightBytes),
		admission:  newAdmission(options.Limits),
		occasional: newOccasional(options.Logger),
		fileReads:  make(chan struct{}, options.FileReads),
		draining:   make(chan struct{}),
		idle:       make(chan struct{}),
	}
	s.limits.Store(&options.Limits)
	s.senders.New = func() any { return new(sender) }
	s.mu.connections = make(map[*Conn]struct{})
	s.internal = &acceptor{server: s, options: Listener{Name: internalListener, InterBroker: true}}
	for _, l := range options.Listeners {
		socket, err := options.Listen("tcp", l.Address)
		if err != nil {
			s.closeListeners()
			return nil, fmt.Errorf("listener %s: %w", l.Name, err)
		}
		s.listeners = append(s.listeners, &acceptor{server: s, options: l, socket: socket})
	}
	return s, nil
}

// Start begins to accept connections. It may be called once.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.serving || s.mu.draining {
		return
	}
	s.mu.serving = true
	for _, a := range s.listeners {
		s.accepting.Add(1)
		go a.run()
	}
}

// Addr is the address that a listener really has, which matters where it asked for port 0; nil for an
// unknown name.
func (s *Server) Addr(listener string) net.Addr {
	for _, a := range s.listeners {
		if a.options.Name == listener {
			return a.socket.Addr()
		}
	}
	return nil
}

// SetLimits changes the limits for what comes from now on.
func (s *Server) SetLimits(limits Limits) {
	limits = limits.withDefaults()
	s.limits.Store(&limits)
	s.admission.setLimits(limits)
	s.budget.setLimit(limits.InFlightBytes)
}

// Buffers is the pool that the server uses; handlers may build their answers in it.
func (s *Server) Buffers() *Buffers { return s.buffers }

// Draining is closed when Shutdown begins: requests that wait should answer with what they have.
func (s *Server) Draining() <-chan struct{} { return s.draining }

// Pipe is a connection from the broker to itself, in memory, with [Conn.Internal] set. It works before
// Start. After Shutdown it is closed.
func (s *Server) Pipe() net.Conn {
	near, far := net.Pipe()
	s.internal.serve(far)
	return near
}

// Shutdown stops accepting and reading, lets the requests in flight answer until ctx ends, and then closes
// what is left. When it returns nil no goroutine of the server runs any more; an error says that handlers
// had to be cut off, or that some did not return even then.
//
//	draining closed     handlers that wait answer with what they have; no connection is registered any more
//	listeners closed    the ports are free for the next process
//	stopReading         requests that were read are answered; connections close when their queue is empty
//	ctx ends            kill: contexts end, nothing is written any more
//	killGrace ends      handlers that do not look at their context are left behind, and the caller is told
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.mu.draining
	s.mu.draining = true
	if first {
		close(s.draining)
		s.checkIdleLocked()
	}
	s.mu.Unlock()
	s.closeListeners()
	s.accepting.Wait()
	for _, c := range s.open() {
		c.stopReading(endShutdown)
	}
	defer s.alarms.stop()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
	}
	cut := s.open()
	for _, c := range cut {
		c.kill(endShutdown)
	}
	grace := time.NewTimer(killGrace)
	defer grace.Stop()
	select {
	case <-s.idle:
		return fmt.Errorf("%d connections were cut off: %w", len(cut), context.Cause(ctx))
	case <-grace.C:
		return fmt.Errorf("requests of %d connections do not end: %w", len(s.open()), context.Cause(ctx))
	}
}

// closeListeners gives the ports back.
func (s *Server) closeListeners() {
	for _, a := range s.listeners {
		if err := a.socket.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.options.Logger.Warn("closing a listener", "listener", a.options.Name, "error", err)
		}
	}
}

// open lists the connections that are there now.
func (s *Server) open() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	connections := make([]*Conn, 0, len(s.mu.connections))
	for c := range s.mu.connections {
		connections = append(connections, c)
	}
	return connections
}

// register gives a new connection its number; false while draining.
func (s *Server) register(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.draining {
		return false
	}
	s.mu.nextID++
	c.ID = s.mu.nextID
	s.mu.connections[c] = struct{}{}
	return true
}

// forget is the end of a connection: nothing of it runs any more but this.
//
// It runs last in the connection's goroutine, so an idle server has no goroutine left.
func (s *Server) forget(c *Conn) {
	c.mu.Lock()
	ended := c.mu.ended
	c.mu.Unlock()
	if !c.Internal {
		s.admission.leave(&c.acceptor.options, c.Host) // before it is counted: who sees the count may come in its place
	}
	counters := &c.acceptor.counters
	counters.ended[ended].Add(1)
	counters.connections.Add(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.connections, c)
	s.checkIdleLocked()
}

// checkIdleLocked tells Shutdown that the last connection is gone.
func (s *Server) checkIdleLocked() {
	if !s.mu.draining || len(s.mu.connections) > 0 {
		return
	}
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}
