package metadata

import "maps"

// shards is how many parts a table has: a change copies one of them, and the array of pointers to all.
const shards = 256

// table is a map that is never changed: an edit makes a new one that shares the untouched shards.
type table[K comparable, V any] struct {
	hash   func(K) uint8
	shards [shards]map[K]V
}

// newTable makes an empty table; hash spreads the keys over its shards.
func newTable[K comparable, V any](hash func(K) uint8) *table[K, V] { return &table[K, V]{hash: hash} }

// get finds a value; the zero value where there is none.
func (t *table[K, V]) get(key K) V { return t.shards[t.hash(key)][key] }

// edit begins a change that leaves t as it is.
func (t *table[K, V]) edit() *edit[K, V] { return &edit[K, V]{from: t} }

// edit collects changes to a table and copies each touched shard once.
type edit[K comparable, V any] struct {
	from  *table[K, V]
	to    *table[K, V] // nil until the first change
	owned [shards]bool // shards that this edit has copied already
}

// table is what the edit has come to; the old table itself where nothing changed.
func (e *edit[K, V]) table() *table[K, V] {
	if e.to == nil {
		return e.from
	}
	return e.to
}

func (e *edit[K, V]) get(key K) V { return e.table().get(key) }

// shard gives the map that holds key, owned by this edit.
func (e *edit[K, V]) shard(key K) map[K]V {
	if e.to == nil {
		copied := *e.from
		e.to = &copied
	}
	i := e.to.hash(key)
	if !e.owned[i] {
		e.owned[i] = true
		e.to.shards[i] = maps.Clone(e.to.shards[i])
		if e.to.shards[i] == nil {
			e.to.shards[i] = make(map[K]V)
		}
	}
	return e.to.shards[i]
}

func (e *edit[K, V]) put(key K, value V) { e.shard(key)[key] = value }

func (e *edit[K, V]) drop(key K) { delete(e.shard(key), key) }

// hashText is FNV-1a folded to a byte; it is the same in every process, so that tests replay.
func hashText[T ~string | ~[]byte](text T) uint8 {
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}
