package record

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// Bounds in bytes of what is decompressed at once.
const (
	// wholeMax is up to where a payload is decompressed at once, which takes three quarters of the time: the decoder
	// writes where the records are read, and not into a window first. It is also how much of its work is done again
	// where a payload turns out to be larger.
	wholeMax = 1 << 20
	// wholeMin is the least room that is made for that; wholeRatio the expansion that room is made for where the
	// frame does not say its size.
	wholeMin   = 64 << 10
	wholeRatio = 8
	// wholeSlack is two of zstd's blocks: with less room behind the content the decoder's slower loop has to watch
	// the end of the buffer.
	wholeSlack = 256 << 10
)

// zstdSource decompresses zstd frames: at once where they are small, else in chunks. The rare frame that wants a large
// window gets a decoder that is closed when it has been read: kept in a pool it would hold its window for ever.
//
//	reset ── next: room enough ──▶ one chunk ─▶ io.EOF
//	              └▶ too large ──▶ chunk ─▶ chunk ─▶ ... ─▶ io.EOF
type zstdSource struct {
	payload []byte
	reader  bytes.Reader
	// decoder is kept; its window is at most windowCheap.
	decoder *zstd.Decoder
	// heavy replaces decoder for one payload whose window is larger.
	heavy *zstd.Decoder
	// content is the size that the frame claims, 0 where it claims none. large says that its window is above windowCheap.
	content uint64
	large   bool
	state   zstdState
	buffer  []byte
}

// zstdState says how far a payload is.
type zstdState int8

const (
	zstdUntried  zstdState = iota // nothing was decompressed
	zstdWhole                     // all of it was given
	zstdStreamed                  // it comes in chunks
)

// isHeavy looks at the frame's header before anything is allocated, and reports whether the payload asks for a
// window above windowCheap.
func (z *zstdSource) isHeavy(payload []byte) bool {
	var h zstd.Header
	known := h.Decode(payload) == nil && !h.Skippable
	z.large = known && max(h.WindowSize, singleSegment(&h)) > windowCheap
	z.content = 0
	if known && h.HasFCS {
		z.content = h.FrameContentSize
	}
	return z.large
}

// singleSegment is the size of a frame that is its own window, or 0.
func singleSegment(h *zstd.Header) uint64 {
	if h.SingleSegment && h.HasFCS {
		return h.FrameContentSize
	}
	return 0
}

func (z *zstdSource) reset(payload []byte, _ openMode) error {
	if z.decoder == nil {
		z.decoder = newZstdDecoder(windowCheap)
	}
	z.payload, z.state = payload, zstdUntried
	if z.large || z.content > wholeMax {
		return z.stream()
	}
	return nil
}

// stream begins to decompress the payload in chunks.
func (z *zstdSource) stream() error {
	z.state = zstdStreamed
	z.room(chunkSize)
	z.reader.Reset(z.payload)
	if z.large {
		z.heavy = newZstdDecoder(windowMax)
		return z.heavy.Reset(&z.reader)
	}
	return z.decoder.Reset(&z.reader)
}

// room makes the buffer at least n bytes large.
func (z *zstdSource) room(n int) {
	if cap(z.buffer) < n {
		z.buffer = make([]byte, roundUp(n))
	}
}

// newZstdDecoder makes a decoder that works in the caller's goroutine and refuses windows above window. When
// it streams it must not decompress small payloads as a whole, which is its habit: they can be bombs. When it is asked
// for the whole it stops at the room that it is given.
//
//	window that a frame asks for     who decompresses it
//	up to 8 MiB (level 19)           the kept decoder
//	up to 128 MiB (level 22)         one decoder made for it, one at a time where it is a client's
//	above                            nobody: the decoder refuses it
func newZstdDecoder(window uint64) *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeBuffersBelow(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(window))
	if err != nil {
		invariant.Fail("zstd decoder: %v", err)
	}
	return decoder
}

func (z *zstdSource) next() ([]byte, error) {
	switch z.state {
	case zstdWhole:
		return nil, io.EOF
	case zstdUntried:
		if chunk, ok := z.whole(); ok {
			return chunk, nil
		}
		if err := z.stream(); err != nil {
			return nil, err
		}
	}
	decoder := z.decoder
	if z.heavy != nil {
		decoder = z.heavy
	}
	n, err := decoder.Read(z.buffer[:cap(z.buffer)])
	if n > 0 {
		return z.buffer[:n], nil
	}
	return nil, err
}

// whole decompresses the payload at once. Where it cannot, for the decoder's errors do not tell a full buffer from
// damage, or where nothing is in the payload, it has to be streamed.
func (z *zstdSource) whole() ([]byte, bool) {
	wanted := int(z.content)
	if wanted == 0 {
		wanted = wholeRatio * len(z.payload)
	}
	z.room(min(max(wanted, wholeMin), wholeMax) + wholeSlack)
	chunk, err := z.decoder.DecodeAll(z.payload, z.buffer[:0])
	if err != nil || len(chunk) == 0 {
		return nil, false
	}
	z.state = zstdWhole
	return chunk, true
}

func (z *zstdSource) release() {
	if z.state == zstdStreamed && z.heavy == nil {
		// A stream that is left early keeps the decoder's one worker, for which whole would wait for ever. Without a
		// reader, which is no error, it is stopped.
		_ = z.decoder.Reset(nil)
	}
	z.payload, z.state = nil, zstdUntried
	z.reader.Reset(nil)
	z.large = false
	if z.heavy != nil {
		z.heavy.Close()
		z.heavy = nil
	}
}
