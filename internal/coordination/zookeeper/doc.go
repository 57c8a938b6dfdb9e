// Package zookeeper is the coordination store on a real ZooKeeper ensemble (3.6 and newer), by a client of
// its own.
//
//	callers ─▶ queue ─▶ writer ─▶ connection ─▶ reader ─▶ answers, in the order of the requests
//	                                                  └─▶ events ─▶ one queue for each watch
//	run: dial, handshake, serve; after a cut the next server
//
// A session has one connection at a time. Requests are pipelined: many callers share one round trip and,
// under load, one write. Each carries what is needed when the connection breaks under it: a read is sent
// again on the next connection, a write that was sent fails with ErrUnknownOutcome, one that was not waits.
//
// # Time
//
// T is the session's timeout as the server granted it.
//
//	T/6  without a request: a ping is sent
//	T/3  without a byte from the server, or to connect and log in: the connection is given up, the session
//	     is Suspended, the next server is tried. A hung server costs no more than that.
//	T    since the newest request that was answered was sent: Deadline. The servers may have expired the
//	     session from here on: whoever acts for as long as it lives has stopped.
//
// Behind its Deadline the session stays Suspended and goes on asking: only a server declares it expired. An
// ensemble that was away for minutes gives every session its full time again when it is back; a client that
// had given up by its own clock would turn that into an election for every partition. A session that is told
// that it has expired is Lost, and never comes back: another one is opened.
//
// # Watches
//
// A watch is a persistent one of the server's (recursive for Subtree). A server keeps one watch for each
// connection and path, so the session registers each path once and hands the events on. After a reconnect
// all are registered anew, before any other request, and every watch gets a Resync, since a server does not
// tell what persistent watches have missed.
//
// # Login
//
// TLS, SASL DIGEST-MD5 and credentials of addAuth are settled on every connection before its first request.
// A server that refuses them ends the session with ErrAuth.
package zookeeper
