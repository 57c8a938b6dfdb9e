package sim

import (
	"context"
	"fmt"
	"time"
)

// cutFault cuts links between brokers: one or all of a broker's, one way or both.
func cutFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(100*time.Millisecond, 6*time.Second, "cut", n)
	var cuts []link
	for other := range p.brokers {
		if other == id || d.chance(0.4, fmt.Sprintf("spare %d", other), n) {
			continue
		}
		cuts = append(cuts, someWays(d, n, hostOf(id), hostOf(other))...)
	}
	return fault{kind: "cut", text: fmt.Sprintf("%v for %v", cuts, lasts), do: func(_ context.Context, w *world) { w.cut(lasts, cuts...) }}
}

// someWays is one direction between two hosts, or both.
func someWays(d dice, n uint64, a, b string) []link {
	switch d.throw("direction", n) % 3 {
	case 0:
		return []link{{a, b}}
	case 1:
		return []link{{b, a}}
	}
	return bothWays(a, b)
}

func bothWays(a, b string) []link { return []link{{a, b}, {b, a}} }

// cut severs links for a time. Once all is healed it does nothing.
func (w *world) cut(lasts time.Duration, cuts ...link) {
	if isClosed(w.healed) {
		return
	}
	for _, c := range cuts {
		w.network.sever(c.from, c.to)
	}
	w.after(lasts, func() { w.rejoin(cuts...) })
}

// rejoin ends cuts.
func (w *world) rejoin(cuts ...link) {
	for _, c := range cuts {
		w.network.heal(c.from, c.to)
	}
}

// clientCutFault cuts a client off from a broker: requests get lost, or only the answers.
func clientCutFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(50*time.Millisecond, 5*time.Second, "client cut", n)
	hosts := [...]string{"producer-p0", "producer-p1", "producer-p2", "reader-0", "committer-0", "committer-1"}
	cuts := someWays(d, n, hosts[d.throw("client", n)%uint64(len(hosts))], hostOf(id))
	return fault{kind: "client cut", text: fmt.Sprintf("%v for %v", cuts, lasts), do: func(_ context.Context, w *world) { w.cut(lasts, cuts...) }}
}

// zombieFault cuts a broker off from the store and from all other brokers, while clients still reach it: it must
// acknowledge nothing after somebody else leads.
func zombieFault(d dice, n uint64, p *plan) fault {
	id, lasts := someBroker(d, n, p), d.between(500*time.Millisecond, 7*time.Second, "zombie", n)
	var cuts []link
	for other := range p.brokers {
		if other != id {
			cuts = append(cuts, bothWays(hostOf(id), hostOf(other))...)
		}
	}
	return fault{kind: "zombie", text: fmt.Sprintf("broker %d for %v", id, lasts), do: func(_ context.Context, w *world) {
		w.cut(lasts, cuts...)
		w.cutFromStore(lasts, id)
	}}
}
