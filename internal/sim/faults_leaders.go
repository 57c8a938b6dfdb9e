package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// More stories, see faults_aimed.go: leaders fail whose followers have not all that they have.

// laggingFault has a leader fail whose followers lack its newest records:
//
//	followers   cut off from the leader, for less time than it takes to leave the in-sync set
//	leader      appends: nothing of that is committed
//	leader      is killed, and a follower leads
func laggingFault(d dice, n uint64, _ *plan) fault {
	partition, lasts := int32(d.throw("partition", n)%partitions), d.between(100*time.Millisecond, 900*time.Millisecond, "lagging", n)
	text := fmt.Sprintf("of partition %d for %v, then its leader fails", partition, lasts)
	return fault{kind: "followers lag", text: text, do: func(ctx context.Context, w *world) {
		w.tell(func() { w.lagging(ctx, named(partition), lasts) })
	}}
}

func (w *world) lagging(ctx context.Context, tp protocol.TopicPartition, lasts time.Duration) {
	s, _ := w.state(tp)
	if s.Leader < 0 || len(s.ISR) != w.plan.replicas {
		return
	}
	apart := apartFrom(s.Leader, s.ISR...)
	w.cut(20*time.Second, apart...)
	defer w.rejoin(apart...)
	if w.pass(lasts) {
		w.bounce(ctx, int(s.Leader), 2*time.Second)
	}
}

// inTurnFault has two leaders fail, the second one before the last replica has got anything of it:
//
//	first     commits, and is killed; the others do not know yet how far
//	second    leads; the last one has to follow it, and gets nothing from it
//	second    is killed, and the last one leads, with all that is committed
func inTurnFault(d dice, n uint64, _ *plan) fault {
	partition, looks := int32(d.throw("partition", n)%partitions), d.between(50*time.Millisecond, 700*time.Millisecond, "looks", n)
	text := fmt.Sprintf("of partition %d or another one, the second after %v", partition, looks)
	return fault{kind: "leaders fail", text: text, do: func(ctx context.Context, w *world) {
		w.tell(func() { w.inTurn(ctx, partition, looks) })
	}}
}

func (w *world) inTurn(ctx context.Context, from int32, looks time.Duration) {
	controller := protocol.BrokerID(w.controller())
	tp, first, followers := w.healthy(namedFrom(from), func(s znode.State) bool { return s.Leader != controller })
	if first < 0 || controller < 0 {
		return
	}
	// Both must hear who leads from the controller, which may be one of them.
	apart := apartFrom(followers[0], followers[1])
	if at := slices.Index(followers, controller); at >= 0 {
		apart = []link{{hostOf(int(followers[1-at])), hostOf(int(controller))}}
	}
	w.cut(20*time.Second, apart...)
	defer w.rejoin(apart...)
	w.bounce(ctx, int(first), 6*time.Second)
	second := w.successor(tp, first)
	if second < 0 || !w.pass(looks) {
		return
	}
	w.bounce(ctx, int(second), 3*time.Second)
	w.successor(tp, second)
}

// eligibleFault has a replica become eligible to lead (KIP-966), and then fall behind:
//
//	leader    cut off from both followers until it is alone in the in-sync set: nothing is committed without them
//	one       comes back into the set: what is committed from now on the other one lacks
//	the set   is killed; the other one lives, and must not lead
func eligibleFault(d dice, n uint64, _ *plan) fault {
	partition, looks := int32(d.throw("partition", n)%partitions), d.between(300*time.Millisecond, 1500*time.Millisecond, "looks", n)
	text := fmt.Sprintf("in partition %d or another one, the set fails after %v", partition, looks)
	return fault{kind: "eligible", text: text, do: func(ctx context.Context, w *world) {
		w.tell(func() { w.eligible(ctx, partition, looks) })
	}}
}

func (w *world) eligible(ctx context.Context, from int32, looks time.Duration) {
	controller := protocol.BrokerID(w.controller())
	// The leader has to reach the controller, which is itself or has no replica.
	tp, leader, followers := w.healthy(namedFrom(from), func(s znode.State) bool {
		return s.Leader == controller || !slices.Contains(s.ISR, controller)
	})
	if leader < 0 || controller < 0 {
		return
	}
	apart := apartFrom(leader, followers...)
	w.cut(30*time.Second, apart...)
	defer w.rejoin(apart...)
	if !w.becomes(tp, leader, leader) {
		return
	}
	w.rejoin(apartFrom(leader, followers[0])...)
	if !w.becomes(tp, leader, leader, followers[0]) || !w.pass(looks) {
		return
	}
	w.bounce(ctx, int(leader), 3*time.Second)
	w.bounce(ctx, int(followers[0]), 3*time.Second)
	w.successor(tp, leader)
}

// healthy finds one of some partitions that has all its replicas in sync and is like this: its leader, which is -1 where
// there is none, and the others.
func (w *world) healthy(some []protocol.TopicPartition, like func(znode.State) bool) (tp protocol.TopicPartition, leader protocol.BrokerID, followers []protocol.BrokerID) {
	for _, tp = range some {
		if s, ok := w.state(tp); ok && s.Leader >= 0 && len(s.ISR) == w.plan.replicas && like(s) {
			return tp, s.Leader, slices.DeleteFunc(slices.Clone(s.ISR), func(id protocol.BrokerID) bool { return id == s.Leader })
		}
	}
	return tp, protocol.NoBroker, nil
}

// namedFrom are all partitions of the topic under test, from one on.
func namedFrom(from int32) (all []protocol.TopicPartition) {
	for i := range int32(partitions) {
		all = append(all, named((from+i)%partitions))
	}
	return all
}

// becomes waits until a broker leads a partition with this in-sync set; false where another one does.
func (w *world) becomes(tp protocol.TopicPartition, leader protocol.BrokerID, set ...protocol.BrokerID) bool {
	slices.Sort(set)
	found := false
	w.awaits(8*time.Second, func() bool {
		s, _ := w.state(tp)
		found = s.Leader == leader && slices.Equal(slices.Sorted(slices.Values(s.ISR)), set)
		return found || s.Leader != leader
	})
	return found
}

// successor waits until somebody leads a partition after a leader that has failed; -1 where nobody does.
func (w *world) successor(tp protocol.TopicPartition, failed protocol.BrokerID) protocol.BrokerID {
	next := protocol.NoBroker
	w.awaits(2*time.Second, func() bool {
		s, _ := w.state(tp)
		if s.Leader != failed {
			next = s.Leader
		}
		return next >= 0
	})
	return next
}

// apartFrom are the links between a broker and others.
func apartFrom(id protocol.BrokerID, others ...protocol.BrokerID) (links []link) {
	for _, other := range others {
		if other != id {
			links = append(links, bothWays(hostOf(int(id)), hostOf(int(other)))...)
		}
	}
	return links
}
