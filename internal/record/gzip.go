package record

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
)

// chunkSize is how much gzip and zstd streams decompress at a time, in bytes: enough that few records lie across two
// chunks, and little enough to stay in the processor's cache until they have been looked at.
const chunkSize = 32 << 10

// gzipSource decompresses gzip, also several members one behind the other. What follows and is none is
// ignored, as Java does.
type gzipSource struct {
	payload bytes.Reader
	reader  gzip.Reader
	buffer  []byte
}

func (g *gzipSource) reset(payload []byte, _ openMode) error {
	if g.buffer == nil {
		g.buffer = make([]byte, chunkSize)
	}
	g.payload.Reset(payload)
	return g.member()
}

// member begins the next member.
//
// Its header is read here, and the checksum of its contents when they have been read to the end.
func (g *gzipSource) member() error {
	err := g.reader.Reset(&g.payload)
	if err == nil {
		g.reader.Multistream(false)
	}
	return err
}

func (g *gzipSource) next() ([]byte, error) {
	for {
		n, err := g.reader.Read(g.buffer)
		if n > 0 {
			return g.buffer[:n], nil
		}
		if err != io.EOF {
			return nil, err
		}
		if g.payload.Len() == 0 || g.member() != nil {
			return nil, io.EOF
		}
	}
}

func (g *gzipSource) release() { g.payload.Reset(nil) }
