package log

import (
	"math/bits"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// offsetSet is a set of offsets within a range that is given at first: one bit for each offset of the range.
//
// The log cleaner has the newest offset of each key in an [offsetMap]. Once that is complete, whether a record is the newest
// of its key is a question about its offset alone, and whether a batch has one, a question about its first and last offset.
type offsetSet struct {
	from  protocol.Offset
	words []uint64
}

// newOffsetSet makes an empty set for offsets from from on, below to.
func newOffsetSet(from, to protocol.Offset) *offsetSet {
	return &offsetSet{from: from, words: make([]uint64, (to-from+63)/64)}
}

// add adds the offsets from first to last.
func (s *offsetSet) add(first, last protocol.Offset) {
	for o := first; o <= last; o++ {
		i := uint64(o - s.from)
		s.words[i/64] |= 1 << (i % 64)
	}
}

// has reports whether one of the offsets from first to last is in the set. It takes a step for 64 of them.
func (s *offsetSet) has(first, last protocol.Offset) bool {
	for i, end := uint64(first-s.from), uint64(last-s.from); i <= end; i = (i/64 + 1) * 64 {
		word := s.words[i/64] >> (i % 64)
		if word != 0 && uint64(bits.TrailingZeros64(word)) <= end-i {
			return true
		}
	}
	return false
}
