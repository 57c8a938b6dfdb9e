package record

import (
	"errors"
	"io"
	"math"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

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

// source decompresses one payload in chunks.
type source interface {
	// reset starts with another payload, which the source refers to until release.
	reset(payload []byte, mode openMode) error
	// next gives the next chunk, which is not empty and valid until the next call, or io.EOF.
	next() ([]byte, error)
	// release forgets the payload and buffers that are too large to keep.
	release()
}

// stream reads records out of one compressed payload.
type stream struct {
	codec  Codec
	source source
	// chunk is what the source gave and nobody has taken.
	chunk []byte
	// carry joins what lies across chunks.
	carry     []byte
	recordMax int
	// budget is how many bytes may still be decompressed.
	budget int
	// slot is where a guarded stream has its token.
	slot chan struct{}
}

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

// fill takes the next chunk from the source; the one before must have been used up.
func (s *stream) fill() (err error) {
	s.chunk, err = s.source.next()
	if s.budget -= len(s.chunk); s.budget < 0 {
		s.chunk = nil
		return errTooLarge
	}
	return err
}

// byte reads one byte.
func (s *stream) byte() (byte, error) {
	if len(s.chunk) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.chunk[0]
	s.chunk = s.chunk[1:]
	return b, nil
}

// take reads n bytes, which are valid until the next call.
func (s *stream) take(n int) ([]byte, error) {
	if n <= len(s.chunk) {
		b := s.chunk[:n:n]
		s.chunk = s.chunk[n:]
		return b, nil
	}
	return s.takeBehind(nil, n)
}

// takeBehind reads n bytes and gives them with a copy of prefix in front. They are valid until the next call.
func (s *stream) takeBehind(prefix []byte, n int) ([]byte, error) {
	s.carry = append(s.carry[:0], prefix...)
	for n += len(prefix); len(s.carry) < n; {
		if len(s.chunk) == 0 {
			if err := s.fill(); err != nil {
				return nil, unexpected(err)
			}
		}
		part := min(n-len(s.carry), len(s.chunk))
		s.carry = append(s.carry, s.chunk[:part]...)
		s.chunk = s.chunk[part:]
	}
	return s.carry, nil
}

// skip passes over n bytes.
func (s *stream) skip(n int) error {
	for n > len(s.chunk) {
		n -= len(s.chunk)
		if err := s.fill(); err != nil {
			return unexpected(err)
		}
	}
	s.chunk = s.chunk[n:]
	return nil
}

// varint reads a zig-zag varint of 32 bits and tells its length.
func (s *stream) varint() (int32, int, error) {
	if value, n := varint(s.chunk); n > 0 {
		s.chunk = s.chunk[n:]
		return value, n, nil
	}
	var raw [varintMax]byte
	n, err := s.gather(raw[:])
	if err != nil {
		return 0, 0, err
	}
	value, n := varint(raw[:n])
	if n <= 0 {
		return 0, 0, errVarint
	}
	return value, n, nil
}

// varlong reads a zig-zag varint of 64 bits and tells its length.
func (s *stream) varlong() (int64, int, error) {
	if value, n := varlong(s.chunk); n > 0 {
		s.chunk = s.chunk[n:]
		return value, n, nil
	}
	var raw [varlongMax]byte
	n, err := s.gather(raw[:])
	if err != nil {
		return 0, 0, err
	}
	value, n := varlong(raw[:n])
	if n <= 0 {
		return 0, 0, errVarint
	}
	return value, n, nil
}

var errVarint = errors.New("varint has no end")

// gather reads a varint that may lie across chunks into raw, byte by byte.
func (s *stream) gather(raw []byte) (n int, err error) {
	for n < len(raw) {
		b, err := s.byte()
		if err != nil {
			if n > 0 {
				err = unexpected(err)
			}
			return 0, err
		}
		raw[n] = b
		n++
		if b < 0x80 {
			break
		}
	}
	return n, nil
}

// recordBody reads the next record without its length field, and tells its size with it. It is valid until
// the next call.
func (s *stream) recordBody() (body []byte, size int, err error) {
	length, n, err := s.varint()
	if err != nil {
		return nil, 0, unexpected(err)
	}
	if length < 0 || int(length) > s.recordMax {
		return nil, 0, errTooLarge
	}
	body, err = s.take(int(length))
	return body, n + int(length), err
}

// finished reports whether nothing is left; it reads on to the checksums at the end.
func (s *stream) finished() (bool, error) {
	if len(s.chunk) > 0 {
		return false, nil
	}
	switch err := s.fill(); err {
	case nil:
		return false, nil
	case io.EOF:
		return true, nil
	default:
		return false, err
	}
}

// unexpected makes the end of the payload an error where more must follow.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
