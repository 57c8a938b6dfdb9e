package record

import "encoding/binary"

// Lengths of the longest varints in bytes.
const (
	varintMax  = 5
	varlongMax = 10
)

// varint reads a zig-zag varint of at most 32 bits; n is 0 where b ends too early and negative where the
// varint is too long. As Java does, it drops bits above the 32nd of a fifth byte.
func varint(b []byte) (value int32, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int32(b[0]>>1) ^ -int32(b[0]&1), 1
	}
	var u uint32
	for i := range min(len(b), varintMax) {
		u |= uint32(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i + 1
		}
	}
	if len(b) < varintMax {
		return 0, 0
	}
	return 0, -1
}

// varlong is varint for 64 bits.
func varlong(b []byte) (value int64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]>>1) ^ -int64(b[0]&1), 1
	}
	var u uint64
	for i := range min(len(b), varlongMax) {
		u |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	if len(b) < varlongMax {
		return 0, 0
	}
	return 0, -1
}

// appendVarint appends value as a zig-zag varint.
func appendVarint(dst []byte, value int64) []byte { return binary.AppendVarint(dst, value) }

// varintSize is the length of value as a zig-zag varint.
func varintSize(value int64) int {
	u := uint64(value)<<1 ^ uint64(value>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
