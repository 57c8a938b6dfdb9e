package server

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	r, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), 0)
	if errno != 0 {
		return 0, false, errno
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control))
	if message.Controllen > 0 && header.Level == unix.IPPROTO_TCP && header.Type == unix.TCP_CM_INQ {
		drained = *(*int32)(unsafe.Add(unsafe.Pointer(&control), unix.CmsgLen(0))) == 0
	}
	return int(r), drained, nil
}

// sendVectors is sendmsg of up to vectorCount slices, none of them empty.
func sendVectors(fd int, vectors [][]byte, flags int) (int, error) {
	if len(vectors) == 1 && flags&unix.MSG_MORE == 0 {
		return unix.Write(fd, vectors[0])
	}
	var iovecs [vectorCount]unix.Iovec
	vectors = vectors[:min(len(vectors), vectorCount)]
	for i, v := range vectors {
		iovecs[i].Base = &v[0]
		iovecs[i].SetLen(len(v))
	}
	message := unix.Msghdr{Iov: &iovecs[0]}
	message.SetIovlen(len(vectors))
	r, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), uintptr(flags))
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}
