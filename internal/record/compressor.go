package record

import (
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

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

// zstdWindow is the window that we compress with, in bytes: that of zstd's level 3. Our encoder would take
// 8 MiB and more, which a batch of a megabyte cannot use and every consumer would have to allocate.
const zstdWindow = 2 << 20

// Compressor lends compression its buffers and keeps them between batches. The zero value is ready; it is
// safe for concurrent use and must not be copied after the first.
//
// Encoders of gzip and zstd are made for one level, and a topic's level hardly ever changes, so they are kept
// by level.
type Compressor struct {
	gzip   [GzipLevelMax + 1]sync.Pool // 0 is the default level
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
		// The frame then tells its size, and a window no larger than that, to whoever reads it.
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

// release gives the encoder back, without what it wrote to.
func (w compression) release() {
	w.Reset(nil)
	w.pool.Put(w.encoder)
}

// writer lends an encoder that compresses into out; the caller closes and releases it.
// A nil c gets pools of its own for this one call; they go with the encoder.
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

// gzipWriter takes gzip's levels as they are; -1, 0 and what is below are the default.
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

// zstdWriter maps zstd's 22 levels to the four that our encoder has.
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

// errLimit says that a buffer has reached its limit.
var errLimit = errors.New("more bytes than allowed")

// limitedBuffer collects bytes up to a limit, so that what is compressed or copied into it can be stopped as
// soon as it is too much.
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
