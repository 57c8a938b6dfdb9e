package logdir

import "runtime"

// apart does something that takes a processor for long, on a thread of its own, and returns when it is done. Where the
// system knows how, the thread comes after the others when there are more of them than processors: who waits for an
// acknowledgement should not wait for the cleaner. A panic within ends the process: what is to survive one guards itself.
func apart(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it is never unlocked: the thread, which others must not get, ends with the goroutine
		comeAfterOthers()
		do()
	}()
	<-done
}
