package record

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// The levels that Kafka allows and takes by default, in the properties compression.*.level. Level 0 stands for
// the default everywhere in this package, except that gzip's default has the number -1 as well.
const (
	GzipLevelDefault = -1
	GzipLevelMax     = 9
	Lz4LevelDefault  = 9
	Lz4LevelMax      = 17
	ZstdLevelDefault = 3
	ZstdLevelMax     = 22
)

// zstdWindow is the window that we compress with, in bytes: that of zstd's level 3.
const zstdWindow = 2 << 20

// Compressor lends compression its buffers and keeps them between batches. The zero value is ready; it is
// safe for concurrent use and must not be copied after the first.
type Compressor struct {
	gzip   [GzipLevelMax + 1]sync.Pool // by level, 0 is the default
	zstd   [zstd.SpeedBestCompression + 1]sync.Pool
	snappy sync.Pool
	lz4    sync.Pool
}

// encoder compresses what is written to it; Close ends the stream but does not give the encoder back.
type encoder interface {
	io.WriteCloser
	Reset(io.Writer)
}

// Compress appends src, compressed, to dst; level 0 is the codec's default and levels out of Kafka's bounds
// count as the nearest. A nil Compressor works, with fresh buffers.
func (c *Compressor) Compress(dst, src []byte, codec Codec, level int) []byte {
	if codec == None {
		return append(dst, src...)
	}
	out := limitedBuffer{bytes: dst}
	w := c.writer(codec, level, &out)
	if z, ok := w.encoder.(*zstd.Encoder); ok {
		out.bytes = z.EncodeAll(src, dst)
	} else {
		_, err := w.Write(src)
		if err = errors.Join(err, w.Close()); err != nil {
			invariant.Fail("%s into memory: %v", codec, err)
		}
	}
	w.release()
	return out.bytes
}

// compression is an encoder on loan.
type compression struct {
	encoder
	pool *sync.Pool
}

// release gives the encoder back.
func (w compression) release() {
	w.Reset(nil)
	w.pool.Put(w.encoder)
}

// writer lends an encoder that compresses into out; the caller closes and releases it.
func (c *Compressor) writer(codec Codec, level int, out io.Writer) compression {
	if c == nil {
		c = new(Compressor)
	}
	var w compression
	switch codec {
	case Gzip:
		w = c.gzipWriter(level)
	case Snappy:
		w = lend(&c.snappy, func() encoder { return &blockWriter{format: xerialFormat{}} })
	case Lz4:
		w = lend(&c.lz4, func() encoder { return &blockWriter{format: new(lz4Format)} })
		w.encoder.(*blockWriter).format.(*lz4Format).setLevel(level)
	case Zstd:
		w = c.zstdWriter(level)
	default:
		invariant.Fail("nothing compresses with %s", codec)
	}
	w.Reset(out)
	return w
}

// lend takes an encoder from its pool or makes it.
func lend(pool *sync.Pool, fresh func() encoder) compression {
	e, _ := pool.Get().(encoder)
	if e == nil {
		e = fresh()
	}
	return compression{e, pool}
}

func (c *Compressor) gzipWriter(level int) compression {
	level = min(level, GzipLevelMax)
	at := max(level, 0)
	return lend(&c.gzip[at], func() encoder {
		if at == 0 {
			level = gzip.DefaultCompression
		}
		w, err := gzip.NewWriterLevel(nil, level)
		if err != nil {
			invariant.Fail("gzip level %d: %v", level, err)
		}
		return w
	})
}

func (c *Compressor) zstdWriter(level int) compression {
	if level == 0 {
		level = ZstdLevelDefault
	}
	speed := zstd.EncoderLevelFromZstd(level)
	return lend(&c.zstd[speed], func() encoder {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false))
		if err != nil {
			invariant.Fail("zstd level %d: %v", level, err)
		}
		return w
	})
}

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

// blockWriter writes a blockFormat.
type blockWriter struct {
	format blockFormat
	out    io.Writer
	block  []byte
	packed []byte
	begun  bool
}

// Reset begins another stream.
func (w *blockWriter) Reset(out io.Writer) {
	w.out, w.block, w.begun = out, w.block[:0], false
}

// Write adds p to the stream.
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

// Close ends the stream.
func (w *blockWriter) Close() error {
	if err := w.flush(w.block); err != nil {
		return err
	}
	_, err := io.WriteString(w.out, w.format.trailer())
	return err
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

// lz4Format is the lz4 frame as Java writes it.
type lz4Format struct {
	fast lz4.Compressor
	high lz4.CompressorHC
	slow bool
}

// setLevel takes Kafka's level: 9, the default, is the fast compressor, as in Java.
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

// grow makes room for n bytes behind dst.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, roundUp(len(dst)+n)), dst...)
}

// errLimit says that a buffer has reached its limit.
var errLimit = errors.New("more bytes than allowed")

// limitedBuffer collects bytes up to a limit.
type limitedBuffer struct {
	bytes []byte
	// limit is the largest length; 0 is none.
	limit int
}

// Write appends p, or fails where the limit is reached.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.limit > 0 && len(b.bytes)+len(p) > b.limit {
		return 0, errLimit
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}
