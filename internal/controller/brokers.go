package controller

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// readBrokers looks who has joined, left, or come back, and decides about their partitions.
func (t *term) readBrokers() error {
	if !t.look.brokers {
		return nil
	}
	registered, err := t.listBrokers()
	if err != nil {
		return err
	}
	t.look.brokers = false
	d := t.meet(registered)
	if len(d.Brokers) == 0 {
		return nil
	}
	t.change(bounces(d)...)
	t.change(online(t.cluster.image, d.Brokers)...)
	logger := t.controller.options.Logger
	for _, id := range d.Brokers {
		old, now := d.From.Broker(id), d.To.Broker(id)
		switch {
		case now == nil:
			logger.Info("controller: a broker has left", "broker", id, "broker-epoch", old.Epoch)
		default:
			t.widening = time.After(widenAfter)
			t.armFill(fillAfter)
			logger.Info("controller: a broker has joined", "broker", id, "broker-epoch", now.Epoch, "stopped", t.cluster.stops[id])
		}
		if now == nil || old != nil && old.Epoch != now.Epoch {
			t.leave(id) // the queue is that of a life that is over
		}
	}
	t.refresh = true
	t.filling.queue = nil                            // planned for other brokers
	t.look.moves = t.look.moves || len(t.ending) > 0 // the dead are not waited for
	if t.cluster.settling && !t.missing() {
		t.settled()
	}
	err = t.decide(t.partitions(func(p *metadata.Partition) bool {
		return slices.ContainsFunc(d.Brokers, func(id P.BrokerID) bool {
			return slices.Contains(p.Replicas, id) || slices.Contains(p.ISR, id) || slices.Contains(p.Eligible, id)
		})
	}))
	t.commit() // in case nothing was decided
	return err
}

// bounces makes visible the restarts that a write has hidden: a state that was written after a broker had
// registered again, but before this controller knew, is newer than the registration. Nobody joins an in-sync
// set but in the life that the controller knows, so that whoever is in one and has another life now has
// bounced. The state then counts as older than the registration.
func bounces(d metadata.Delta) []metadata.Change {
	var changes []metadata.Change
	for _, id := range d.Brokers {
		old, now := d.From.Broker(id), d.To.Broker(id)
		if now == nil || old != nil && old.Epoch == now.Epoch {
			continue
		}
		for _, name := range d.To.Topics() {
			topic := d.To.Topic(name)
			for i, p := range topic.Partitions {
				if p.Modified >= int64(now.Epoch) && (slices.Contains(p.ISR, id) || slices.Contains(p.Eligible, id)) {
					hidden := *p
					hidden.Modified = int64(now.Epoch) - 1
					tp := P.TopicPartition{Topic: name, Partition: int32(i)}
					changes = append(changes, metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: &hidden})
				}
			}
		}
	}
	return changes
}

// reachAll starts telling the living brokers that are not told yet. What a broker hears first is everything,
// so that it waits until no state is in doubt. It also
// learns by it that a loss of records which it told of is written down, and that it need not tell of it again.
func (t *term) reachAll() {
	if len(t.look.state) > 0 {
		return
	}
	for _, b := range t.cluster.image.Brokers() {
		if t.queues[b.ID] == nil && !t.lossUnwritten(b.ID) {
			t.reach(b)
		}
	}
}

// lossUnwritten reports whether a broker is a member, by the state of some partition, that may have lost records in
// its last stop, and the state does not show it yet: the store does not answer, or the controller still waits for
// other brokers.
func (t *term) lossUnwritten(id P.BrokerID) bool {
	if complete(t.cluster.stops[id]) {
		return false
	}
	return len(t.partitions(func(p *metadata.Partition) bool {
		return p.LeaderEpoch != P.NoLeaderEpoch && // its znode is damaged: nothing will be written
			(slices.Contains(p.ISR, id) || slices.Contains(p.Eligible, id)) && t.cluster.lostUnwritten(p, id)
	})) > 0
}

// meet takes the registered brokers over into the image.
func (t *term) meet(registered []znode.Registration) metadata.Delta {
	var changes []metadata.Change
	there := map[P.BrokerID]bool{}
	for _, r := range registered {
		there[r.ID] = true
		t.cluster.stops[r.ID] = r.Stopped
		changes = append(changes, metadata.PutBroker{Broker: &r.Broker})
	}
	for _, b := range t.cluster.image.Brokers() {
		if !there[b.ID] {
			delete(t.cluster.stops, b.ID)
			delete(t.cluster.leaving, b.ID)
			changes = append(changes, metadata.DropBroker{ID: b.ID})
		}
	}
	return t.change(changes...)
}
