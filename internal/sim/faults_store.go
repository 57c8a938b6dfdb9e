package sim

import (
	"context"
	"fmt"
	"time"
)

// storeCutFault keeps a broker from the store, for less or for more than its session's timeout.
func storeCutFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(100*time.Millisecond, 6*time.Second, "store cut", n)
	return fault{kind: "store cut", text: fmt.Sprintf("broker %d for %v", id, lasts), do: func(_ context.Context, w *world) {
		w.cutFromStore(lasts, id)
	}}
}

// cutFromStore keeps brokers from the store for a time.
func (w *world) cutFromStore(lasts time.Duration, ids ...int) {
	for _, id := range ids {
		l := w.machines[id].current()
		if l == nil {
			continue
		}
		l.cutStore()
		w.after(lasts, func() {
			if !l.dead.Load() {
				l.joinStore()
			}
		})
	}
}

// storeGoneFault keeps everybody from the store at once.
func storeGoneFault(d dice, n uint64, p *plan) fault {
	lasts := d.between(100*time.Millisecond, 8*time.Second, "store gone", n)
	return fault{kind: "store gone", text: fmt.Sprintf("for %v", lasts), do: func(_ context.Context, w *world) {
		for id := range w.machines {
			w.cutFromStore(lasts, id)
		}
	}}
}

// expiryFault ends a broker's session in the store.
func expiryFault(d dice, n uint64, p *plan) fault {
	id := someBroker(d, n, p)
	return fault{kind: "expiry", text: fmt.Sprintf("of broker %d", id), do: func(_ context.Context, w *world) {
		if l := w.machines[id].current(); l != nil {
			l.expire()
		}
	}}
}

// allExpireFault ends all sessions at one instant.
func allExpireFault(dice, uint64, *plan) fault {
	return fault{kind: "all expire", text: "at once", do: func(_ context.Context, w *world) {
		for _, m := range w.machines {
			if l := m.current(); l != nil {
				l.expire()
			}
		}
	}}
}

// storeTroubleFault makes the store slow for a while, and forgetful too: requests and answers are lost.
func storeTroubleFault(d dice, n uint64, _ *plan) fault {
	lasts := d.between(100*time.Millisecond, 3*time.Second, "trouble", n)
	t := trouble{slowest: 20 * time.Millisecond, losses: 0.15}
	if d.chance(0.3, "slow", n) {
		t = trouble{slowest: 800 * time.Millisecond}
	}
	return fault{kind: "store trouble", text: fmt.Sprintf("for %v, operations take up to %v, %v of them fail", lasts, t.slowest, t.losses), do: func(_ context.Context, w *world) {
		w.store.trouble.Store(&t)
		w.after(lasts, func() { w.store.trouble.CompareAndSwap(&t, nil) })
	}}
}

// lateEventsFault keeps what a broker watches back for a while: then it comes merged.
func lateEventsFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(50*time.Millisecond, 3*time.Second, "late", n)
	return fault{kind: "late events", text: fmt.Sprintf("for broker %d for %v", id, lasts), do: func(_ context.Context, w *world) {
		l := w.machines[id].current()
		if l == nil {
			return
		}
		l.eachSession(w.store.HoldEvents)
		w.after(lasts, func() { l.eachSession(w.store.ReleaseEvents) })
	}}
}
