package log

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// The offset index of a segment with base offset 4711, in its file: 8 bytes an entry, big-endian, rising.
//
//	00 00 00 2a  00 00 10 2f      the batch that ends with offset 4711+42 begins at position 4143
//	00 00 00 61  00 00 20 44      the batch that ends with offset 4711+97 begins at position 8260
//
// There is one about every index.interval.bytes, never one for the first batch (position 0 needs none), and the
// last may be far from the end. A lookup is a binary search and a walk over headers of about one interval. A file
// that is longer than its entries ends with zeros: Kafka allocates segment.index.bytes ahead, and cuts the file
// only when the segment is rolled or closed.
//
// indexEntrySize is the size of an entry in an offset index file.
const indexEntrySize = 8

// indexEntry is an entry of the offset index, packed as in the file: the relative offset in the upper half
// and the position in the lower. Both rise together, so entries compare as numbers.
type indexEntry uint64

// newIndexEntry packs an entry; both numbers fit into 32 bits, or the segment would have been rolled.
func newIndexEntry(relative, position int64) indexEntry {
	return indexEntry(uint64(uint32(relative))<<32 | uint64(uint32(position)))
}

// relative is the offset less the segment's base.
func (e indexEntry) relative() int64 { return int64(e >> 32) }

// position is where the batch begins.
func (e indexEntry) position() int64 { return int64(uint32(e)) }

// offsetIndex is a segment's offset index in memory. Entries below n never change, so readers need no lock:
// the one appender writes the entry and then moves n; growing and truncating make a new offsetIndex.
//
// An entry names the last offset of its batch. A reader that catches up asks for the first one, since its
// last read ended where an entry's batch begins; firsts has it, relative, or 0 where it is not known: then
// the reader has to look into the log, and notes what it finds.
type offsetIndex struct {
	n       atomic.Int32
	entries []indexEntry
	firsts  []atomic.Uint32
}

// newOffsetIndex takes entries over as they are.
func newOffsetIndex(entries []indexEntry) *offsetIndex {
	x := &offsetIndex{entries: entries, firsts: make([]atomic.Uint32, len(entries))}
	x.n.Store(int32(len(entries)))
	return x
}

// all are the entries that there are now.
func (x *offsetIndex) all() []indexEntry { return x.entries[:x.n.Load()] }

// bytes is what it takes in memory.
func (x *offsetIndex) bytes() int64 { return int64(cap(x.entries)) * (indexEntrySize + 4) }

// with adds an entry for a batch that begins at the relative offset first, in place where there is room, and
// returns the index that has it.
//
// The order of the stores is what readers rely on: entry and first offset, then n. A reader with the old n does
// not look at the new slot; one with the new n finds it filled. Where there is no room the whole copy is made
// first, and the caller publishes it with one store of a pointer; readers of the old one go on with what it has.
func (x *offsetIndex) with(e indexEntry, first int64) *offsetIndex {
	n := x.n.Load()
	if int(n) == len(x.entries) {
		size := max(8, 2*n)
		grown := &offsetIndex{entries: make([]indexEntry, size), firsts: make([]atomic.Uint32, size)}
		copy(grown.entries, x.entries)
		for i := range n {
			grown.firsts[i].Store(x.firsts[i].Load())
		}
		x = grown
	}
	x.entries[n] = e
	x.firsts[n].Store(uint32(first))
	x.n.Store(n + 1)
	return x
}

// begins is the position of the batch whose first offset is relative, if an entry names it and its first
// offset is known.
func (x *offsetIndex) begins(relative int64) (int64, bool) {
	entries := x.all()
	i := indexOf(entries, relative)
	if i < len(entries) && int64(x.firsts[i].Load()) == relative {
		return entries[i].position(), true
	}
	return 0, false
}

// learn notes that the batch whose first offset is relative begins at position, if an entry names it.
//
// Several readers may store the same number at a time; no other can be there, as a batch's first offset is fixed.
func (x *offsetIndex) learn(relative, position int64) {
	entries := x.all()
	if i := indexOf(entries, relative); i < len(entries) && entries[i].position() == position {
		x.firsts[i].Store(uint32(relative))
	}
}

// indexOf is the place of the first entry whose offset is not below relative.
func indexOf(entries []indexEntry, relative int64) int {
	i, _ := slices.BinarySearchFunc(entries, relative, func(e indexEntry, target int64) int {
		return compare(e.relative(), target)
	})
	return i
}

// lookupOffset is the position of the greatest entry at or below a relative offset, or 0: where to begin to
// walk for it.
func lookupOffset(entries []indexEntry, relative int64) int64 {
	i, found := slices.BinarySearchFunc(entries, relative, func(e indexEntry, target int64) int {
		return compare(e.relative(), target)
	})
	return positionBefore(entries, i, found)
}

// lookupPosition is the greatest position of an entry that is not above position, or 0: a place where a
// batch begins.
func lookupPosition(entries []indexEntry, position int64) int64 {
	i, found := slices.BinarySearchFunc(entries, position, func(e indexEntry, target int64) int {
		return compare(e.position(), target)
	})
	return positionBefore(entries, i, found)
}

// positionBefore is the position of entry i if it matched, else of the one before it, else 0.
func positionBefore(entries []indexEntry, i int, found bool) int64 {
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return entries[i].position()
}

// compare orders numbers for searches.
func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// appendIndexEntries encodes entries as in the file.
func appendIndexEntries(dst []byte, entries []indexEntry) []byte {
	dst = slices.Grow(dst, len(entries)*indexEntrySize)
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e))
	}
	return dst
}

// parseIndex decodes an offset index file and checks what can be checked without the log: rising offsets and
// positions, positions within a segment of size bytes. The first batch never has an entry, so an entry of
// zeros can only begin the unwritten tail of a preallocated file. ok is false for a damaged index.
func parseIndex(b []byte, size int64) (entries []indexEntry, ok bool) {
	b = b[:len(b)-len(b)%indexEntrySize]
	entries = make([]indexEntry, 0, len(b)/indexEntrySize)
	var last indexEntry
	for i := 0; i < len(b); i += indexEntrySize {
		e := indexEntry(binary.BigEndian.Uint64(b[i:]))
		if e == 0 {
			return entries, allZero(b[i:])
		}
		if e.relative() > maxRelativeOffset || e.position() >= size ||
			e.relative() < last.relative() || e.position() <= last.position() {
			return nil, false
		}
		if i > 0 && e.relative() == last.relative() {
			return nil, false
		}
		entries, last = append(entries, e), e
	}
	return entries, true
}

// maxRelativeOffset is the largest distance of an offset from its segment's base that an index can hold.
const maxRelativeOffset = 1<<31 - 1

// allZero reports whether b holds nothing but zeros.
func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// recentBatches is how many ends of batches a recent remembers.
const recentBatches = 32

// recent remembers where the newest batches of the active segment ended, so that reads at the log end, of
// consumers that keep up and up to a watermark, find their place without touching the file. Slots are read
// without a lock: an (offset, position) pair is one word, and any pair that was ever there is true.
type recent struct {
	next  uint32 // guarded by the append lock
	slots [recentBatches]atomic.Uint64
}

// add notes that a batch ended at position and the next offset is relative.
func (r *recent) add(relative, position int64) {
	r.slots[r.next%recentBatches].Store(uint64(newIndexEntry(relative, position)))
	r.next++
}

// find is the position of the batch that begins at a relative offset, if it is remembered.
func (r *recent) find(relative int64) (int64, bool) {
	if r == nil {
		return 0, false
	}
	for i := range r.slots {
		if e := indexEntry(r.slots[i].Load()); e.relative() == relative && (e != 0 || relative == 0) {
			return e.position(), true
		}
	}
	return 0, false
}

// floor is the greatest remembered end of a batch that is not above position, or 0.
func (r *recent) floor(position int64) int64 {
	var best int64
	if r == nil {
		return 0
	}
	for i := range r.slots {
		if p := indexEntry(r.slots[i].Load()).position(); p <= position && p > best {
			best = p
		}
	}
	return best
}
