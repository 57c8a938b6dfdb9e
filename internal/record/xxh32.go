package record

import (
	"encoding/binary"
	"math/bits"
)

// The primes of xxHash32.
const (
	xxPrime1 uint32 = 2654435761
	xxPrime2 uint32 = 2246822519
	xxPrime3 uint32 = 3266489917
	xxPrime4 uint32 = 668265263
	xxPrime5 uint32 = 374761393
)

// xxh32 is xxHash32 of b with seed 0, the checksum of lz4 frames.
//
// Frames have the second byte of it over their descriptor, and all of it over blocks and contents. The loop takes 16
// bytes at a time into four sums; what is left goes in by fours and by ones. The lz4
// library has one too, and keeps it to itself.
func xxh32(b []byte) uint32 {
	h := xxPrime5
	size := uint32(len(b))
	if len(b) >= 16 {
		one, two := xxPrime1, xxPrime2
		v := [4]uint32{one + two, two, 0, -one}
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+binary.LittleEndian.Uint32(b[4*i:])*xxPrime2, 13) * xxPrime1
			}
		}
		h = bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	}
	h += size
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*xxPrime3, 17) * xxPrime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}
