package log

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// offsetMap maps keys to the newest offset that they were written at, in bounded memory: it keeps 128 bits of
// a key's SHA-256 instead of the key, so that nobody can make two keys meet. Kafka keeps MD5, for which anybody can
// make two keys that meet: the older record would then be compacted away under the other's key.
//
// It is a table with open addressing: a key is in the slot that the low bits of its hash name, or in the next ones
// up to the first free slot. Nothing is ever taken out, so there are no marks of deleted slots. put and get are O(1)
// with at most 7 of 8 slots taken; growing copies all slots, at doubled sizes. It is for one goroutine.
type offsetMap struct {
	slots []mapSlot // a power of two, grown up to most
	most  int
	n     int
}

// mapSlot is a slot; offset is the key's offset plus one, 0 where the slot is free.
type mapSlot struct {
	hash   [2]uint64
	offset int64
}

const (
	mapSlotSize  = 24
	mapSlotsMin  = 1 << 4
	mapLoadParts = 8 // the map is full when 7 of 8 slots are taken
)

// newOffsetMap makes a map that takes at most bytes of memory, and never less than a few slots.
//
// It begins with 16 slots, so that compacting a small log takes little.
func newOffsetMap(bytes int64) *offsetMap {
	most := mapSlotsMin
	for int64(most)*2*mapSlotSize <= bytes {
		most *= 2
	}
	return &offsetMap{slots: make([]mapSlot, mapSlotsMin), most: most}
}

// put notes that key was written at offset; false where the map is full.
func (m *offsetMap) put(key []byte, offset protocol.Offset) bool {
	hash := hashKey(key)
	s := m.find(hash)
	if s.offset == 0 {
		if m.n >= len(m.slots)-len(m.slots)/mapLoadParts {
			if len(m.slots) == m.most {
				return false
			}
			m.grow()
			s = m.find(hash)
		}
		m.n++
		s.hash = hash
	}
	s.offset = int64(offset) + 1
	return true
}

// get is the newest offset of key, or NoOffset.
func (m *offsetMap) get(key []byte) protocol.Offset {
	return protocol.Offset(m.find(hashKey(key)).offset - 1)
}

// offsets yields the newest offset of each key, in no order.
func (m *offsetMap) offsets(yield func(protocol.Offset) bool) {
	for _, s := range m.slots {
		if s.offset != 0 && !yield(protocol.Offset(s.offset-1)) {
			return
		}
	}
}

// find is the slot of a hash, or the free one where it would go; some slots are always free.
func (m *offsetMap) find(hash [2]uint64) *mapSlot {
	mask := uint64(len(m.slots) - 1)
	for i := hash[0] & mask; ; i = (i + 1) & mask {
		if s := &m.slots[i]; s.offset == 0 || s.hash == hash {
			return s
		}
	}
}

// grow doubles the slots and puts the keys where they belong then.
func (m *offsetMap) grow() {
	old := m.slots
	m.slots = make([]mapSlot, 2*len(old))
	for _, s := range old {
		if s.offset != 0 {
			*m.find(s.hash) = s
		}
	}
}

// hashKey is what stands for a key.
func hashKey(key []byte) [2]uint64 {
	sum := sha256.Sum256(key)
	return [2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}
