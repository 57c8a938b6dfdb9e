package replica

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watcher learns which of the partitions that it watches may have something new. It coalesces: however
// much happens before [Watcher.Take], each partition is reported once. One goroutine uses it at a time.
type Watcher struct {
	wake chan struct{} // one slot

	mu    sync.Mutex
	dirty []int // keys, each at most once
}

// NewWatcher makes a watcher that watches nothing.
func NewWatcher() *Watcher { return &Watcher{wake: make(chan struct{}, 1)} }

// Wake is readable after something became dirty.
func (w *Watcher) Wake() <-chan struct{} { return w.wake }

// Take appends the keys of the partitions that became dirty since the last call to keys, and forgets them.
func (w *Watcher) Take(keys []int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys = append(keys, w.dirty...)
	w.dirty = w.dirty[:0]
	return keys
}

// Watch is one partition in a Watcher. It is dirty from the start, so that the first look reads it.
type Watch struct {
	watcher   *Watcher
	partition *Partition
	key       int
	marked    atomic.Bool // the key is in dirty
}

// Watch makes watcher learn of new records, a moved watermark and an ended leadership of p, under key.
func (p *Partition) Watch(watcher *Watcher, key int) *Watch {
	w := &Watch{watcher: watcher, partition: p, key: key}
	p.watchers.mu.Lock()
	p.watchers.all = append(p.watchers.all, w)
	p.watchers.count.Store(int32(len(p.watchers.all)))
	p.watchers.mu.Unlock()
	w.mark()
	return w
}

// Arm makes the watch report again: whoever took its key calls it before looking at the partition, so that
// what happens during the look is not lost.
func (w *Watch) Arm() { w.marked.Store(false) }

// Partition is what is watched.
func (w *Watch) Partition() *Partition { return w.partition }

// Close ends the watch.
func (w *Watch) Close() {
	ws := &w.partition.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if i := slices.Index(ws.all, w); i >= 0 {
		last := len(ws.all) - 1
		ws.all[i] = ws.all[last]
		ws.all[last] = nil
		ws.all = ws.all[:last]
		ws.count.Store(int32(last))
	}
}

// mark puts the key among the dirty ones and wakes the watcher.
func (w *Watch) mark() {
	if w.marked.Swap(true) {
		return
	}
	w.watcher.mu.Lock()
	w.watcher.dirty = append(w.watcher.dirty, w.key)
	w.watcher.mu.Unlock()
	select {
	case w.watcher.wake <- struct{}{}:
	default:
	}
}

// watchers are the watches on one partition.
type watchers struct {
	count atomic.Int32 // len(all), to find out without the lock that nobody watches
	mu    sync.Mutex
	all   []*Watch
}

func (ws *watchers) notify() {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		w.mark()
	}
}
