package server

import (
	"sync/atomic"
	"time"
)

// ending is why a connection was closed or not taken. As an error it ends the reader's loop.
type ending uint8

const (
	endPeer            ending = iota // the peer closed or reset it
	endReply                         // a handler asked for it
	endIdle                          // connections.max.idle.ms
	endSlowFrame                     // a frame stopped arriving
	endBadFrame                      // a length that no frame has
	endPanic                         // a handler panicked
	endStuckWrite                    // the peer took nothing of an answer
	endBadFile                       // a file range could not be read to its end
	endHandshake                     // the handshake failed
	endShutdown                      // we stop
	refusedBroker                    // max.connections
	refusedListener                  // listener's max.connections
	refusedPerIP                     // max.connections.per.ip
	refusedDescriptors               // the process has no descriptors for it
	endingCount
)

// firstRefusal divides the endings: from here on the connection was never served.
const firstRefusal = refusedBroker

// endingNames are the label values that metrics show.
var endingNames = [endingCount]string{
	"peer", "reply", "idle", "slow-frame", "bad-frame", "panic", "stuck-write", "bad-file", "handshake",
	"shutdown", "max-connections", "listener-max-connections", "max-connections-per-ip", "descriptors",
}

// String is the label value of metrics.
func (e ending) String() string { return endingNames[e] }

// Error lets an ending travel as an error.
func (e ending) Error() string { return "connection ended: " + e.String() }

// counters are a listener's, changed by its connections.
type counters struct {
	connections, accepted, requests, inFlight atomic.Int64
	bytesIn, bytesOut, sendfileBytes          atomic.Int64
	throttled                                 atomic.Int64 // nanoseconds
	ended                                     [endingCount]atomic.Int64
}

// ListenerStats is a snapshot of one listener's counters. All but Connections and InFlight only rise.
//
// Accepted = Connections + all of Closed, and none of Refused is in Accepted; a snapshot may be off by what happens
// while it is taken.
type ListenerStats struct {
	// Listener is its name; "internal" counts [Server.Pipe].
	Listener string
	// Connections are open now; Accepted is how many were taken ever.
	Connections, Accepted int64
	// Requests came in whole; InFlight of them are not answered yet.
	Requests, InFlight int64
	// BytesIn and BytesOut count what came and left, lengths included; SendfileBytes is the part of
	// BytesOut that never was in user space.
	BytesIn, BytesOut, SendfileBytes int64
	// Throttled is for how long connections were muted, summed.
	Throttled time.Duration
	// Refused counts connections that were not taken, by reason; Closed those that were, likewise.
	Refused, Closed map[string]int64
}

// Stats is a snapshot of a server's counters.
type Stats struct {
	// Listeners are in the order of [Options.Listeners], the internal one last.
	Listeners []ListenerStats
	// InFlightBytes is what the budget for frames is charged with.
	InFlightBytes int64
	// FreeBufferBytes is what the pool of buffers keeps for reuse.
	FreeBufferBytes int64
}

// Stats is what the server has counted so far. It costs a few atomic reads a listener.
func (s *Server) Stats() Stats {
	stats := Stats{InFlightBytes: s.budget.inFlight(), FreeBufferBytes: s.buffers.FreeBytes()}
	for _, l := range s.listeners {
		stats.Listeners = append(stats.Listeners, l.counters.snapshot(l.options.Name))
	}
	stats.Listeners = append(stats.Listeners, s.internal.counters.snapshot(internalListener))
	return stats
}

func (c *counters) snapshot(name string) ListenerStats {
	stats := ListenerStats{
		Listener:      name,
		Connections:   c.connections.Load(),
		Accepted:      c.accepted.Load(),
		Requests:      c.requests.Load(),
		InFlight:      c.inFlight.Load(),
		BytesIn:       c.bytesIn.Load(),
		BytesOut:      c.bytesOut.Load(),
		SendfileBytes: c.sendfileBytes.Load(),
		Throttled:     time.Duration(c.throttled.Load()),
		Refused:       make(map[string]int64),
		Closed:        make(map[string]int64),
	}
	for e := range endingCount {
		if e >= firstRefusal {
			stats.Refused[e.String()] = c.ended[e].Load()
		} else {
			stats.Closed[e.String()] = c.ended[e].Load()
		}
	}
	return stats
}
