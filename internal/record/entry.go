package record

import (
	"iter"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Entry is what stands in a log: a batch of format 2, or a message of format 0 or 1, with its bytes.
type Entry struct {
	Header
	// Bytes are the whole entry.
	Bytes []byte
}

// Entries walks what stands in b, of any format. It ends after the first error: ErrShort where the last
// entry is cut, a *CorruptError where a header cannot be true. CRCs are not checked. The entries alias b.
func Entries(b []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for rest := b; len(rest) > 0; {
			header, err := ParseHeader(rest)
			if err == nil && header.Size > len(rest) {
				err = ErrShort
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(Entry{header, rest[:header.Size:header.Size]}, nil) {
				return
			}
			rest = rest[header.Size:]
		}
	}
}

// ValidCRC reports whether the checksum is right, whichever the format has.
func (e Entry) ValidCRC() bool {
	if e.Magic == 2 {
		return Batch(e.Bytes).ValidCRC()
	}
	return message(e.Bytes).validCRC()
}

// Records walks the records of the entry, those of a wrapper with their absolute offsets, as [Batch.Records]
// does. The checksums of messages in a wrapper are not looked at: the wrapper's covers them.
func (e Entry) Records(d *Decompressor) iter.Seq2[Record, error] {
	if e.Magic == 2 {
		return Batch(e.Bytes).Records(d)
	}
	return func(yield func(Record, error) bool) {
		err := message(e.Bytes).messageRecords(d, yield)
		if err != nil && err != errLeft {
			yield(Record{}, &CorruptError{
				Code: protocol.InvalidRecord, Offset: e.BaseOffset, Reason: err.Error(), Cause: err,
			})
		}
	}
}

// FirstOffset is the offset of the entry's first record: BaseOffset, except for a wrapper of formats 0 and 1,
// which must be decompressed to know it.
func (e Entry) FirstOffset(d *Decompressor) (protocol.Offset, error) {
	if e.Count >= 0 {
		return e.BaseOffset, nil
	}
	for r, err := range e.Records(d) {
		return r.Offset, err
	}
	return 0, corrupt(e.BaseOffset, "no records")
}
