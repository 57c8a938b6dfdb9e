package server

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// shortTransfer is up to how many bytes go from or to a socket without a word to the scheduler. Such a call does not block
// and is over in microseconds. To announce it costs as much in a process that has just been idle: it wakes the runtime's
// watchdog thread, which finds nothing to do.
const shortTransfer = 64 << 10

// socketCall is a system call that moves up to size bytes from or to a non-blocking socket.
func socketCall(size int, trap uintptr, fd int, p unsafe.Pointer, n uintptr) (int, error) {
	var r uintptr
	var errno unix.Errno
	if size <= shortTransfer {
		r, _, errno = unix.RawSyscall(trap, uintptr(fd), uintptr(p), n)
	} else {
		r, _, errno = unix.Syscall(trap, uintptr(fd), uintptr(p), n)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// sendBytes is a write to a socket; p is not empty.
func sendBytes(fd int, p []byte) (int, error) {
	return socketCall(len(p), unix.SYS_WRITE, fd, unsafe.Pointer(&p[0]), uintptr(len(p)))
}

// inquiry is room for the control message of TCP_INQ, a header and an int32, aligned as one.
type inquiry [4]uint64

// receiveInquiring is recvmsg on a socket with TCP_INQ. drained says that the receive queue is empty and
// that no end of stream stands behind it: the kernel answers 1 for that one. The package unix allocates for
// this call.
//
//	control   0 length of this message, header included
//	          8 level  int32  IPPROTO_TCP
//	         12 type   int32  TCP_CM_INQ
//	         16 value  int32  bytes that are left in the receive queue
//
// No pointer in it outlives the call, and the call does not block: the descriptor is non-blocking.
func receiveInquiring(fd int, p []byte) (n int, drained bool, err error) {
	var (
		control inquiry
		vector  = unix.Iovec{Base: &p[0]}
		message = unix.Msghdr{Iov: &vector, Control: (*byte)(unsafe.Pointer(&control))}
	)
	vector.SetLen(len(p))
	message.SetIovlen(1)
	message.SetControllen(unix.CmsgSpace(4))
	n, err = socketCall(len(p), unix.SYS_RECVMSG, fd, unsafe.Pointer(&message), 0)
	if err != nil {
		return 0, false, err
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control))
	if message.Controllen > 0 && header.Level == unix.IPPROTO_TCP && header.Type == unix.TCP_CM_INQ {
		drained = *(*int32)(unsafe.Add(unsafe.Pointer(&control), unix.CmsgLen(0))) == 0
	}
	return n, drained, nil
}

// sendVectors is sendmsg of up to vectorCount slices, none of them empty.
func sendVectors(fd int, vectors [][]byte, flags int) (int, error) {
	if len(vectors) == 1 && flags&unix.MSG_MORE == 0 {
		return sendBytes(fd, vectors[0])
	}
	var iovecs [vectorCount]unix.Iovec
	vectors = vectors[:min(len(vectors), vectorCount)]
	size := 0
	for i, v := range vectors {
		size += len(v)
		iovecs[i].Base = &v[0]
		iovecs[i].SetLen(len(v))
	}
	message := unix.Msghdr{Iov: &iovecs[0]}
	message.SetIovlen(len(vectors))
	return socketCall(size, unix.SYS_SENDMSG, fd, unsafe.Pointer(&message), uintptr(flags))
}
