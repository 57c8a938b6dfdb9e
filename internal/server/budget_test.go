package server

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// TestBudgetOverdraft fills the budget with frames that have all begun: one at a time may overdraw it, so
// that all of them end.
func TestBudgetOverdraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frames, part = 10, 100
		b := newBudget(frames * part)
		begun := make([]claim, frames)
		for i := range begun {
			var ok bool
			if begun[i], ok = b.tryTake(part); !ok {
				t.Fatal("the budget is smaller than said")
			}
		}
		if _, ok := b.tryTake(1); ok {
			t.Fatal("the budget is larger than said")
		}
		peak, ended := int64(0), make(chan claim, frames)
		for i := range begun {
			go func() {
				larger, ok := b.take(nil, 4*part, &begun[i])
				if !ok {
					t.Error("not granted")
				}
				begun[i].release()
				largest, ok := b.take(nil, 16*part, &larger)
				if !ok {
					t.Error("not granted")
				}
				larger.release()
				ended <- largest
			}()
		}
		for range frames {
			synctest.Wait()
			peak = max(peak, b.inFlight())
			c := <-ended
			c.release()
		}
		if b.inFlight() != 0 || b.mu.overdrawn {
			t.Errorf("%d bytes in flight, overdrawn %v", b.inFlight(), b.mu.overdrawn)
		}
		if peak > frames*part+20*part {
			t.Errorf("%d bytes in flight at the peak", peak)
		}
	})
}

// TestBudgetStop takes back what was granted to somebody who has gone.
func TestBudgetStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		first, _ := b.tryTake(80)
		stop, refused := make(chan struct{}), make(chan bool)
		go func() {
			_, ok := b.take(stop, 90, nil)
			refused <- !ok
		}()
		synctest.Wait()
		second := make(chan claim)
		go func() {
			c, _ := b.take(nil, 20, nil) // fits, but came later
			second <- c
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Error("somebody jumped the queue")
		default:
		}
		close(stop)
		if !<-refused {
			t.Error("granted after the end")
		}
		c := <-second
		c.release()
		first.release()
		if b.inFlight() != 0 {
			t.Errorf("%d bytes in flight", b.inFlight())
		}
		if _, ok := b.take(nil, 1000, nil); !ok {
			t.Error("a frame larger than the budget never passes")
		}
	})
}

// TestBudgetLimit raises the limit under a waiter.
func TestBudgetLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		_, _ = b.tryTake(100)
		granted := make(chan bool)
		go func() { _, ok := b.take(nil, 50, nil); granted <- ok }()
		synctest.Wait()
		b.setLimit(150)
		if !<-granted {
			t.Error("not granted")
		}
	})
}

// TestBuffers checks classes, reuse, the budget of free bytes and that what is not needed goes.
func TestBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewBuffers(3 << 20)
		for size, want := range map[int]int{0: 4096, 1: 4096, 4096: 4096, 4097: 8192, 16385: 32768, 65537: 131072, 1 << 20: 1 << 20,
			1<<20 + 1: 2 << 20, 4<<20 + 1: 8 << 20, 16 << 20: 16 << 20, 16<<20 + 1: 16<<20 + 1} {
			b := p.Get(size)
			if len(b.Bytes) != want || roundUp(size) != want {
				t.Errorf("%d bytes asked, %d got, %d said", size, len(b.Bytes), roundUp(size))
			}
			b.Release()
		}
		if got := p.FreeBytes(); got > 3<<20 {
			t.Errorf("%d bytes kept", got)
		}
		p = NewBuffers(3 << 20)
		a := p.Get(100)
		a.Retain()
		a.Release()
		if b := p.Get(100); &b.Bytes[0] == &a.Bytes[0] {
			t.Error("a buffer in use was handed out")
		}
		a.Release()
		if b := p.Get(100); &b.Bytes[0] != &a.Bytes[0] {
			t.Error("a free buffer was not used")
		}
		random := rand.New(rand.NewPCG(5, 6))
		for range 1000 {
			b, c := p.Get(random.IntN(2<<20)), p.Get(random.IntN(20000))
			b.Release()
			c.Release()
		}
		pass(3 * trimEvery)
		synctest.Wait()
		if got := p.FreeBytes(); got != 0 {
			t.Errorf("%d bytes kept for nothing", got)
		}
	})
}
