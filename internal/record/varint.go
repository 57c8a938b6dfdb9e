package record

import "encoding/binary"

// Varints have 7 bits to a byte, the lowest first; the top bit says that another byte follows. Zig-zag puts the
// sign into the lowest bit, so that small negative numbers are short as well:
//
//	value    0  -1   1  -2   2  ...  63   -64    64     -65
//	zig-zag  0   1   2   3   4  ...  126  127    128    129
//	bytes    00  01  02  03  04 ...  7e   7f     80 01  81 01
//
//	          first byte   second byte          value = (u >> 1) ^ -(u & 1)
//	bits of u 1.6543210    0.DCBA987            longest: 5 bytes for 32 bits, 10 for 64
const (
	varintMax  = 5
	varlongMax = 10
)

// varint reads a zig-zag varint of at most 32 bits; n is 0 where b ends too early and negative where the
// varint is too long. As Java does, it drops bits above the 32nd of a fifth byte.
func varint(b []byte) (value int32, n int) {
	if len(b) >= 8 {
		// The usual lengths out of one load, without a loop.
		word := binary.LittleEndian.Uint64(b)
		switch {
		case word&0x80 == 0:
			u := uint32(word & 0x7f)
			return int32(u>>1) ^ -int32(u&1), 1
		case word&0x8000 == 0:
			u := uint32(word&0x7f | word>>1&0x3f80)
			return int32(u>>1) ^ -int32(u&1), 2
		case word&0x800000 == 0:
			u := uint32(word&0x7f | word>>1&0x3f80 | word>>2&0x1fc000)
			return int32(u>>1) ^ -int32(u&1), 3
		}
	}
	return slowVarint(b)
}

// tooLong is where [short] says that a varint ends that is longer: behind everything.
const tooLong = 1 << 30

// short reads a varint of one or two bytes at p, of which both must be in b; the compiler puts it into its callers.
func short(b []byte, p int) (value int32, next int) {
	u := uint32(b[p])
	if u < 0x80 {
		return int32(u>>1) ^ -int32(u&1), p + 1
	}
	if b[p+1] >= 0x80 {
		return 0, tooLong
	}
	u = u&0x7f | uint32(b[p+1])<<7
	return int32(u>>1) ^ -int32(u&1), p + 2
}

func slowVarint(b []byte) (value int32, n int) {
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
	if len(b) >= 8 {
		word := binary.LittleEndian.Uint64(b)
		switch {
		case word&0x80 == 0:
			u := word & 0x7f
			return int64(u>>1) ^ -int64(u&1), 1
		case word&0x8000 == 0:
			u := word&0x7f | word>>1&0x3f80
			return int64(u>>1) ^ -int64(u&1), 2
		}
	}
	return slowVarlong(b)
}

func slowVarlong(b []byte) (value int64, n int) {
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
