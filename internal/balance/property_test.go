package balance

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// drawn is a cluster of any shape.
func drawn(t *rapid.T) ([]Broker, []Partition) {
	var brokers []Broker
	racks := rapid.IntRange(1, 4).Draw(t, "racks")
	for id := range rapid.IntRange(2, 8).Draw(t, "brokers") {
		b := Broker{ID: P.BrokerID(id), Rack: fmt.Sprint(id % racks)}
		b.Closed = rapid.IntRange(0, 9).Draw(t, "closed") == 0
		brokers = append(brokers, b)
	}
	var partitions []Partition
	for topic := range rapid.IntRange(1, 5).Draw(t, "topics") {
		factor := rapid.IntRange(1, min(len(brokers), 4)).Draw(t, "factor")
		for number := range rapid.IntRange(1, 12).Draw(t, "partitions") {
			// Some of the brokers are not there.
			all := rapid.Permutation(upTo(len(brokers)+1)).Draw(t, "replicas")
			p := Partition{TopicPartition: P.TopicPartition{Topic: fmt.Sprint("t", topic), Partition: int32(number)}, Replicas: all[:factor]}
			p.InSync = p.Replicas[:rapid.IntRange(1, factor).Draw(t, "in sync")]
			p.Bytes = rapid.Int64Range(0, 9).Draw(t, "bytes")
			partitions = append(partitions, p)
		}
	}
	return brokers, partitions
}

func upTo(n int) []P.BrokerID {
	var ids []P.BrokerID
	for i := range n {
		ids = append(ids, P.BrokerID(i))
	}
	return ids
}

// Whatever the cluster looks like, spreading it keeps every promise of the package.
func TestSpreadKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers, partitions := drawn(t)
		c := New(brokers, partitions)
		c.Spread()
		for _, m := range c.Moves() {
			checkMove(t, c, m)
		}
		checkEven(t, c)
		carryOut(partitions, c.Moves())
		again := New(brokers, partitions)
		if again.Spread(); len(again.Moves()) > 0 {
			t.Fatalf("planned again, it moves %v", again.Moves())
		}
	})
}

func checkMove(t *rapid.T, c *Cluster, m Move) {
	sorted := slices.Clone(m.To)
	slices.Sort(sorted)
	if len(m.To) != len(m.From) || len(slices.Compact(sorted)) != len(m.From) {
		t.Fatalf("%s: %v becomes %v", m.TopicPartition, m.From, m.To)
	}
	if len(c.racks(m.To)) < len(c.racks(m.From)) {
		t.Fatalf("%s: %v becomes %v, on fewer racks", m.TopicPartition, m.From, m.To)
	}
	for _, id := range m.Adding() {
		if b, ok := c.known[id]; !ok || b.Closed {
			t.Fatalf("%s goes to broker %d, which takes none", m.TopicPartition, id)
		}
	}
	for _, id := range m.Removing() {
		if !c.alive(id) {
			t.Fatalf("%s is taken from broker %d, which may come back", m.TopicPartition, id)
		}
	}
}

// checkEven looks that no single move would even anything.
func checkEven(t *rapid.T, c *Cluster) {
	for _, from := range c.brokers {
		for _, to := range c.brokers {
			if to.Closed || c.holds[from.ID]-c.holds[to.ID] < 2 {
				continue
			}
			if p := c.candidate(pair{from.ID, to.ID}); p != nil {
				t.Fatalf("%d has %d replicas and %d has %d, and %s could move", from.ID, c.holds[from.ID], to.ID, c.holds[to.ID], p.TopicPartition)
			}
		}
		for _, p := range c.partitions {
			if p.now[0] != from.ID {
				continue
			}
			for _, to := range p.now[1:] {
				if c.alive(to) && c.leads[from.ID]-c.leads[to] > 1 {
					t.Fatalf("%d is preferred %d times and %d %d times, and %s could change", from.ID, c.leads[from.ID], to, c.leads[to], p.TopicPartition)
				}
			}
		}
	}
}

func carryOut(partitions []Partition, moves []Move) {
	for _, m := range moves {
		i := slices.IndexFunc(partitions, func(p Partition) bool { return p.TopicPartition == m.TopicPartition })
		partitions[i].Replicas, partitions[i].InSync = m.To, m.To
	}
}
