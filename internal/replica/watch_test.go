package replica

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// bell counts how often it was rung since it was asked last.
type bell struct{ rung atomic.Int32 }

func (b *bell) ring()       { b.rung.Add(1) }
func (b *bell) woken() bool { return b.rung.Swap(0) > 0 }

func TestWatcher(t *testing.T) {
	s := newStage(t)
	a, b := s.lead("a", 1), s.lead("b", 1)
	var rung bell
	w := NewWatcher(rung.ring)
	watchA, watchB := a.Watch(w, 7, false), b.Watch(w, 8, false)
	s.write(a, 1, AcksLeader)
	s.write(b, 1, AcksLeader)
	if !rung.woken() || !slices.Equal(w.Take(nil), []int{7, 8}) {
		t.Fatal("both are dirty from the start")
	}
	s.write(a, 1, AcksLeader)
	if rung.woken() {
		t.Fatal("woken by a partition that was not armed again")
	}
	watchA.Arm()
	watchB.Arm()
	s.write(a, 1, AcksLeader)
	s.write(a, 1, AcksLeader)
	if got := w.Take(nil); !rung.woken() || !slices.Equal(got, []int{7}) {
		t.Fatalf("dirty %v, want 7 once", got)
	}
	watchA.Arm()
	s.tell(s.order("b", metadata.Follow, 2))
	if got := w.Take(nil); !rung.woken() || !slices.Equal(got, []int{8}) {
		t.Fatalf("dirty %v after an ended leadership, want 8", got)
	}
	watchA.Close()
	watchA.Close()
	watchB.Close()
	s.write(a, 1, AcksLeader)
	if rung.woken() || a.watchers.count.Load() != 0 || b.watchers.count.Load() != 0 {
		t.Error("woken by a watch that was closed")
	}
}

func TestWatchesCloseInAnyOrder(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	w := NewWatcher(func() {})
	var all []*Watch
	for key := range 5 {
		all = append(all, p.Watch(w, key, false))
	}
	w.Take(nil)
	for _, i := range []int{2, 0, 4} {
		all[i].Close()
	}
	all[1].Arm()
	all[3].Arm()
	s.write(p, 1, AcksLeader)
	if got := w.Take(nil); len(got) != 2 || !slices.Contains(got, 1) || !slices.Contains(got, 3) {
		t.Errorf("dirty %v, want 1 and 3", got)
	}
	all[1].Close()
	all[3].Close()
	if n := p.watchers.count.Load(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

// Nothing that is appended goes unnoticed, whenever it comes: who is woken, takes, arms and looks has seen
// everything, or is woken again.
func TestNoLostWakeUp(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	const appends = 200
	wake := make(chan struct{}, 1)
	w := NewWatcher(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	watch := p.Watch(w, 0, false)
	defer watch.Close()
	batch := s.validated(p, 1)
	go func() {
		for range appends {
			v := batch
			v.Batch = append(v.Batch[:0:0], batch.Batch...)
			_, _, _ = p.Append(t.Context(), v, AcksLeader)
		}
	}()
	for seen := protocol.Offset(0); seen < appends; {
		select {
		case <-wake:
		case <-t.Context().Done():
			t.Fatal("never woken")
		}
		for range w.Take(nil) {
			watch.Arm()
		}
		seen = p.Bounds().HighWatermark
	}
}

// A follower is woken by what is appended, a consumer by what is committed; a follower learns of that, too, when it
// looks.
func TestWhoIsWokenForWhat(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1, 1, 2)
	var ofRung, byRung bell
	of, by := NewWatcher(ofRung.ring), NewWatcher(byRung.ring)
	follower, consumer := p.Watch(of, 1, true), p.Watch(by, 2, false)
	defer follower.Close()
	defer consumer.Close()
	rest := func() {
		ofRung.woken()
		byRung.woken()
		of.Take(nil)
		by.Take(nil)
		follower.Arm()
		consumer.Arm()
	}
	rest()
	s.write(p, 1, AcksLeader)
	if !ofRung.woken() || byRung.woken() {
		t.Error("an append wakes the follower, and not the consumer")
	}
	rest()
	s.lead("t", 1, 1) // what was appended is committed
	if ofRung.woken() || !byRung.woken() {
		t.Error("a commit wakes the consumer, and not the follower")
	}
	if got := of.Take(nil); !slices.Equal(got, []int{1}) {
		t.Errorf("the follower finds %v when it looks, want 1", got)
	}
	s.write(p, 1, AcksLeader) // before it is armed again, and it still looks
	rest()
	s.lead("t", 1, 1, 2)
	rest()
	s.write(p, 1, AcksLeader)
	s.lead("t", 1, 1)
	if !ofRung.woken() || !slices.Equal(of.Take(nil), []int{1}) {
		t.Error("an append after a commit wakes the follower")
	}
}

// Who is woken finds the partition's lock free: it may append to the partition that has woken it.
func TestWokenWithoutTheLock(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	var watch *Watch
	appended := 0
	w := NewWatcher(func() {
		if appended++; appended < 3 {
			watch.Arm()
			s.write(p, 1, AcksLeader)
		}
	})
	watch = p.Watch(w, 0, false)
	defer watch.Close()
	s.write(p, 1, AcksLeader)
	if end := p.Bounds().End; appended != 3 || end != 3 {
		t.Errorf("woken %d times, log end %d; want 3 and 3", appended, end)
	}
}

// However many are woken by one append, all are.
func TestManyWatchers(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	const many = 3*wokenTogether + wokenHere + 1
	woken := make(chan int, 2*many)
	for i := range many {
		watch := p.Watch(NewWatcher(func() { woken <- i }), 0, false)
		defer watch.Close()
	}
	s.write(p, 1, AcksLeader)
	seen := map[int]bool{}
	for range many {
		seen[<-woken] = true
	}
	if len(seen) != many {
		t.Errorf("%d watchers woken, want %d", len(seen), many)
	}
}
