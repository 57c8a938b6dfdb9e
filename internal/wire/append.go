package wire

import (
	"encoding/binary"
	"math"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// AppendInt16 appends two bytes.
// The primitives, big-endian; null is drawn on the right:
//
//	string          int16 length, bytes                    length -1
//	compact string  uvarint length+1, bytes                0
//	bytes, records  int32 length, bytes                    length -1
//	compact bytes   uvarint length+1, bytes                0
//	array           int32 count, elements                  count -1
//	compact array   uvarint count+1, elements              0
//	uuid            16 bytes                               all zero
//	tagged fields   uvarint count, then for each           count 0: one zero byte
//	                uvarint tag, uvarint size, bytes
//
//	uvarint         7 bits to a byte, lowest first; the top bit says that another byte follows
//	varint          zig-zag in a uvarint: 0, -1, 1, -2 are 0, 1, 2, 3
//
// Append functions append one value to dst and return it like append does; a value that its type cannot hold is
// a bug of ours and fails an assertion, since the peer would read the rest of the message askew.
func AppendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

// AppendInt32 appends four bytes.
func AppendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendInt64 appends eight bytes.
func AppendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendBool appends one byte.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendUvarint appends an unsigned varint.
func AppendUvarint(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// UvarintSize is the length of v as an unsigned varint.
func UvarintSize(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// AppendString appends a string with a length of two bytes.
func AppendString(dst []byte, s string) []byte {
	if len(s) > math.MaxInt16 {
		invariant.Fail("string of %d bytes", len(s))
	}
	return append(AppendInt16(dst, int16(len(s))), s...)
}

// AppendNullableString appends a nullable string with a length of two bytes.
func AppendNullableString(dst []byte, s *string) []byte {
	if s == nil {
		return AppendInt16(dst, -1)
	}
	return AppendString(dst, *s)
}

// AppendCompactString appends a compact string.
func AppendCompactString(dst []byte, s string) []byte {
	return append(AppendCompactLen(dst, len(s)), s...)
}

// AppendCompactNullableString appends a compact nullable string.
func AppendCompactNullableString(dst []byte, s *string) []byte {
	if s == nil {
		return AppendCompactLen(dst, -1)
	}
	return AppendCompactString(dst, *s)
}

// AppendArrayLen appends the length of an array with four bytes of length; -1 is null.
func AppendArrayLen(dst []byte, n int) []byte {
	if n < -1 || n > math.MaxInt32 {
		invariant.Fail("array of %d elements", n)
	}
	return AppendInt32(dst, int32(n))
}

// AppendCompactLen appends the length of a compact string, compact bytes, compact records or a compact array;
// -1 is null.
func AppendCompactLen(dst []byte, n int) []byte {
	if n < -1 || n >= math.MaxInt32 {
		invariant.Fail("compact length %d", n)
	}
	return AppendUvarint(dst, uint32(n+1))
}

// CompactLenSize is what AppendCompactLen appends for n, in bytes.
func CompactLenSize(n int) int { return UvarintSize(uint32(n + 1)) }

// AppendNoTags appends an empty set of tagged fields.
func AppendNoTags(dst []byte) []byte { return append(dst, 0) }
