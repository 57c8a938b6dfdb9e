package sim

import (
	"math/rand/v2"
	"time"
)

// dice decide everything that is random in a run. Each throw names what it is for and counts itself there, so
// that one more packet on one link changes nothing elsewhere, as a stream of numbers shared by all would.
type dice uint64

// throw is a number for one purpose.
func (d dice) throw(purpose string, n uint64) uint64 {
	h := uint64(0xcbf29ce484222325) // FNV-1a, without what hash/fnv would allocate millions of times
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 0x100000001b3
	}
	x := uint64(d) ^ h ^ n*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// chance is true with probability p.
func (d dice) chance(p float64, purpose string, n uint64) bool {
	return float64(d.throw(purpose, n)>>11)/(1<<53) < p
}

// between is a time from low up to high, exclusive, to the nanosecond: two things hardly ever happen at once.
func (d dice) between(low, high time.Duration, purpose string, n uint64) time.Duration {
	return low + time.Duration(d.throw(purpose, n)%uint64(high-low))
}

// source is a stream of its own for one purpose.
func (d dice) source(purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(d.throw(purpose, 0), d.throw(purpose, 1)))
}
