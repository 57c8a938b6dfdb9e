package controller

import (
	"errors"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ending is a reassignment whose wanted replicas are all in sync:
//
//	topic znode: replicas 2,3,1 adding 3 removing 1        state: isr 2,3,1
//	  → state without 1, a new leader epoch: in the image the assignment is 2,3 from here on
//	  → StopReplica with deletion to 1
//	  → 1 has answered, or is dead: topic znode: replicas 2,3
//
// A new controller finds the assignment that is stored, and begins here again; every step may be done twice.
type ending struct {
	// stored is the partition with the assignment that the topic's znode still holds.
	stored *metadata.Partition
	topic  P.TopicID
	// left holds the brokers that have not deleted their replicas yet.
	left []P.BrokerID
}

// advanceMoves ends the reassignments that can be ended.
func (t *term) advanceMoves() error {
	if !t.look.moves {
		return nil
	}
	t.look.moves = false
	scratch := t.cluster
	scratch.loads = scratch.loads.clone()
	var all []decided
	for _, tp := range sorted(t.moving) {
		topic := t.cluster.image.Topic(tp.Topic)
		if t.deletions[tp.Topic] != nil || t.look.state[tp] || topic == nil {
			continue
		}
		p := topic.Partition(tp.Partition)
		if next := finishMove(&scratch, tp.Topic, p); next != nil {
			all = append(all, decided{TopicPartition: tp, topicID: topic.ID, from: p, to: next, why: "reassigned"})
		}
	}
	written, err := t.write(all)
	for _, d := range all {
		if !written[d.TopicPartition] {
			t.look.moves = true
			continue
		}
		t.ending[d.TopicPartition] = &ending{stored: d.from, topic: d.topicID, left: d.from.Removing}
		t.erase(d.TopicPartition, d.from.Removing, d.to.LeaderEpoch)
	}
	if err != nil {
		return err
	}
	return t.endMoves()
}

// erase has brokers delete their replicas of a partition, which is not theirs any more.
func (t *term) erase(tp P.TopicPartition, brokers []P.BrokerID, epoch P.LeaderEpoch) {
	for _, id := range brokers {
		if q := t.queues[id]; q != nil {
			q.add(func(b *backlog) { b.stop(t.cluster.image, tp, epoch, true) })
		}
	}
}

// erased notes that a broker has deleted a replica, or has failed to.
func (t *term) erased(tp P.TopicPartition, broker P.BrokerID, code P.Code) {
	e := t.ending[tp]
	if e == nil || !slices.Contains(e.left, broker) {
		return
	}
	if code != P.None {
		t.controller.options.Logger.Warn("controller: a replica cannot be deleted, trying again", "partition", tp.String(), "broker", broker, "error", code)
		if t.again == nil {
			t.again = time.After(repeatDeletion)
		}
		return
	}
	e.left = without(e.left, []P.BrokerID{broker})
	t.look.moves = true
}

// repeatErasures asks again for all replicas of ending reassignments that are left.
func (t *term) repeatErasures() {
	for _, tp := range sorted(t.ending) {
		if p := t.cluster.image.Partition(tp); p != nil {
			t.erase(tp, t.ending[tp].left, p.LeaderEpoch)
		}
	}
	t.look.moves = t.look.moves || len(t.ending) > 0
}

// endMoves writes the assignment of partitions whose old replicas are gone. One on a dead broker is not
// waited for: it would hold up the end for ever where that broker is the reason for the reassignment.
func (t *term) endMoves() error {
	byTopic := map[string][]decided{}
	for _, tp := range sorted(t.ending) {
		e, p := t.ending[tp], t.cluster.image.Partition(tp)
		if topic := t.cluster.image.Topic(tp.Topic); topic == nil || topic.ID != e.topic || p == nil || t.deletions[tp.Topic] != nil {
			delete(t.ending, tp)
			continue
		}
		if e.left = t.cluster.living(e.left); len(e.left) == 0 {
			byTopic[tp.Topic] = append(byTopic[tp.Topic], decided{TopicPartition: tp, topicID: e.topic, to: p})
		}
	}
	for _, name := range sortedNames(byTopic) {
		if err := t.endMovesOf(name, byTopic[name]); err != nil {
			return err
		}
	}
	return t.shrinkRequest()
}

// endMovesOf writes the assignment of some partitions of one topic.
func (t *term) endMovesOf(name string, all []decided) error {
	_, write, err := t.reassigned(name, all)
	if errors.Is(err, coordination.ErrNoNode) {
		t.look.topic[name] = true
		return nil
	}
	if err != nil {
		t.look.moves = true
		return err
	}
	_, err = coordination.FencedTxn(t.ctx, t.session, t.guard, write)
	var txn *coordination.TxnError
	switch {
	case errors.As(err, &txn): // somebody else has changed the topic: look again
		t.look.moves, t.look.topic[name] = true, true
		return nil
	case err != nil:
		t.look.moves = true // writing it once more does no harm
		return err
	}
	for _, d := range all {
		delete(t.ending, d.TopicPartition)
		t.controller.options.Logger.Info("controller: reassigned a partition", "partition", d.String(), "replicas", d.to.Replicas)
	}
	return nil
}

// resumeMoves gives the partitions that were being reassigned when this controller was elected a new leader
// epoch: the one before may have died before it had told anybody of the assignment.
func (t *term) resumeMoves() error {
	scratch := t.cluster
	scratch.loads = scratch.loads.clone()
	var all []decided
	for _, tp := range sorted(t.moving) {
		topic := t.cluster.image.Topic(tp.Topic)
		p := topic.Partition(tp.Partition)
		if t.deletions[tp.Topic] != nil || t.look.state[tp] || p.Leader == P.NoBroker || t.cluster.standing(p, p.Leader) != steady ||
			finishMove(&scratch, tp.Topic, p) != nil {
			continue
		}
		next := *p
		next.LeaderEpoch++
		next.ControllerEpoch = t.cluster.epoch
		all = append(all, decided{TopicPartition: tp, topicID: topic.ID, from: p, to: &next, why: "reassignment goes on"})
	}
	t.look.moves = true
	_, err := t.write(all)
	return err
}
