package record

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/pierrec/lz4/v4"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// The lz4 frame, little-endian, as far as Kafka uses it:
//
//	magic 04 22 4D 18 | flags: version 01, independent blocks, block checksums, content size, content checksum |
//	block size: 4 to 7 are 64 KiB to 4 MiB | content size uint64, if any | header checksum, 1 byte
//	each block: length uint32 (top bit: stored), bytes, checksum uint32 if flagged
//	length 0 ends the frame | content checksum uint32 if flagged, which nobody checks: the batch has a CRC
//
// Clients of format 0 computed the header checksum over the wrong bytes; there it is ignored (KIP-57).
const (
	lz4Magic = 0x184D2204
	// lz4Header is the header that we write: independent blocks of 64 KiB and nothing else.
	lz4Header     = "\x04\x22\x4d\x18\x60\x40\x82"
	lz4BlockBytes = 64 << 10
	lz4Stored     = 1 << 31
	// lz4RatioMax is what a byte of a block can expand to at most.
	lz4RatioMax = 255
)

// The flags in the second byte of the descriptor.
const (
	lz4FlagReserved        = 0x03
	lz4FlagContentSize     = 0x08
	lz4FlagBlockChecksum   = 0x10
	lz4FlagIndependent     = 0x20
	lz4FlagVersionMask     = 0xc0
	lz4FlagVersion         = 0x40
	lz4BlockSizeReserved   = 0x8f
	lz4BlockSizeShift      = 4
	lz4BlockSizeMin        = 4
	lz4DescriptorBytesMin  = 3
	lz4ContentSizeBytes    = 8
	lz4BlockChecksumLength = 4
)

var errLz4 = errors.New("lz4 frame is damaged")

// lz4Source decompresses one lz4 frame block by block; what follows the frame is ignored, as Java does. Blocks must be
// independent: Java's library writes no others and refuses them, and linked ones would need the block before.
//
//	magic | flags, sizes, checksum | len, block | len, block | 0 | checksum
//	                                 ▲ rest, after reset
type lz4Source struct {
	rest      []byte
	buffer    []byte
	blockMax  int
	checksums bool
}

func (l *lz4Source) reset(payload []byte, mode openMode) error {
	l.rest = nil
	if len(payload) < 4+lz4DescriptorBytesMin || binary.LittleEndian.Uint32(payload) != lz4Magic {
		return errLz4
	}
	flags, size := payload[4], payload[5]
	if flags&lz4FlagReserved != 0 || flags&lz4FlagVersionMask != lz4FlagVersion || flags&lz4FlagIndependent == 0 ||
		size&lz4BlockSizeReserved != 0 || size>>lz4BlockSizeShift < lz4BlockSizeMin {
		return errLz4
	}
	l.checksums = flags&lz4FlagBlockChecksum != 0
	l.blockMax = 1 << (8 + 2*int(size>>lz4BlockSizeShift))
	end := 4 + 2
	if flags&lz4FlagContentSize != 0 {
		end += lz4ContentSizeBytes
	}
	if len(payload) <= end || mode != legacy && payload[end] != byte(xxh32(payload[4:end])>>8) {
		return errLz4
	}
	l.rest = payload[end+1:]
	return nil
}

func (l *lz4Source) next() ([]byte, error) {
	for {
		if len(l.rest) < 4 {
			return nil, errLz4
		}
		field := binary.LittleEndian.Uint32(l.rest)
		if field&^lz4Stored == 0 {
			return nil, io.EOF
		}
		size := int(field &^ lz4Stored)
		if size > l.blockMax || size > len(l.rest)-4 {
			return nil, errLz4
		}
		block := l.rest[4 : 4+size]
		rest := l.rest[4+size:]
		if l.checksums {
			if len(rest) < lz4BlockChecksumLength || binary.LittleEndian.Uint32(rest) != xxh32(block) {
				return nil, errLz4
			}
			rest = rest[lz4BlockChecksumLength:]
		}
		l.rest = rest
		chunk, err := l.decode(block, field&lz4Stored != 0)
		if err != nil || len(chunk) > 0 {
			return chunk, err
		}
	}
}

// decode decompresses a block into the buffer; a stored one is taken as it is. The buffer has the frame's
// block size only if the block is large enough to fill it.
func (l *lz4Source) decode(block []byte, stored bool) ([]byte, error) {
	if stored {
		return block, nil
	}
	if most := min(l.blockMax, lz4RatioMax*len(block)); cap(l.buffer) < most {
		l.buffer = make([]byte, roundUp(most))
	}
	n, err := lz4.UncompressBlock(block, l.buffer[:min(l.blockMax, cap(l.buffer))])
	if err != nil {
		return nil, errLz4
	}
	return l.buffer[:n], nil
}

func (l *lz4Source) release() {
	l.rest = nil
	if cap(l.buffer) > keepMax {
		l.buffer = nil
	}
}

// lz4Format is the lz4 frame as Java writes it.
type lz4Format struct {
	fast lz4.Compressor
	high lz4.CompressorHC
	slow bool
}

// setLevel takes Kafka's level: 9, the default, is the fast compressor, as in Java.
// Java's fast compressor is what Kafka takes at level 9 and its high compressor at the others (KIP-390); ours has
// nine levels, so 10 to 17 count as 9.
func (f *lz4Format) setLevel(level int) {
	f.slow = level != 0 && level != Lz4LevelDefault
	level = min(max(level, 1), 9)
	f.high.Level = lz4.CompressionLevel(1 << (8 + level))
}

func (*lz4Format) header() string  { return lz4Header }
func (*lz4Format) trailer() string { return "\x00\x00\x00\x00" }
func (*lz4Format) blockBytes() int { return lz4BlockBytes }

func (f *lz4Format) appendBlock(dst, block []byte) []byte {
	at := len(dst)
	dst = grow(append(dst, 0, 0, 0, 0), lz4.CompressBlockBound(len(block)))
	var n int
	var err error
	if f.slow {
		n, err = f.high.CompressBlock(block, dst[at+4:cap(dst)])
	} else {
		n, err = f.fast.CompressBlock(block, dst[at+4:cap(dst)])
	}
	if err != nil {
		invariant.Fail("lz4 block of %d bytes: %v", len(block), err)
	}
	if n == 0 || n >= len(block) {
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(block))|lz4Stored)
		return append(dst[:at+4], block...)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(n))
	return dst[:at+4+n]
}
