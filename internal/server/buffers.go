package server

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// DefaultFreeBytes is what a pool keeps for reuse unless told otherwise.
const DefaultFreeBytes = 32 << 20

const (
	// Size classes are the powers of two from 4 KiB to 16 MiB; larger buffers are not pooled.
	classCount   = 13
	classMinBits = 12
	// trimEvery is how often what lay unused since the last time is given back to the collector.
	trimEvery = 10 * time.Second
)

// Buffers is a pool of byte buffers in size classes, since a fresh large buffer costs zeroing and page
// faults (1 MiB: 0.5 ms) and a pooled one 30 ns. It keeps at most a budget of free bytes, and what was
// not needed for a while it gives back. Safe for concurrent use; may be shared by several servers.
//
//	        Get                 Retain, Release             last Release
//	(made) ─────▶ refs 1 ◀──────────────────▶ refs n ──────────────────▶ free list ──▶ Get
//	                                                              │ over the budget, idle, above 16 MiB
//	                                                              └───────────────────▶ the collector
//
// It is no sync.Pool: the collector empties those whenever it runs, and a produce request of some MiB would pay
// for a new buffer each time; and their size is nobody's.
type Buffers struct {
	keep int64

	mu struct {
		sync.Mutex
		free  [classCount]*Buffer // linked by next
		count [classCount]int
		// A class whose count never fell below n for a whole interval has n that nobody needed.
		idle      [classCount]int // the least that count has been since the last trim: nobody needed those
		freeBytes int64
		trimming  bool // a timer runs; none does while nothing is free
	}
}

// Buffer is a reference-counted buffer of a pool.
type Buffer struct {
	// Bytes is the whole buffer, at least as long as it was asked for, with the contents of its last user.
	Bytes []byte

	pool  *Buffers
	class int8 // index of its size class, or -1: too large for the pool
	refs  atomic.Int32
	next  *Buffer // in the free list

	// claim is what the bytes in flight are charged with for it.
	claim claim
}

// NewBuffers makes a pool that keeps up to keep free bytes.
func NewBuffers(keep int64) *Buffers { return &Buffers{keep: keep} }

// classOf is the smallest class that holds size bytes, or -1.
func classOf(size int) int {
	if size <= 1<<classMinBits {
		return 0
	}
	class := bits.Len(uint(size-1)) - classMinBits
	if class >= classCount {
		return -1
	}
	return class
}

// roundUp is how many bytes a buffer for size bytes really has.
func roundUp(size int) int {
	if class := classOf(size); class >= 0 {
		return 1 << (classMinBits + class)
	}
	return size
}

// Get returns a buffer of at least size bytes with one reference.
func (p *Buffers) Get(size int) *Buffer {
	class := classOf(size)
	if class < 0 {
		b := &Buffer{Bytes: make([]byte, size), class: -1}
		b.refs.Store(1)
		return b
	}
	p.mu.Lock()
	b := p.mu.free[class]
	if b != nil {
		p.mu.free[class], b.next = b.next, nil
		p.mu.count[class]--
		p.mu.idle[class] = min(p.mu.idle[class], p.mu.count[class])
		p.mu.freeBytes -= int64(len(b.Bytes))
	}
	p.mu.Unlock()
	if b == nil {
		b = &Buffer{Bytes: make([]byte, roundUp(size)), pool: p, class: int8(class)}
	}
	if refs := b.refs.Add(1); refs != 1 {
		invariant.Fail("a free buffer of %d bytes has %d references", len(b.Bytes), refs-1)
	}
	return b
}

// Retain takes another reference.
func (b *Buffer) Retain() {
	if b.refs.Add(1) <= 1 {
		invariant.Fail("buffer of %d bytes retained after its last release", len(b.Bytes))
	}
}

// Release gives a reference back, and with the last one the buffer.
func (b *Buffer) Release() {
	refs := b.refs.Add(-1)
	if refs < 0 {
		invariant.Fail("buffer of %d bytes released %d times too often", len(b.Bytes), -refs)
	}
	if refs > 0 {
		return
	}
	b.claim.release()
	if invariant.Enabled {
		// Whoever still reads the buffer shall see it.
		for i := range b.Bytes {
			b.Bytes[i] = 0xdb
		}
	}
	if b.pool != nil {
		b.pool.put(b)
	}
}

// put keeps b for reuse while the pool's budget allows.
func (p *Buffers) put(b *Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.freeBytes+int64(len(b.Bytes)) > p.keep {
		return
	}
	b.next = p.mu.free[b.class]
	p.mu.free[b.class] = b
	p.mu.count[b.class]++
	p.mu.freeBytes += int64(len(b.Bytes))
	if !p.mu.trimming {
		p.mu.trimming = true
		time.AfterFunc(trimEvery, p.trim)
	}
}

// trim drops what has been free since the last trim, and stops when nothing is left.
func (p *Buffers) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.mu.free {
		for range p.mu.idle[class] {
			b := p.mu.free[class]
			p.mu.free[class], b.next = b.next, nil
			p.mu.count[class]--
			p.mu.freeBytes -= int64(len(b.Bytes))
		}
		p.mu.idle[class] = p.mu.count[class]
	}
	p.mu.trimming = p.mu.freeBytes > 0
	if p.mu.trimming {
		time.AfterFunc(trimEvery, p.trim)
	}
}

// FreeBytes is what the pool keeps now.
func (p *Buffers) FreeBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.freeBytes
}
