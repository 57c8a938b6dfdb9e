package record

import (
	"iter"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Record is one record of a batch. Key, Value and Headers alias the batch, or the decompressor's buffer,
// which the next record overwrites: clone what is kept.
type Record struct {
	// Offset is the record's absolute offset.
	Offset protocol.Offset
	// Timestamp is in ms since 1970: the producer's, or the append time of the batch.
	Timestamp int64
	// Key is nil for null, which is not the empty key.
	Key []byte
	// Value is nil for null, which is a tombstone on compacted topics.
	Value []byte
	// Headers are in the producer's order; keys may repeat.
	Headers Headers
	// Attributes are unused in format 2 (0); in formats 0 and 1 they are the message's.
	Attributes int8
	// Size is the record's length in its batch in bytes, uncompressed, its own length field included.
	Size int
}

// Headers are the encoded headers of one record. They were checked when the record was read.
type Headers struct {
	count int32
	raw   []byte
}

// Len is the number of headers.
func (h Headers) Len() int { return int(h.count) }

// All walks the headers in order; a nil value is null. Keys are UTF-8 by contract, which nobody checks.
func (h Headers) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		rest := h.raw
		for range h.count {
			key, value, n := cutHeader(rest)
			if n <= 0 || !yield(key, value) {
				return
			}
			rest = rest[n:]
		}
	}
}

// RecordHeader is a header to be written; a nil Value is null.
type RecordHeader struct {
	Key   string
	Value []byte
}

// cutHeader reads the header at the start of b; n is 0 or less where there is none.
func cutHeader(b []byte) (key, value []byte, n int) {
	key, n = cutBytes(b)
	if n <= 0 || key == nil {
		return nil, nil, 0
	}
	value, m := cutBytes(b[n:])
	if m <= 0 {
		return nil, nil, 0
	}
	return key, value, n + m
}

// cutBytes reads a varint length and as many bytes; negative lengths are null, as Java reads them. n is 0 or
// less where b is too short.
func cutBytes(b []byte) (value []byte, n int) {
	size, n := varint(b)
	if n <= 0 || size < 0 {
		return nil, n
	}
	if int(size) > len(b)-n {
		return nil, 0
	}
	end := n + int(size)
	return b[n:end:end], end
}
