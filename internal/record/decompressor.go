package record

import (
	"errors"
	"math"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The bounds, and what they add up to. One stream needs its window, a chunk of 32 KiB and one record of at most
// RecordMax; a client's batches are validated by at most guardedMax streams with cheap windows (32 x 8 MiB) and
// one with a large window (128 MiB) at a time. Time is bounded by the budget: a payload may expand by ratioMax and
// one record on top, whatever it claims.
const (
	// recordMaxDefault is the largest record, uncompressed, that is read out of a compressed batch.
	recordMaxDefault = 256 << 20
	// keepMax is the largest buffer that goes back into a pool.
	keepMax = 4 << 20
	// windowMax is the largest window of zstd: that of its level 22, and the limit of its reference decoder.
	windowMax = 128 << 20
	// windowCheap is the largest window that any number of decompressions may have at a time: that of zstd's
	// level 19.
	windowCheap = 8 << 20
	// guardedMax is how many guarded streams there may be at a time.
	guardedMax = 32
	// ratioMax is how much guarded payloads may expand, above a record of the largest size: that of gzip.
	// zstd expands a thousand times better than that only when it is meant to waste our time.
	ratioMax = 1032
)

// Decompressor lends decompression its buffers and keeps them between batches. The zero value is ready; it
// is safe for concurrent use and must not be copied after the first.
//
// Memory is bounded whatever the bytes claim. Buffers grow with what is really decompressed, never with a
// claimed length; a stream needs a window and a record at a time, not the whole payload.
type Decompressor struct {
	// RecordMax is the largest record in bytes, uncompressed; 0 is 256 MiB. Kafka has no limit.
	RecordMax int
	pools     [Zstd + 1]sync.Pool
	guards    sync.Once
	// light and heavy hold a token for every guarded stream, by its window.
	light, heavy chan struct{}
}

// errTooLarge stops at a record above RecordMax, or at the end of the budget.
var errTooLarge = errors.New("too large when decompressed")

// openMode says how a stream is opened.
type openMode int8

const (
	// ordinary reads what this broker has validated.
	ordinary openMode = iota
	// guarded reads what a client sent, of which there may be a lot at a time: it waits while too many
	// guarded streams are open. Nothing that waits for another stream may have one open.
	guarded
	// legacy reads lz4 as messages of format 0 have it.
	legacy
)

// open starts decompressing payload. The caller closes the stream.
func (d *Decompressor) open(codec Codec, payload []byte, mode openMode) (*stream, error) {
	if codec <= None || codec > Zstd {
		return nil, protocol.Errorf(protocol.UnsupportedCompressionType, "compression type %d does not exist", codec)
	}
	if d == nil {
		d = new(Decompressor)
	}
	s, _ := d.pools[codec].Get().(*stream)
	if s == nil {
		s = &stream{codec: codec, source: newSource(codec)}
	}
	s.recordMax = recordMaxDefault
	if d.RecordMax > 0 {
		s.recordMax = d.RecordMax
	}
	// Only zstd can ask for a large window; the others have 32 KiB, or the size of a block.
	// isHeavy also tells the source which decoder reset has to take, so it comes before it in all modes.
	z, ok := s.source.(*zstdSource)
	large := ok && z.isHeavy(payload)
	s.budget = math.MaxInt
	if mode == guarded {
		s.slot = d.guard(large)
		s.budget = s.recordMax + ratioMax*len(payload)
	}
	if err := s.source.reset(payload, mode); err != nil {
		d.close(s)
		return nil, err
	}
	return s, nil
}

// guard takes a token, waiting for it. Windows above windowCheap are rare, and many at a time would be an
// attack, so there is one.
// It waits without a context: whoever holds a token is computing, reads memory only and gives it back soon.
func (d *Decompressor) guard(large bool) chan struct{} {
	d.guards.Do(func() {
		d.light, d.heavy = make(chan struct{}, guardedMax), make(chan struct{}, 1)
	})
	slot := d.light
	if large {
		slot = d.heavy
	}
	slot <- struct{}{}
	return slot
}

// close ends the use of a stream and keeps it for the next.
func (d *Decompressor) close(s *stream) {
	s.chunk = nil
	s.source.release()
	if cap(s.carry) > keepMax {
		s.carry = nil
	}
	if s.slot != nil {
		<-s.slot
		s.slot = nil
	}
	if d != nil {
		d.pools[s.codec].Put(s)
	}
}

func newSource(codec Codec) source {
	switch codec {
	case Gzip:
		return new(gzipSource)
	case Snappy:
		return new(snappySource)
	case Lz4:
		return new(lz4Source)
	}
	return new(zstdSource)
}
