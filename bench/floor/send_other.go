//go:build !linux

package floor

import (
	"io"
	"net"
	"os"
)

// piece is a range of a file that follows the first bytes of an answer, up to at.
type piece struct {
	at               int
	file             *os.File
	position, length int64
}

// send writes the answer with the ranges in it, by copying.
func send(conn *net.TCPConn, out []byte, pieces []piece) error {
	sent := 0
	for _, p := range pieces {
		if _, err := conn.Write(out[sent:p.at]); err != nil {
			return err
		}
		sent = p.at
		if _, err := io.Copy(conn, io.NewSectionReader(p.file, p.position, p.length)); err != nil {
			return err
		}
	}
	_, err := conn.Write(out[sent:])
	return err
}
