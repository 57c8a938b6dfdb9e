//go:build !linux

package server

import "net"

// newTransport picks the transport for a socket that no handshake wrapped.
func newTransport(c *Conn, socket net.Conn) transport { return newPlain(c, socket) }
