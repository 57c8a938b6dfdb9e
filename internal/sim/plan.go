package sim

import (
	"context"
	"fmt"
	"time"
)

// plan is what a seed decides about a run.
type plan struct {
	brokers, replicas int
	// properties are those of all brokers, topic those of the topic under test.
	properties []string
	topic      [][2]string
	commits    bool
	// pace is about how long a producer waits between batches.
	pace   time.Duration
	length time.Duration
	faults []fault
}

// fault is one thing that goes wrong.
type fault struct {
	at   time.Duration
	kind string
	text string
	do   func(ctx context.Context, w *world)
}

// String says what is broken.
func (f fault) String() string { return f.kind + " " + f.text }

// baseProperties make everything happen within seconds.
var baseProperties = [...]string{
	"zookeeper.session.timeout.ms=3000", "replica.lag.time.max.ms=2000", "replica.fetch.wait.max.ms=200", "replica.socket.timeout.ms=2500",
	"replica.fetch.backoff.ms=100", "controller.socket.timeout.ms=3000", "request.timeout.ms=4000",
	"offsets.topic.num.partitions=2", "offsets.topic.replication.factor=3", "offsets.commit.timeout.ms=2000",
	"replica.high.watermark.checkpoint.interval.ms=1000", "leader.imbalance.check.interval.seconds=7", "controlled.shutdown.retry.backoff.ms=500",
	"min.insync.replicas=2", "log.initial.task.delay.ms=1000", "auto.create.topics.enable=false",
}

// newPlan draws the plan of a seed. First it is drawn which kinds of faults there are at all, since some bugs need
// that others keep still.
func newPlan(d dice) plan {
	p := plan{
		brokers: 3, replicas: 3, commits: d.chance(0.5, "commits", 0), properties: baseProperties[:],
		topic:  [][2]string{{"min.insync.replicas", "2"}, {"segment.ms", "3000"}},
		pace:   d.between(5*time.Millisecond, 60*time.Millisecond, "pace", 0),
		length: d.between(8*time.Second, 25*time.Second, "length", 0),
	}
	var kinds []func(dice, uint64, plan) fault
	for i, kind := range []func(dice, uint64, plan) fault{killFault, restartFault, cutFault, storeCutFault, expiryFault, storeTroubleFault, powerFault} {
		if d.chance(0.5, "kind", uint64(i)) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = append(kinds, killFault)
	}
	calm := d.between(200*time.Millisecond, 5*time.Second, "calm", 0)
	at := time.Second
	for n := uint64(0); ; n++ {
		at += d.between(calm/4, calm*2, "fault at", n)
		if at > p.length {
			return p
		}
		f := kinds[d.throw("fault", n)%uint64(len(kinds))](d, n, p)
		f.at = at
		p.faults = append(p.faults, f)
	}
}

// after does something later, unless all is healed before.
func (w *world) after(d time.Duration, do func()) {
	w.ending.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			do()
		case <-w.healed:
		}
	})
}

func someBroker(d dice, n uint64, p plan) int { return int(d.throw("broker", n) % uint64(p.brokers)) }

// killFault ends a process, as kill -9 does, and starts it again within or after its session's timeout.
func killFault(d dice, n uint64, p plan) fault {
	id, down := someBroker(d, n, p), d.between(10*time.Millisecond, 6*time.Second, "down", n)
	return fault{kind: "kill", text: fmt.Sprintf("broker %d for %v", id, down), do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		m.crash(true, 1)
		w.after(down, func() { m.revive(ctx) })
	}}
}

// powerFault takes the power of the one machine that may lose it: of its disk only what was synced is certain to
// stay. Two such machines could lose what both have acknowledged, as the cluster does not sync.
func powerFault(d dice, n uint64, p plan) fault {
	id, down := int(d.throw("fragile", 0)%uint64(p.brokers)), d.between(10*time.Millisecond, 6*time.Second, "down", n)
	keep := float64(d.throw("keep", n)%5) / 4
	return fault{kind: "power", text: fmt.Sprintf("of broker %d for %v, a share of %v stays", id, down, keep), do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		m.crash(false, keep)
		w.after(down, func() { m.revive(ctx) })
	}}
}

// restartFault stops a broker in order and starts it again.
func restartFault(d dice, n uint64, p plan) fault {
	id, down := someBroker(d, n, p), d.between(10*time.Millisecond, 2*time.Second, "down", n)
	return fault{kind: "restart", text: fmt.Sprintf("broker %d, down for %v", id, down), do: func(ctx context.Context, w *world) {
		m := w.machines[id]
		w.ending.Go(func() {
			stopping, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			m.stop(stopping)
			w.after(down, func() { m.revive(ctx) })
		})
	}}
}

// cutFault cuts links between brokers: one or all of a broker's, one way or both.
func cutFault(d dice, n uint64, p plan) fault {
	id, lasts := someBroker(d, n, p), d.between(100*time.Millisecond, 6*time.Second, "cut", n)
	var cuts []link
	for other := range p.brokers {
		if other == id || d.chance(0.4, fmt.Sprintf("spare %d", other), n) {
			continue
		}
		a, b := fmt.Sprintf("broker-%d", id), fmt.Sprintf("broker-%d", other)
		switch d.throw("direction", n) % 3 {
		case 0:
			cuts = append(cuts, link{a, b})
		case 1:
			cuts = append(cuts, link{b, a})
		default:
			cuts = append(cuts, link{a, b}, link{b, a})
		}
	}
	return fault{kind: "cut", text: fmt.Sprintf("%v for %v", cuts, lasts), do: func(_ context.Context, w *world) {
		for _, c := range cuts {
			w.network.sever(c.from, c.to)
		}
		w.after(lasts, func() {
			for _, c := range cuts {
				w.network.heal(c.from, c.to)
			}
		})
	}}
}

// storeCutFault keeps a broker from the store, for less or for more than its session's timeout.
func storeCutFault(d dice, n uint64, p plan) fault {
	id, lasts := someBroker(d, n, p), d.between(100*time.Millisecond, 6*time.Second, "store cut", n)
	return fault{kind: "store cut", text: fmt.Sprintf("broker %d for %v", id, lasts), do: func(_ context.Context, w *world) {
		l := w.machines[id].current()
		if l == nil {
			return
		}
		l.cutStore()
		w.after(lasts, func() {
			if !l.dead.Load() {
				l.joinStore()
			}
		})
	}}
}

// expiryFault ends a broker's session in the store.
func expiryFault(d dice, n uint64, p plan) fault {
	id := someBroker(d, n, p)
	return fault{kind: "expiry", text: fmt.Sprintf("of broker %d", id), do: func(_ context.Context, w *world) {
		if l := w.machines[id].current(); l != nil {
			l.expire()
		}
	}}
}

// storeTroubleFault makes the store slow and forgetful for a while: requests and answers are lost.
func storeTroubleFault(d dice, n uint64, _ plan) fault {
	lasts := d.between(100*time.Millisecond, 3*time.Second, "trouble", n)
	return fault{kind: "store trouble", text: fmt.Sprintf("for %v", lasts), do: func(_ context.Context, w *world) {
		w.store.trouble.Store(&trouble{slowest: 20 * time.Millisecond, losses: 0.15})
		w.after(lasts, func() { w.store.trouble.Store(nil) })
	}}
}
