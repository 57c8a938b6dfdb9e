package record

import (
	"bytes"

	"github.com/klauspost/compress/zstd"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// zstdSource decompresses zstd frames. The rare frame that wants a large window gets a decoder
// that is closed when it has been read: kept in a pool it would hold its window for ever.
type zstdSource struct {
	payload bytes.Reader
	// decoder is kept; its window is at most windowCheap.
	decoder *zstd.Decoder
	// heavy replaces decoder for one payload whose window is larger.
	heavy  *zstd.Decoder
	wanted bool
	buffer []byte
}

// isHeavy looks at the frame's header before anything is allocated, and reports whether the payload asks for a
// window above windowCheap.
func (z *zstdSource) isHeavy(payload []byte) bool {
	var h zstd.Header
	z.wanted = h.Decode(payload) == nil && !h.Skippable && max(h.WindowSize, singleSegment(&h)) > windowCheap
	return z.wanted
}

// singleSegment is the size of a frame that is its own window, or 0.
func singleSegment(h *zstd.Header) uint64 {
	if h.SingleSegment && h.HasFCS {
		return h.FrameContentSize
	}
	return 0
}

func (z *zstdSource) reset(payload []byte, _ openMode) error {
	if z.buffer == nil {
		z.buffer = make([]byte, chunkSize)
		z.decoder = newZstdDecoder(windowCheap)
	}
	z.payload.Reset(payload)
	if z.wanted {
		z.heavy = newZstdDecoder(windowMax)
		return z.heavy.Reset(&z.payload)
	}
	return z.decoder.Reset(&z.payload)
}

// newZstdDecoder makes a decoder that works in the caller's goroutine and refuses windows above window. It
// must not decompress small payloads as a whole, which is its habit: they can be bombs.
//
//	window that a frame asks for     who decompresses it
//	up to 8 MiB (level 19)           the kept decoder
//	up to 128 MiB (level 22)         one decoder made for it, one at a time where it is a client's
//	above                            nobody: the decoder refuses it
func newZstdDecoder(window uint64) *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeBuffersBelow(0), zstd.WithDecoderMaxMemory(window))
	if err != nil {
		invariant.Fail("zstd decoder: %v", err)
	}
	return decoder
}

func (z *zstdSource) next() ([]byte, error) {
	decoder := z.decoder
	if z.heavy != nil {
		decoder = z.heavy
	}
	n, err := decoder.Read(z.buffer)
	if n > 0 {
		return z.buffer[:n], nil
	}
	return nil, err
}

func (z *zstdSource) release() {
	z.payload.Reset(nil)
	z.wanted = false
	if z.heavy != nil {
		z.heavy.Close()
		z.heavy = nil
	}
}
