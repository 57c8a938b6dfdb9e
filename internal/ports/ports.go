// Package ports gives TCP ports of 127.0.0.1 to processes that must be told theirs, and have it again after a restart.
//
// A port that the system picks for a listener is anybody's again as soon as the listener is closed, so also in the time
// that a process takes to start or to come back. The ports of a [Range] are nobody else's: they lie below those that the
// system picks from, and a range has one owner, which holds its first port open for as long as it uses the others.
//
//	24000 held │ 24001 … 24009     one owner
//	24010 held │ 24011 … 24019     another one, maybe in another process
package ports

import (
	"errors"
	"fmt"
	"net"
)

// last is the last port that is given: Linux picks from 32768 on.
const last = 32767

// Range is some ports in a row that only its owner gives away. One goroutine uses it at a time.
type Range struct {
	held      net.Listener
	next, end int
}

// Reserve finds a range of size ports that nobody owns: from on, or the next one behind it of the same size.
func Reserve(from, size int) (*Range, error) {
	if from+size-1 > last {
		return nil, fmt.Errorf("%d ports from %d on reach into those above %d, from which the system picks: begin lower", size, from, last)
	}
	for ; from+size-1 <= last; from += size {
		if held, err := net.Listen("tcp", address(from)); err == nil {
			return &Range{held: held, next: from + 1, end: from + size}, nil
		}
	}
	return nil, fmt.Errorf("all ranges of %d ports up to %d are in use", size, last)
}

// errUsedUp says that there are not so many ports in a range.
var errUsedUp = errors.New("the range of ports is used up")

// Next is a port of the range that has not been given yet and that nobody listens on.
func (r *Range) Next() (int, error) {
	for r.next < r.end {
		port := r.next
		r.next++
		if l, err := net.Listen("tcp", address(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, errUsedUp
}

// NextAddress is Next with the host, as 127.0.0.1:24001.
func (r *Range) NextAddress() (string, error) {
	port, err := r.Next()
	return address(port), err
}

// Release lets others have the range.
func (r *Range) Release() error { return r.held.Close() }

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
