package record

import (
	"iter"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Batches walks the batches of format 2 that stand one behind the other in b. It ends after the first
// error: ErrShort where the last one is cut, a *CorruptError where a header cannot be true, and
// UNSUPPORTED_FOR_MESSAGE_FORMAT at a message of format 0 or 1. CRCs are not checked. The batches alias b.
func Batches(b []byte) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for rest := b; len(rest) > 0; {
			header, err := ParseHeader(rest)
			switch {
			case err != nil:
			case header.Magic != 2:
				err = protocol.Errorf(protocol.UnsupportedForMessageFormat,
					"message of format %d at offset %d among batches", header.Magic, header.BaseOffset)
			case header.Size > len(rest):
				err = ErrShort
			}
			if err != nil {
				yield(nil, err)
				return
			}
			// The capacity ends with the batch too: an append to it must not write over its neighbour.
			if !yield(Batch(rest[:header.Size:header.Size]), nil) {
				return
			}
			rest = rest[header.Size:]
		}
	}
}
