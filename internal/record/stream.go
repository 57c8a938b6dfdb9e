package record

import (
	"errors"
	"io"
)

// source decompresses one payload in chunks.
type source interface {
	// reset starts with another payload, which the source refers to until release.
	reset(payload []byte, mode openMode) error
	// next gives the next chunk, which is not empty and valid until the next call, or io.EOF.
	next() ([]byte, error)
	// release forgets the payload and buffers that are too large to keep.
	release()
}

// stream reads records out of one compressed payload. Records are given out of the decompressor's own buffer
// where they lie in it as a whole; only those across chunks are copied.
//
//	source.next():   | chunk 1               | chunk 2               | ...
//	records:         | r1 | r2 | r3 |    r4      | r5 |
//	                 in place       copied into carry
//
// What take and recordBody give is valid until the next call of any method: fill overwrites the chunk, takeBehind
// the carry. A stream belongs to the one goroutine between open and close; close puts it into the pool.
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
