package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Some bugs need several things to go wrong in one order, which chance would hardly find. Each fault here is such a
// story: it goes by what the store says, and ends where that has become another story.

// tell begins a story beside all other faults, unless one is being told: they would spoil each other.
func (w *world) tell(story func()) {
	if !w.telling.CompareAndSwap(false, true) {
		return
	}
	w.ending.Go(func() {
		defer w.telling.Store(false)
		story()
	})
}

// oldLifeFault has a leader ask for a replica that is not the one any more which has caught up (KIP-903):
//
//	follower   cut off from the leader until it is out of the in-sync set; back, it catches up
//	leader     asks the controller to take it in; the request is under way for long
//	follower   loses its power, and starts again with less than it had
//	request    arrives
//	the others are killed: whoever is in the set now must have all that is committed
func oldLifeFault(d dice, n uint64, p *plan) fault {
	id, partition := fragile(d, p), int32(d.throw("partition", n)%partitions)
	lateness := d.between(20*time.Millisecond, 600*time.Millisecond, "power off", n)
	text := fmt.Sprintf("of broker %d in partition %d or another one, which loses its power %v after it is back", id, partition, lateness)
	return fault{kind: "old life", text: text, do: func(ctx context.Context, w *world) {
		w.tell(func() { w.oldLife(ctx, id, partition, lateness) })
	}}
}

func (w *world) oldLife(ctx context.Context, id int, from int32, lateness time.Duration) {
	m := w.machines[id]
	if l := m.current(); l != nil && w.controller() == id {
		l.expire() // another one has to be controller
	}
	var tp protocol.TopicPartition
	controller, leader := -1, -1
	found := w.awaits(5*time.Second, func() bool {
		controller = w.controller()
		at, of, _ := w.healthy(namedFrom(from), func(s znode.State) bool { return int(s.Leader) != id && int(s.Leader) != controller })
		tp, leader = at, int(of)
		return leader >= 0 && controller >= 0 && controller != id && w.assigned(tp.Partition, m)
	})
	if !found {
		return
	}
	var s znode.State
	apart, request := bothWays(hostOf(id), hostOf(leader)), link{hostOf(leader), hostOf(controller)}
	w.cut(20*time.Second, apart...)
	out := w.awaits(5*time.Second, func() bool {
		s, _ = w.state(tp)
		return !slices.Contains(s.ISR, protocol.BrokerID(id)) || int(s.Leader) != leader
	})
	w.cut(20*time.Second, request)
	w.rejoin(apart...)
	if !out || int(s.Leader) != leader || !w.pass(lateness) {
		w.rejoin(request)
		return
	}
	before := w.registration(id)
	l := m.current()
	m.crash(false, 0)
	if l != nil {
		l.expire()
	}
	w.cut(20*time.Second, apart...)
	w.ending.Go(func() { m.revive(ctx) })
	w.awaits(5*time.Second, func() bool { now := w.registration(id); return now != 0 && now != before })
	w.pass(20 * time.Millisecond) // the controller notices
	w.rejoin(request)
	w.awaits(50*time.Millisecond, func() bool { s, _ = w.state(tp); return slices.Contains(s.ISR, protocol.BrokerID(id)) })
	for other := range w.machines {
		if other != id {
			w.bounce(ctx, other, 5*time.Second)
		}
	}
	w.pass(2 * time.Second) // somebody leads
	w.rejoin(apart...)
}

// openShardFault has a coordinator load what is not committed and never will be:
//
//	leader         writes commits that only one follower gets, since the other one is cut off from both
//	leader         is killed; the follower that has them leads, and cannot commit them
//	new leader     is killed as well, once groups have looked; the other one leads, without them
func openShardFault(d dice, n uint64, _ *plan) fault {
	partition := int32(d.throw("partition", n) % 2)
	looks := d.between(300*time.Millisecond, 1500*time.Millisecond, "looks", n)
	text := fmt.Sprintf("%d or the other one, the second broker after %v", partition, looks)
	return fault{kind: "coordinators fail", text: text, do: func(ctx context.Context, w *world) {
		w.tell(func() { w.openShard(ctx, partition, looks) })
	}}
}

func (w *world) openShard(ctx context.Context, from int32, looks time.Duration) {
	controller := protocol.BrokerID(w.controller())
	tp, first, followers := w.healthy([]protocol.TopicPartition{offsets(from), offsets(1 - from)}, func(s znode.State) bool {
		return s.Leader != controller
	})
	if first < 0 || controller < 0 {
		return
	}
	next := w.heir(tp, followers)
	last := followers[0]
	if last == next {
		last = followers[1]
	}
	apart := []link{{hostOf(int(last)), hostOf(int(first))}, {hostOf(int(last)), hostOf(int(next))}}
	if last == controller { // it has to tell who leads: it does not hear the answers
		apart = []link{{hostOf(int(first)), hostOf(int(last))}, {hostOf(int(next)), hostOf(int(last))}}
	}
	w.cut(20*time.Second, apart...)
	defer w.rejoin(apart...)
	if !w.pass(looks) {
		return
	}
	w.bounce(ctx, int(first), 6*time.Second)
	if w.successor(tp, first) != next || !w.pass(looks) {
		return
	}
	w.bounce(ctx, int(next), 3*time.Second)
	w.pass(looks)
}

// heir is who will lead a partition next, of those who may: the controller prefers who comes first in the assignment, and
// then who leads least.
func (w *world) heir(tp protocol.TopicPartition, of []protocol.BrokerID) protocol.BrokerID {
	data, _, _ := w.store.Tree().Get(znode.TopicPath(tp.Topic)) // without it nobody is preferred
	assigned, _ := znode.DecodeTopic(tp.Topic, data)
	leads := map[protocol.BrokerID]int{}
	for _, topic := range append(churned[:], topic, tp.Topic) {
		for partition := range int32(partitions) {
			if s, ok := w.state(protocol.TopicPartition{Topic: topic, Partition: partition}); ok {
				leads[s.Leader]++
			}
		}
	}
	best := protocol.NoBroker
	for at, id := range assigned.Replicas[tp.Partition] {
		switch {
		case !slices.Contains(of, id):
		case at == 0:
			return id
		case best < 0 || leads[id] < leads[best]:
			best = id
		}
	}
	return best
}

// bounce kills a broker and ends its session with it.
func (w *world) bounce(ctx context.Context, id int, down time.Duration) {
	l := w.machines[id].current()
	if l == nil || isClosed(w.healed) {
		return
	}
	w.kill(ctx, id, down)
	l.expire()
}
