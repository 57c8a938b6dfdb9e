package record

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
)

// chunkSize is how much gzip and zstd decompress at a time, in bytes.
const chunkSize = 32 << 10

// gzipSource decompresses gzip, also several members one behind the other.
type gzipSource struct {
	payload bytes.Reader
	reader  gzip.Reader
	buffer  []byte
}

func (g *gzipSource) reset(payload []byte, _ bool) error {
	if g.buffer == nil {
		g.buffer = make([]byte, chunkSize)
	}
	g.payload.Reset(payload)
	return g.reader.Reset(&g.payload)
}

func (g *gzipSource) next() ([]byte, error) {
	n, err := g.reader.Read(g.buffer)
	if n > 0 {
		return g.buffer[:n], nil
	}
	return nil, err
}

func (g *gzipSource) release() { g.payload.Reset(nil) }
