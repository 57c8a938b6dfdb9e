package server

import (
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// rawDial connects by bare system calls, so that the client's end takes no memory of the runtime.
func rawDial(t *testing.T, port int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestIdleMemory holds an idle connection that has been used to its budget of 8 KiB: a goroutine whose stack has grown, the
// socket, and no buffer.
func TestIdleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's memory is not ours")
	}
	s := start(t, Options{Handler: ready()})
	const connections = 1000
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	request, answer := framed(string(make([]byte, 100))), make([]byte, 104)
	before := heap()
	for range connections {
		fd := rawDial(t, s.Addr("L").(*net.TCPAddr).Port)
		if _, err := unix.Write(fd, request); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(fd, answer); err != nil || n != len(answer) {
			t.Fatal(n, err)
		}
	}
	if got := s.Stats().FreeBufferBytes; got > 256<<10 {
		t.Errorf("%d bytes of buffers for connections used one after the other", got)
	}
	got := (heap() - before) / connections // below zero where garbage of other tests went meanwhile
	t.Logf("%d bytes a connection", got)
	if got > 8<<10 {
		t.Errorf("%d bytes a connection", got)
	}
}
