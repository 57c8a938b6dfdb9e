package server

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// alarms runs sleeps when their time is up. It has one timer for all of them, and that is not touched when a sleep
// begins or ends: only a sleep that ends before all others sets it anew.
//
// Nearly every wait ends before its time, and a timer of its own for each would be the next one due: the runtime then
// wakes a thread to wait for it, a thousand times a second.
//
//	add        due earlier than the timer is set for: set it        remove     only from the heap
//	timer      run who is due; set it for the next, if there is one
type alarms struct {
	mu    sync.Mutex
	due   dueHeap
	timer *time.Timer // nil before the first
	set   time.Time   // what the timer is set for; zero where it is not
}

// add has s run at a time.
func (a *alarms) add(s *Sleep, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.due = at
	heap.Push(&a.due, s)
	a.setLocked()
}

// remove takes s out, if it is still there.
func (a *alarms) remove(s *Sleep) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.place > 0 {
		heap.Remove(&a.due, s.place-1)
	}
}

// setLocked sets the timer for the first that is due, unless it is set for that or earlier.
func (a *alarms) setLocked() {
	if len(a.due) == 0 || !a.set.IsZero() && !a.due[0].due.Before(a.set) {
		return
	}
	a.set = a.due[0].due
	if wait := time.Until(a.set); a.timer == nil {
		a.timer = time.AfterFunc(wait, a.ring)
	} else {
		a.timer.Reset(wait)
	}
}

// ringers is how many of those whose time is up are run at once. One may have to wait for a disk, for what it answers
// with, and must not make the others late.
const ringers = 16

// ring runs those whose time is up.
func (a *alarms) ring() {
	a.mu.Lock()
	var up []*Sleep
	for now := time.Now(); len(a.due) > 0 && !a.due[0].due.After(now); {
		up = append(up, heap.Pop(&a.due).(*Sleep))
	}
	a.set = time.Time{}
	a.setLocked()
	a.mu.Unlock()
	var next atomic.Int32
	run := func() {
		for i := int(next.Add(1)); i <= len(up); i = int(next.Add(1)) {
			up[i-1].Post(TimeUp)
		}
	}
	for range min(len(up), ringers) - 1 {
		go run()
	}
	run()
}

// stop is called when nothing sleeps any more.
func (a *alarms) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// dueHeap is a heap of sleeps by their time; a sleep's place is its index plus 1, 0 where it is in none.
type dueHeap []*Sleep

// Len is container/heap's.
func (h dueHeap) Len() int { return len(h) }

// Less is container/heap's: the first to be due comes first.
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap is container/heap's.
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push is container/heap's.
func (h *dueHeap) Push(x any) {
	s := x.(*Sleep)
	*h = append(*h, s)
	s.place = len(*h)
}

// Pop is container/heap's.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.place = 0
	return s
}
