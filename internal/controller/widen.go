package controller

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// widenAfter is how long after a broker has joined the internal topics get replicas on it: brokers that start
// together are seen together.
const widenAfter = 5 * time.Second

// widenInternal begins the reassignments that give the brokers' own topics as many replicas as are configured,
// or as there are brokers: a cluster that was begun with one broker had room for one.
func (t *term) widenInternal() error {
	if t.cluster.settling || t.looking() {
		t.widening = time.After(widenAfter)
		return nil
	}
	moves := widened(&t.cluster, t.controller.options.Config(), func(tp P.TopicPartition) bool {
		return t.moving[tp] || t.ending[tp] != nil || t.deletions[tp.Topic] != nil
	})
	if len(moves) == 0 {
		return nil
	}
	t.controller.options.Logger.Info("controller: internal topics get more replicas", "partitions", len(moves))
	results, err := t.reassign(moves, false)
	for _, r := range results {
		if r.Err != nil {
			t.controller.options.Logger.Warn("controller: a partition gets no more replicas", "partition", r.String(), "error", r.Err)
		}
	}
	return err
}

// widened lists the partitions of internal topics that have fewer replicas than they could have, with what
// they shall have. Their leaders stay for the moment; which replica is preferred is spread anew, so that they
// do not all stay where the first broker was.
func widened(c *cluster, settings *config.Broker, busy func(P.TopicPartition) bool) []Reassignment {
	l := c.loads.clone()
	var moves []Reassignment
	for _, of := range []struct{ topic, factor string }{
		{P.GroupMetadataTopic, "offsets.topic.replication.factor"},
		{P.TransactionStateTopic, "transaction.state.log.replication.factor"},
		{P.ShareGroupStateTopic, "share.coordinator.state.topic.replication.factor"},
	} {
		topic := c.image.Topic(of.topic)
		if topic == nil {
			continue
		}
		preferred := map[P.BrokerID]int{}
		for i, p := range topic.Partitions {
			tp := P.TopicPartition{Topic: of.topic, Partition: int32(i)}
			if !p.Known() || busy(tp) || p.Leader == P.NoBroker {
				continue
			}
			if replicas := widen(c.image, l, p.Replicas, int(settings.Int(of.factor))); len(replicas) > len(p.Replicas) {
				first := slices.MinFunc(replicas, func(a, b P.BrokerID) int { return preferred[a] - preferred[b] })
				replicas = append([]P.BrokerID{first}, without(replicas, []P.BrokerID{first})...)
				preferred[first]++
				moves = append(moves, Reassignment{tp, replicas})
			}
		}
	}
	return moves
}

// widen adds replicas to an assignment until it has factor of them, or one on each living broker that may
// have more: on racks that have none first, then where there are fewest. What it adds counts in l.
func widen(image *metadata.Image, l loads, replicas []P.BrokerID, factor int) []P.BrokerID {
	used := map[string]int{}
	rack := func(id P.BrokerID) string {
		if b := image.Broker(id); b != nil && b.Rack != nil {
			return *b.Rack
		}
		return ""
	}
	has := map[P.BrokerID]bool{}
	for _, id := range replicas {
		used[rack(id)]++
		has[id] = true
	}
	wider := replicas[:len(replicas):len(replicas)]
	for len(wider) < factor {
		best, least := P.NoBroker, math.MaxInt
		for _, b := range l.open(image) {
			better := cmp.Or(cmp.Compare(used[rack(b.ID)], used[rack(best)]), cmp.Compare(l.replicas[b.ID], least))
			if !has[b.ID] && (best == P.NoBroker || better < 0) {
				best, least = b.ID, l.replicas[b.ID]
			}
		}
		if best == P.NoBroker {
			break
		}
		wider = append(wider, best)
		has[best] = true
		used[rack(best)]++
		l.replicas[best]++
	}
	return wider
}
