package perf

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper sleeps in the kernel. The kernel may be late by the thread's timer slack, 50 µs where nothing else is said.
type sleeper struct{ slack uintptr }

func (s *sleeper) begin() {
	runtime.LockOSThread()
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil {
		s.slack = uintptr(slack)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // in vain it only costs precision
}

func (s *sleeper) end() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, s.slack, 0, 0, 0) // 0 is the default again
	runtime.UnlockOSThread()
}

// sleep may return early, when a signal comes.
func (s *sleeper) sleep(d time.Duration) {
	request := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&request, nil) // the caller looks at the clock
}
