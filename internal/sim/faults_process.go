package sim

import (
	"context"
	"fmt"
	"time"
)

// killFault ends a process, as kill -9 does, and starts it again within or after its session's timeout.
func killFault(d dice, n uint64, p *plan) fault {
	id, down := someBroker(d, n, p), d.between(10*time.Millisecond, 6*time.Second, "down", n)
	return fault{kind: "kill", text: fmt.Sprintf("broker %d for %v", id, down), do: func(ctx context.Context, w *world) {
		w.kill(ctx, id, down)
	}}
}

// kill ends a process and starts it again later. Once all is healed it does nothing.
func (w *world) kill(ctx context.Context, id int, down time.Duration) {
	if isClosed(w.healed) {
		return
	}
	m := w.machines[id]
	m.crash(true, 1)
	w.raise(ctx, m, down)
}

// raise starts a machine again later, or when all is healed.
func (w *world) raise(ctx context.Context, m *machine, down time.Duration) {
	w.ending.Go(func() {
		w.pass(down)
		m.revive(ctx)
	})
}

// bounceFault kills who matters most at this moment, and starts it again at once: long before its session has run
// out, if that is not ended with it.
func bounceFault(d dice, n uint64, p *plan) fault {
	down := d.between(5*time.Millisecond, 300*time.Millisecond, "bounce", n)
	role, partition := d.throw("role", n)%3, int32(d.throw("partition", n)%partitions)
	ends := d.chance(0.5, "its session ends", n)
	who := [...]string{"the controller", fmt.Sprintf("the leader of partition %d", partition), fmt.Sprintf("the coordinator %d", partition%2)}[role]
	return fault{kind: "bounce", text: fmt.Sprintf("%s for %v, its session ends: %v", who, down, ends), do: func(ctx context.Context, w *world) {
		id := w.controller()
		if role > 0 {
			tp := named(partition)
			if role == 2 {
				tp = offsets(partition % 2)
			}
			s, _ := w.state(tp)
			id = int(s.Leader)
		}
		if id < 0 {
			return
		}
		l := w.machines[id].current()
		w.kill(ctx, id, down)
		if ends && l != nil {
			l.expire()
		}
	}}
}

// powerFault takes the power of the one machine that may lose it: of its disk only what was synced is certain to
// stay.
func powerFault(d dice, n uint64, p *plan) fault {
	id, down := fragile(d, p), d.between(10*time.Millisecond, 6*time.Second, "down", n)
	keep := float64(d.throw("keep", n)%5) / 4
	return fault{kind: "power", text: fmt.Sprintf("of broker %d for %v, a share of %v stays", id, down, keep), do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		m.crash(false, keep)
		w.raise(ctx, m, down)
	}}
}

// restartFault stops a broker in order and starts it again.
func restartFault(d dice, n uint64, p *plan) fault {
	id, down := someBroker(d, n, p), d.between(10*time.Millisecond, 2*time.Second, "down", n)
	return fault{kind: "restart", text: fmt.Sprintf("broker %d, down for %v", id, down), do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		w.ending.Go(func() {
			stopping, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			m.stop(stopping)
			w.raise(ctx, m, down)
		})
	}}
}

// clockFault sets a machine's clock forward or back: mostly by less than an hour, sometimes by weeks, which is still less
// than an idempotent producer is remembered for by its last batch (see baseProperties).
func clockFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(100*time.Millisecond, 8*time.Second, "clock", n)
	step := d.between(-45*time.Minute, 45*time.Minute, "step", n)
	if d.chance(0.25, "a month", n) {
		step = [...]time.Duration{-20 * 24 * time.Hour, 20 * 24 * time.Hour}[d.throw("which month", n)%2]
	}
	return fault{kind: "clock", text: fmt.Sprintf("of broker %d by %v for %v", id, step, lasts), do: func(_ context.Context, w *world) {
		m := w.machines[id]
		m.skew.Store(int64(step))
		w.after(lasts, func() { m.skew.Store(0) })
	}}
}
