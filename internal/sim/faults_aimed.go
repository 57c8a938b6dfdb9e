package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Some bugs need several things to go wrong in one order, which chance would hardly find. Each fault here is such a
// story: it goes by what the store says, and ends where that has become another story.

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
	text := fmt.Sprintf("of broker %d in partition %d, which loses its power %v after it is back", id, partition, lateness)
	return fault{kind: "old life", text: text, do: func(ctx context.Context, w *world) {
		w.ending.Go(func() { w.oldLife(ctx, id, named(partition), lateness) })
	}}
}

func (w *world) oldLife(ctx context.Context, id int, tp protocol.TopicPartition, lateness time.Duration) {
	s, _ := w.state(tp)
	leader, controller, m := int(s.Leader), w.controller(), w.machines[id]
	if leader < 0 || leader == id || controller < 0 || controller == id || controller == leader || !slices.Contains(s.ISR, protocol.BrokerID(id)) {
		return
	}
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
	text := fmt.Sprintf("%d, the second one after %v", partition, looks)
	return fault{kind: "coordinators fail", text: text, do: func(ctx context.Context, w *world) {
		w.ending.Go(func() { w.openShard(ctx, offsets(partition), looks) })
	}}
}

func (w *world) openShard(ctx context.Context, tp protocol.TopicPartition, looks time.Duration) {
	s, _ := w.state(tp)
	if s.Leader < 0 || len(s.ISR) != 3 {
		return
	}
	followers := slices.DeleteFunc(slices.Clone(s.ISR), func(id protocol.BrokerID) bool { return id == s.Leader })
	first, next := s.Leader, followers[0] // the controller prefers who comes first, unless it leads much
	var apart []link
	for _, a := range []protocol.BrokerID{first, next} {
		apart = append(apart, bothWays(hostOf(int(a)), hostOf(int(followers[1])))...)
	}
	w.cut(20*time.Second, apart...)
	defer w.rejoin(apart...)
	if !w.pass(looks) {
		return
	}
	w.bounce(ctx, int(first), 6*time.Second)
	if !w.awaits(2*time.Second, func() bool { s, _ = w.state(tp); return s.Leader >= 0 && s.Leader != first }) || s.Leader != next || !w.pass(looks) {
		return
	}
	w.bounce(ctx, int(next), 3*time.Second)
	w.pass(looks)
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
