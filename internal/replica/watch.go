package replica

import (
	"sync"
	"sync/atomic"
)

// Watcher learns which of the partitions that it watches may have something new. It coalesces: however
// much happens before [Watcher.Take], each partition is reported once. One goroutine uses it at a time.
//
//	partition: notify ── woken for it? ──▶ yes: nothing        one atomic swap an append
//	                         └───────────▶ no: key into dirty, wake when the partition's lock is free
//	request:   wake ─▶ Take ─▶ Arm each ─▶ look at each        Arm before the look, or what
//	                                                           comes during it would be lost
type Watcher struct {
	wake func()

	mu    sync.Mutex
	dirty []int // keys, each at most once
}

// NewWatcher makes a watcher that watches nothing. wake is called after something became dirty, by whoever brought
// it: an append stands still until it returns, so that it must not block. No lock of a partition is held meanwhile.
func NewWatcher(wake func()) *Watcher { return &Watcher{wake: wake} }

// Take appends the keys of the partitions that became dirty since the last call to keys, and forgets them.
func (w *Watcher) Take(keys []int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys = append(keys, w.dirty...)
	w.dirty = w.dirty[:0]
	return keys
}

// Watch is one partition in a Watcher. It is dirty from the start, so that the first look reads it; nobody is woken
// for that.
type Watch struct {
	watcher   *Watcher
	partition *Partition
	key       int
	of        audience
	at        int // place in watchers.all, whose lock guards it; -1 after Close
	marked    atomic.Int32
}

// What a watch has told its watcher since it was armed.
const (
	armed  int32 = iota
	noted        // the key is in dirty
	roused       // and the watcher was woken for it
)

// audience says who is to learn of something.
type audience int8

const (
	consumers audience = iota // who reads up to the high watermark
	followers                 // who reads up to the log end
	everybody
)

// Watch makes watcher learn, under key, of changes of leadership of p, and of records that it may read: a consumer
// when they are committed, a follower when they are appended. What is committed a follower learns with the next
// answer, as with Kafka, and is not woken for it.
func (p *Partition) Watch(watcher *Watcher, key int, follower bool) *Watch {
	w := &Watch{watcher: watcher, partition: p, key: key, of: consumers}
	if follower {
		w.of = followers
	}
	p.watchers.mu.Lock()
	w.at = len(p.watchers.all)
	p.watchers.all = append(p.watchers.all, w)
	p.watchers.count.Store(int32(len(p.watchers.all)))
	p.watchers.mu.Unlock()
	w.note()
	return w
}

// Arm makes the watch report again: whoever took its key calls it before looking at the partition, so that
// what happens during the look is not lost.
func (w *Watch) Arm() { w.marked.Store(armed) }

// Partition is what is watched.
func (w *Watch) Partition() *Partition { return w.partition }

// Close ends the watch. Its key may still come out of [Watcher.Take] once.
func (w *Watch) Close() {
	ws := &w.partition.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.at < 0 {
		return
	}
	// The last one takes its place: clients forget and add partitions with every fetch, and there may be
	// thousands of watches on one.
	last := len(ws.all) - 1
	ws.all[w.at] = ws.all[last]
	ws.all[w.at].at = w.at
	ws.all[last] = nil
	ws.all = ws.all[:last]
	ws.count.Store(int32(last))
	w.at = -1
}

// mark puts the key among the dirty ones; true where the watcher is to be woken for it.
func (w *Watch) mark() bool {
	switch w.marked.Swap(roused) {
	case roused:
		return false
	case armed:
		w.watcher.add(w.key)
	}
	return true
}

// note puts the key among the dirty ones for when the watcher looks the next time.
func (w *Watch) note() {
	if w.marked.CompareAndSwap(armed, noted) {
		w.watcher.add(w.key)
	}
}

func (w *Watcher) add(key int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = append(w.dirty, key)
}

// watchers are the watches on one partition.
type watchers struct {
	count atomic.Int32 // len(all), to find out without the lock that nobody watches
	mu    sync.Mutex
	all   []*Watch
	due   *wakeups
}

// notify tells those of an audience. Whoever is to be woken for it is due when the partition's lock is free.
func (ws *watchers) notify(to audience) {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		switch {
		case to == everybody || w.of == to:
			if w.mark() {
				ws.due.add(w.watcher.wake)
			}
		case w.of == followers:
			w.note()
		}
	}
}
