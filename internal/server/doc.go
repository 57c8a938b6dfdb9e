// Package server is the broker's network: listeners, connections, frames, ordered responses, zero-copy
// writes and limits. It knows frames, not APIs; what a frame means is the [Handler]'s business.
//
// # Frames
//
// Both directions carry the same thing, big endian:
//
//	length int32 | length bytes: header and body
//
// A length of zero, below zero or above the limit closes the connection, and so does a frame that stops
// arriving. Memory grows with the bytes that came, never with the length that was claimed.
//
// # A connection
//
//	         bytes            frames             replies
//	socket ────────▶ reader ────────▶ Handler ────────────▶ queue ────────▶ sender ────────▶ socket
//	                   ▲   first phase, strictly in order    │ slots in      bytes, file
//	                   │                                     │ request order ranges
//	                   └── gate: pipeline depth, budget, mute ◀┘
//
// One goroutine a connection reads, runs the handler's first phase and, when nothing earlier is waiting,
// writes the answer itself. A request that waits gets a goroutine for its second phase, or sleeps ([Phase]) until
// somebody runs it who brings what it waits for; whoever completes
// the oldest slot of the queue becomes the writer for it and for all finished ones behind it. So an idle
// connection costs one goroutine and no buffer, and there is never a writer goroutine to wake.
//
// While something waits the reader goes on reading: that is how it sees the peer go away, and then the
// context of the waiting phases ends. It stops reading at a pipeline depth, when the bytes in flight over
// all connections reach their budget, after a reply with [Reply.Hold] until that has left, and while the
// connection is muted: a throttled answer is sent first, then the connection is not read for the time that
// the answer names (KIP-219).
//
// # Sending
//
// A [Response] is a list of pieces. Bytes and short file ranges are gathered into one pooled buffer and
// leave in one write; long ranges go by sendfile with an explicit offset on Linux TCP, their header ahead
// of them with MSG_MORE, and elsewhere through a pooled buffer.
//
// # Memory
//
//	idle connection    about 6 KiB: a goroutine with 4 KiB of stack, the socket, the [Conn]; no buffer
//	frame up to 16 KiB shares a 16 KiB buffer with its neighbours; not charged to the budget, so that a
//	                   heartbeat never waits behind stuck produce requests
//	larger frame       a buffer of its size class, charged to [Limits.InFlightBytes]
package server
