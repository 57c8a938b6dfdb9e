package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// What can be wrong with bytes.
var (
	// ErrShort means that a record goes on behind the end of its packet.
	ErrShort = errors.New("jute: packet too short")
	// ErrLength means a negative length that is not null.
	ErrLength = errors.New("jute: negative length")
	// ErrBool means a boolean that is neither 0 nor 1.
	ErrBool = errors.New("jute: boolean is neither 0 nor 1")
	// ErrOp means an operation that cannot be where it stands.
	ErrOp = errors.New("jute: unexpected operation")
)

// Reader takes a packet apart. After the first fault everything reads as zero; Err tells. It allocates only
// against bytes that are there.
type Reader struct {
	rest []byte
	err  error
}

// NewReader reads a packet without its length.
func NewReader(packet []byte) *Reader { return &Reader{rest: packet} }

// Err is the first fault.
func (r *Reader) Err() error { return r.err }

// Rest is what has not been read.
func (r *Reader) Rest() []byte { return r.rest }

// fail keeps the first fault, and leaves nothing to read.
func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// take returns the next n bytes, or nil where fewer are there.
func (r *Reader) take(n int) []byte {
	if len(r.rest) < n {
		r.fail(fmt.Errorf("%w: %d bytes wanted, %d left", ErrShort, n, len(r.rest)))
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Int reads an int.
func (r *Reader) Int() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Long reads a long.
func (r *Reader) Long() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	b := r.take(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		r.fail(ErrBool)
		return false
	}
	return b[0] == 1
}

// Buffer reads a buffer, which lies in the packet; nil is null, and differs from an empty one.
func (r *Reader) Buffer() []byte {
	n := r.Int()
	switch {
	case r.err != nil || n == -1:
		return nil
	case n < 0:
		r.fail(fmt.Errorf("%w: %d", ErrLength, n))
		return nil
	}
	return r.take(int(n))
}

// String reads a string; null is empty.
func (r *Reader) String() string { return string(r.Buffer()) }

// count reads how many elements a vector has, none of which is shorter than size. A null vector has none.
func (r *Reader) count(size int) int {
	n := int(r.Int())
	switch {
	case r.err != nil || n == -1:
		return 0
	case n < 0:
		r.fail(fmt.Errorf("%w: %d elements", ErrLength, n))
		return 0
	case n > len(r.rest)/size:
		r.fail(fmt.Errorf("%w: %d elements in %d bytes", ErrShort, n, len(r.rest)))
		return 0
	}
	return n
}

// Strings reads a vector of strings; nil where it has none.
func (r *Reader) Strings() []string {
	n := r.count(4)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.String()
	}
	return list
}

// AppendInt writes an int.
func AppendInt(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendLong writes a long.
func AppendLong(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendBool writes a boolean.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendBuffer writes a buffer; nil is null.
func AppendBuffer(dst, v []byte) []byte {
	if v == nil {
		return AppendInt(dst, -1)
	}
	return append(AppendInt(dst, int32(len(v))), v...)
}

// AppendString writes a string.
func AppendString(dst []byte, v string) []byte { return append(AppendInt(dst, int32(len(v))), v...) }

// AppendStrings writes a vector of strings.
func AppendStrings(dst []byte, list []string) []byte {
	dst = AppendInt(dst, int32(len(list)))
	for _, v := range list {
		dst = AppendString(dst, v)
	}
	return dst
}
