package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed says that a message claims more than its bytes hold, or values that cannot be.
var ErrMalformed = errors.New("malformed message")

// Reader reads primitives one after the other and never past its bytes. After the first fault every read
// gives zero values, so that callers check Err once, at the end. Byte slices alias the input. Nothing is
// allocated by a claimed length.
type Reader struct {
	rest []byte
	bad  bool
}

// NewReader reads b from its start.
func NewReader(b []byte) Reader { return Reader{rest: b} }

// Err is ErrMalformed after a fault.
func (r *Reader) Err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// Rest is what has not been read; nil after a fault.
func (r *Reader) Rest() []byte { return r.rest }

// fail makes the reader useless.
func (r *Reader) fail() { r.rest, r.bad = nil, true }

// Span reads n bytes; a negative n is a fault.
func (r *Reader) Span(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Int8 reads one byte.
func (r *Reader) Int8() int8 {
	if b := r.Span(1); b != nil {
		return int8(b[0])
	}
	return 0
}

// Bool reads one byte; everything but 0 is true.
func (r *Reader) Bool() bool { return r.Int8() != 0 }

// Int16 reads two bytes.
func (r *Reader) Int16() int16 {
	if b := r.Span(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

// Int32 reads four bytes.
func (r *Reader) Int32() int32 {
	if b := r.Span(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads eight bytes.
func (r *Reader) Int64() int64 {
	if b := r.Span(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// UUID reads the 16 bytes of an id.
func (r *Reader) UUID() (id [16]byte) {
	copy(id[:], r.Span(16))
	return id
}

// Uvarint reads an unsigned varint of at most 32 bits, which takes at most five bytes.
func (r *Reader) Uvarint() uint32 {
	value, n := binary.Uvarint(r.rest[:min(len(r.rest), 5)])
	if n <= 0 || value > math.MaxUint32 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return uint32(value)
}

// Varint reads a zig-zag varint of at most 32 bits.
func (r *Reader) Varint() int32 {
	u := r.Uvarint()
	return int32(u>>1) ^ -int32(u&1)
}

// NullableBytes16 reads a nullable string with a length of two bytes; nil is null.
func (r *Reader) NullableBytes16() []byte { return r.nullable(int(r.Int16())) }

// NullableBytes32 reads nullable bytes with a length of four bytes; nil is null.
func (r *Reader) NullableBytes32() []byte { return r.nullable(int(r.Int32())) }

// NullableCompactBytes reads a compact nullable string, nullable bytes or records; nil is null.
func (r *Reader) NullableCompactBytes() []byte { return r.nullable(int(r.Uvarint()) - 1) }

// nullable reads n bytes, or null where n is negative, as Kafka takes it.
func (r *Reader) nullable(n int) []byte {
	if n < 0 {
		return nil
	}
	return r.Span(n)
}

// String reads a string with a length of two bytes; null is a fault.
func (r *Reader) String() string { return string(r.Span(int(r.Int16()))) }

// CompactString reads a compact string; null is a fault.
func (r *Reader) CompactString() string { return string(r.Span(int(r.Uvarint()) - 1)) }

// ArrayLen reads the length of an array with four bytes of length; -1 stands for null, any negative one. A length
// that cannot be, since every element has at least elementMin bytes, is a fault: what the caller allocates is
// bounded by the input.
func (r *Reader) ArrayLen(elementMin int) int { return r.bounded(int(r.Int32()), elementMin) }

// CompactArrayLen is ArrayLen for compact arrays.
func (r *Reader) CompactArrayLen(elementMin int) int {
	return r.bounded(int(r.Uvarint())-1, elementMin)
}

// bounded refuses array lengths that do not fit into what is left.
func (r *Reader) bounded(n, elementMin int) int {
	if r.bad {
		return 0
	}
	if n > len(r.rest)/max(elementMin, 1) {
		r.fail()
		return 0
	}
	return max(n, -1)
}

// SkipTags skips tagged fields. Every tag takes at least two bytes, so a lying count ends early.
func (r *Reader) SkipTags() {
	for n := r.Uvarint(); n > 0 && !r.bad; n-- {
		r.Uvarint()
		r.Span(int(r.Uvarint()))
	}
}

// NextTag reads the number and the bytes of the next of the tagged fields that Uvarint counted.
func (r *Reader) NextTag() (tag uint32, value []byte) {
	tag = r.Uvarint()
	return tag, r.Span(int(r.Uvarint()))
}
