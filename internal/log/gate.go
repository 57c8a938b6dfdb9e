package log

// gate is a lock that may be held across file I/O: a one-slot channel, since a goroutine that waits for a
// sync.Mutex would stop the virtual clock of testing/synctest.
type gate chan struct{}

// newGate makes an open gate.
func newGate() gate { return make(gate, 1) }

// lock waits for the gate and closes it behind itself.
func (g gate) lock() { g <- struct{}{} }

// unlock opens the gate for one other.
func (g gate) unlock() { <-g }

// tryLock reports whether it took the lock, without waiting.
func (g gate) tryLock() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}
