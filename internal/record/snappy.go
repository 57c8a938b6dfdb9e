package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/snappy"
)

// Java frames snappy with the Xerial library: a header, then blocks with their lengths in front. Most other
// clients write one bare block. Both are read; what we write is framed, as Java does it.
//
//	82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version int32 (1) | compatible version int32 (1)
//	each block: length int32, a snappy block of at most 32 KiB uncompressed
const (
	xerialMagic      = "\x82SNAPPY\x00"
	xerialHeader     = xerialMagic + "\x00\x00\x00\x01\x00\x00\x00\x01"
	xerialBlockBytes = 32 << 10
	// snappyRatioMax is above what snappy can expand: a copy of 64 bytes takes 3.
	snappyRatioMax = 22
)

var errSnappy = errors.New("snappy data is damaged")

// snappySource decompresses snappy block by block. A bare block is one chunk: copies in it may reach back to
// its start, so it is decompressed as a whole, which is at most 22 times its size.
type snappySource struct {
	rest   []byte
	framed bool
	// strict refuses what only our decoder reads.
	strict bool
	buffer []byte
}

func (s *snappySource) reset(payload []byte, mode openMode) error {
	s.strict = mode == guarded
	s.rest = payload
	s.framed = bytes.HasPrefix(payload, []byte(xerialMagic))
	if !s.framed {
		return nil
	}
	if len(payload) < len(xerialHeader) {
		return errSnappy
	}
	s.rest = payload[len(xerialHeader):]
	return nil
}

func (s *snappySource) next() ([]byte, error) {
	for len(s.rest) > 0 {
		block, err := s.cut()
		if err != nil {
			return nil, err
		}
		chunk, err := s.decode(block)
		if err != nil || len(chunk) > 0 {
			return chunk, err
		}
	}
	return nil, io.EOF
}

// cut takes the next block off rest. Streams may be joined, so that a header stands between blocks.
//
//	82 SNAPPY 00 | 1 | 1 | len, block | len, block | 82 SNAPPY 00 | 1 | 1 | len, block
//
// Java's reader takes such a header for the next stream. Its first four bytes are negative as a length, so that it
// cannot be mistaken for a block.
func (s *snappySource) cut() ([]byte, error) {
	if !s.framed {
		block := s.rest
		s.rest = nil
		return block, nil
	}
	if bytes.HasPrefix(s.rest, []byte(xerialMagic)) && len(s.rest) >= len(xerialHeader) {
		s.rest = s.rest[len(xerialHeader):]
	}
	if len(s.rest) < 4 {
		return nil, errSnappy
	}
	size := int(int32(binary.BigEndian.Uint32(s.rest)))
	if size < 0 || size > len(s.rest)-4 {
		return nil, errSnappy
	}
	block := s.rest[4 : 4+size]
	s.rest = s.rest[4+size:]
	return block, nil
}

// The claimed length is checked against what so many bytes can expand to before anything is allocated for it.
func (s *snappySource) decode(block []byte) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	if err != nil || size > snappyRatioMax*len(block) {
		return nil, errSnappy
	}
	if cap(s.buffer) < size {
		s.buffer = make([]byte, roundUp(size))
	}
	if s.strict && !plainSnappy(block) {
		return nil, errSnappy
	}
	chunk, err := snappy.Decode(s.buffer[:0:cap(s.buffer)], block)
	if err != nil {
		return nil, errSnappy
	}
	return chunk, nil
}

func (s *snappySource) release() {
	s.rest = nil
	if cap(s.buffer) > keepMax {
		s.buffer = nil
	}
}

// snappySteps is how far it is from each tag to the next; 0 for literals with a length of their own.
var snappySteps = func() (steps [256]uint8) {
	for tag := range steps {
		switch length := tag >> 2; {
		case tag&3 > 0:
			steps[tag] = [4]uint8{0, 2, 3, 5}[tag&3]
		case length < 60:
			steps[tag] = uint8(length + 2)
		}
	}
	return steps
}()

// plainSnappy reports whether block uses nothing but snappy: our decoder knows an extension (a copy of kind 1
// with offset 0 repeats the last offset) that no other client reads. The walk from tag to tag has no branch
// that the processor cannot guess: those would cost as much as decompressing.
//
//	tag & 3   what follows                            bytes to the next tag
//	0         literal of (tag>>2)+1 bytes, up to 60   (tag>>2)+2
//	0         longer: 1 to 4 bytes of length - 1      those, and the literal
//	1         copy of 4 to 11, offset 11 bits         2
//	2         copy of 1 to 64, offset 16 bits         3
//	3         copy of 1 to 64, offset 32 bits         5
func plainSnappy(block []byte) bool {
	_, p := binary.Uvarint(block)
	for p >= 0 && p < len(block)-1 {
		if binary.LittleEndian.Uint16(block[p:])&0xffe3 == 1 {
			return false
		}
		step := int(snappySteps[block[p]])
		if step == 0 {
			extra := int(block[p]>>2) - 59
			if p+extra >= len(block) {
				return false
			}
			for i := range extra {
				step |= int(block[p+1+i]) << (8 * i)
			}
			step += extra + 2
		}
		p += step
	}
	return true
}

// roundUp is the next power of two, at least 4 KiB, so that buffers of similar sizes are used again.
func roundUp(n int) int {
	size := 4 << 10
	for size < n {
		size *= 2
	}
	return size
}

// xerialFormat is snappy as Java frames it.
type xerialFormat struct{}

func (xerialFormat) header() string  { return xerialHeader }
func (xerialFormat) trailer() string { return "" }
func (xerialFormat) blockBytes() int { return xerialBlockBytes }

func (xerialFormat) appendBlock(dst, block []byte) []byte {
	at := len(dst)
	dst = grow(append(dst, 0, 0, 0, 0), snappy.MaxEncodedLen(len(block)))
	packed := snappy.Encode(dst[at+4:cap(dst)], block)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(packed)))
	return dst[:at+4+len(packed)]
}
