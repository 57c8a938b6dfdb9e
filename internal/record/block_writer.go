package record

import (
	"io"
)

// blockFormat is a stream of blocks that are compressed one by one.
type blockFormat interface {
	// header begins the stream, trailer ends it.
	header() string
	trailer() string
	// blockBytes is how much goes into a block.
	blockBytes() int
	// appendBlock compresses a block with its frame.
	appendBlock(dst, block []byte) []byte
}

// blockWriter writes a blockFormat: snappy and lz4 come from libraries that compress a block in memory, while
// gzip and zstd bring writers of their own. It holds at most one block uncompressed and one compressed, and keeps
// both buffers between streams. It is for one goroutine; [Compressor] pools it.
//
//	header | frame(block 1) | frame(block 2) | ... | frame(rest) | trailer
type blockWriter struct {
	format blockFormat
	out    io.Writer
	// block is what waits until there is enough for a block.
	block []byte
	// packed is the last block, compressed and framed.
	packed []byte
	// begun is set once the header is out.
	begun bool
}

// Reset begins another stream.
func (w *blockWriter) Reset(out io.Writer) {
	w.out, w.block, w.begun = out, w.block[:0], false
}

// Write adds p to the stream. Whole blocks are compressed out of p, without a copy.
func (w *blockWriter) Write(p []byte) (int, error) {
	size := w.format.blockBytes()
	for n := len(p); ; {
		if len(w.block) == 0 && len(p) >= size {
			if err := w.flush(p[:size]); err != nil {
				return 0, err
			}
			p = p[size:]
			continue
		}
		part := min(size-len(w.block), len(p))
		w.block = append(w.block, p[:part]...)
		p = p[part:]
		if len(w.block) == size {
			if err := w.flush(w.block); err != nil {
				return 0, err
			}
			w.block = w.block[:0]
		}
		if len(p) == 0 {
			return n, nil
		}
	}
}

// flush writes one block, and the header before the first.
func (w *blockWriter) flush(block []byte) error {
	w.packed = w.packed[:0]
	if !w.begun {
		w.packed = append(w.packed, w.format.header()...)
		w.begun = true
	}
	if len(block) > 0 {
		w.packed = w.format.appendBlock(w.packed, block)
	}
	_, err := w.out.Write(w.packed)
	return err
}

// Close ends the stream with the block that was not full. A stream without any content is still one: header
// and trailer.
func (w *blockWriter) Close() error {
	if err := w.flush(w.block); err != nil {
		return err
	}
	_, err := io.WriteString(w.out, w.format.trailer())
	return err
}

// grow makes room for n bytes behind dst.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, roundUp(len(dst)+n)), dst...)
}
