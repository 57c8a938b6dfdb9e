package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Defaults of [Options] and [Limits]; where Kafka has a property, its default.
const (
	// DefaultMaxFrame is socket.request.max.bytes.
	DefaultMaxFrame = 100 << 20
	// DefaultInFlightBytes bounds charged frames of all connections; Kafka's queued.max.request.bytes has no
	// bound by default, which a small machine cannot afford.
	DefaultInFlightBytes = 256 << 20
	// DefaultPipelineDepth is how many unanswered requests a connection may have. Clients keep 1 to 5.
	DefaultPipelineDepth = 64
	// DefaultIdleTimeout is connections.max.idle.ms.
	DefaultIdleTimeout = 10 * time.Minute
	// DefaultFrameTimeout is the window in which a frame that has begun must move on.
	DefaultFrameTimeout = 30 * time.Second
	// DefaultWriteTimeout is how long a peer may take no byte of an answer. It equals the clients' default
	// max.poll.interval.ms: consumers without a thread of their own leave an answer in the socket that long
	// while they work, and are not dead.
	DefaultWriteTimeout = 5 * time.Minute
	// DefaultHandshakeTimeout bounds [Listener.Handshake].
	DefaultHandshakeTimeout = 10 * time.Second
	// DefaultFileReads is how many goroutines may be inside a read or sendfile of a file at once. Each one
	// that waits for the disk holds an operating system thread.
	DefaultFileReads = 64
)

// Options are what a [Server] is made of. Zero values mean the defaults above.
type Options struct {
	// Listeners are opened by [New]. There may be none: [Server.Pipe] still works.
	Listeners []Listener
	// Listen opens an address; nil means net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// Handler gets every frame.
	Handler Handler
	// Limits may be changed later by [Server.SetLimits].
	Limits Limits
	// PipelineDepth is how many unanswered requests a connection may have before it is no longer read.
	PipelineDepth int
	// IdleTimeout closes a connection on which nothing came and nothing is in flight for that long; below
	// zero never. It holds for connections that never sent a byte, too.
	IdleTimeout time.Duration
	// FrameTimeout is the window in which a frame that has begun must end or bring frameProgress bytes.
	FrameTimeout time.Duration
	// WriteTimeout closes a connection whose peer takes nothing of an answer for that long, so that it
	// cannot pin segment files for ever.
	WriteTimeout time.Duration
	// HandshakeTimeout bounds [Listener.Handshake].
	HandshakeTimeout time.Duration
	// SendBuffer and ReceiveBuffer are the sockets' buffers in bytes; 0 leaves them to the system, which
	// sizes them by the traffic.
	SendBuffer, ReceiveBuffer int
	// FileReads is how many file reads and sendfiles may run at once.
	FileReads int
	// Buffers is the pool, shared by the servers of a process; nil makes one.
	Buffers *Buffers
	// Logger gets what an operator should see, rate-limited where a peer could flood it. Nil discards.
	Logger *slog.Logger
}

// Listener is one entry of listeners.
type Listener struct {
	// Name is the listener's name, such as PLAINTEXT or INTERNAL; unique.
	Name string
	// Address is host:port; an empty host is all interfaces, port 0 a free port.
	Address string
	// Protocol is the security protocol, such as PLAINTEXT; only carried to [Conn.Protocol].
	Protocol string
	// InterBroker exempts the listener from [Limits.MaxConnections]: clients must not be able to lock
	// brokers out.
	InterBroker bool
	// Handshake, where set, runs on each new connection before anything is read, in the connection's
	// goroutine: TLS wraps the connection here and may name its principal. Its error closes the connection.
	Handshake func(ctx context.Context, raw net.Conn, c *Conn) (net.Conn, error)
}

// Limits bound what peers can take. Zero means the default where there is one, otherwise no limit.
type Limits struct {
	// MaxFrame is socket.request.max.bytes, the longest frame; [Conn.SetMaxFrame] lowers it before login.
	MaxFrame int
	// InFlightBytes bounds the bytes of frames longer than 16 KiB that are being read or handled over all
	// connections. Above it reading waits; it never fails. One frame alone may be larger.
	InFlightBytes int64
	// Descriptors is how many connections the process's descriptor limit leaves room for.
	Descriptors int
	// MaxConnections is max.connections, over all listeners that are not InterBroker.
	MaxConnections int
	// ListenerConnections is listener.name.NAME.max.connections.
	ListenerConnections map[string]int
	// PerIP is max.connections.per.ip; PerIPOverrides by address beat it, also with 0.
	PerIP          int
	PerIPOverrides map[string]int
}

// withDefaults replaces zero values.
func (l Limits) withDefaults() Limits {
	l.MaxFrame = orDefault(l.MaxFrame, DefaultMaxFrame)
	l.InFlightBytes = orDefault(l.InFlightBytes, DefaultInFlightBytes)
	return l
}

// withDefaults replaces zero values.
func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.PipelineDepth = orDefault(o.PipelineDepth, DefaultPipelineDepth)
	o.IdleTimeout = orDefault(o.IdleTimeout, DefaultIdleTimeout)
	o.FrameTimeout = orDefault(o.FrameTimeout, DefaultFrameTimeout)
	o.WriteTimeout = orDefault(o.WriteTimeout, DefaultWriteTimeout)
	o.HandshakeTimeout = orDefault(o.HandshakeTimeout, DefaultHandshakeTimeout)
	o.FileReads = orDefault(o.FileReads, DefaultFileReads)
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	if o.Buffers == nil {
		o.Buffers = NewBuffers(DefaultFreeBytes)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// orDefault is v, or otherwise where v is zero.
func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// validate reports every fault of the options at once.
func (o Options) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Handler == nil {
		fault("no handler")
	}
	names := make(map[string]bool, len(o.Listeners))
	for _, l := range o.Listeners {
		if l.Name == "" || l.Name == internalListener || names[l.Name] {
			fault("listener name %q at %s is empty, reserved or used twice", l.Name, l.Address)
		}
		names[l.Name] = true
	}
	for name, n := range map[string]int64{
		"MaxFrame": int64(o.Limits.MaxFrame), "InFlightBytes": o.Limits.InFlightBytes,
		"PipelineDepth": int64(o.PipelineDepth), "FrameTimeout": int64(o.FrameTimeout),
		"WriteTimeout": int64(o.WriteTimeout), "HandshakeTimeout": int64(o.HandshakeTimeout),
		"FileReads": int64(o.FileReads),
	} {
		if n < 0 {
			fault("%s is %d, below zero", name, n)
		}
	}
	return errors.Join(faults...)
}
