package floor

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

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
		if err := sendBytes(raw, out[sent:p.at], unix.MSG_MORE); err != nil {
			return err
		}
		sent = p.at
		source := int(p.file.Fd())
		err := whole(raw, p.length, func(fd int, left int64) (int, error) {
			n, err := unix.Sendfile(fd, source, &p.position, int(left))
			if n == 0 && err == nil {
				err = io.ErrUnexpectedEOF // the topic was deleted
			}
			return n, err
		})
		if err != nil {
			return err
		}
	}
	return sendBytes(raw, out[sent:], 0)
}

func sendBytes(raw syscall.RawConn, text []byte, flags int) error {
	return whole(raw, int64(len(text)), func(fd int, left int64) (int, error) {
		return unix.SendmsgN(fd, text[int64(len(text))-left:], nil, nil, flags)
	})
}

// whole repeats a system call that sends a part of what is left until nothing is, and waits where the socket takes no more.
func whole(raw syscall.RawConn, left int64, some func(fd int, left int64) (int, error)) error {
	var failed error
	err := raw.Write(func(fd uintptr) bool {
		for left > 0 {
			n, err := some(int(fd), left)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				failed = err
				return true
			}
			left -= int64(n)
		}
		return true
	})
	return errors.Join(err, failed)
}
