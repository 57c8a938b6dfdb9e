package floor

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// piece is a range of a file that follows the first bytes of an answer, up to at.
type piece struct {
	at               int
	file             *os.File
	position, length int64
}

// send writes the answer with the ranges in it: for each piece one send with MSG_MORE, and one sendfile.
func send(conn *net.TCPConn, out []byte, pieces []piece) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	sent := 0
	for _, p := range pieces {
		if err := sendBytes(raw.Write, out[sent:p.at], unix.MSG_MORE); err != nil {
			return err
		}
		sent = p.at
		source := int(p.file.Fd())
		var failed error
		err := raw.Write(func(fd uintptr) bool {
			for p.length > 0 {
				n, err := unix.Sendfile(int(fd), source, &p.position, int(p.length))
				switch {
				case errors.Is(err, unix.EAGAIN):
					return false
				case errors.Is(err, unix.EINTR):
					continue
				case err != nil:
					failed = err
					return true
				}
				if n == 0 {
					failed = io.ErrUnexpectedEOF // the topic was deleted
					return true
				}
				p.length -= int64(n)
			}
			return true
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return sendBytes(raw.Write, out[sent:], 0)
}

func sendBytes(write func(func(uintptr) bool) error, text []byte, flags int) error {
	var failed error
	err := write(func(fd uintptr) bool {
		for len(text) > 0 {
			n, err := unix.SendmsgN(int(fd), text, nil, nil, flags)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				failed = err
				return true
			}
			text = text[n:]
		}
		return true
	})
	return errors.Join(err, failed)
}
