package logdir

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestApartComesAfterOthers: the thread has the lower priority, and no other keeps it.
func TestApartComesAfterOthers(t *testing.T) {
	nice := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		return 20 - n // as the system call tells it
	}
	before := nice()
	for range 20 {
		within := before
		apart(func() { within = nice() })
		if within != max(before, niceness) {
			t.Fatalf("niceness %d, expected %d", within, niceness)
		}
		done := make(chan int)
		go func() { done <- nice() }()
		if after := <-done; after != before {
			t.Fatalf("another goroutine has niceness %d, before it was %d", after, before)
		}
	}
}
