package replica

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// wokenHere is how many are woken by who has brought something, one after the other: each may send an answer. That
	// takes less than to wake a thread for it, but a producer waits meanwhile.
	wokenHere = 2
	// wokenTogether is how many share a goroutine of those beyond.
	wokenTogether = 8
)

// wakeups are calls that were decided under a partition's lock, and are made when it is free: who is woken may have
// to take the lock, or to write to a socket.
type wakeups struct {
	mu   sync.Mutex
	due  []func()
	some atomic.Bool // due is not empty
}

func (w *wakeups) add(wake func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = append(w.due, wake)
	w.some.Store(true)
}

// run makes the calls that are due. The partition's lock must not be held.
func (w *wakeups) run() {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	due := w.due
	w.due = nil
	w.some.Store(false)
	w.mu.Unlock()
	here := due[:min(len(due), wokenHere)]
	for rest := range slices.Chunk(due[len(here):], wokenTogether) {
		go wakeAll(rest)
	}
	wakeAll(here)
}

func wakeAll(due []func()) {
	for _, wake := range due {
		wake()
	}
}
