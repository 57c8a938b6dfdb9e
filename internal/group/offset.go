package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// committed is a committed offset.
type committed struct {
	// offset is where to go on reading.
	offset int64
	// leaderEpoch is the epoch of the record before that, or noLeaderEpoch.
	leaderEpoch int32
	// metadata is whatever the client wants to keep with it.
	metadata string
	// commitTime is when it was committed, in ms.
	commitTime int64
	// expireTime is when it expires, in ms, where the client said so; noExpiry is the rule.
	expireTime int64
	// topicID tells topics of the same name apart; zero where it is not known.
	topicID [16]byte
	// at is where the record is in the log: of a plain and a transactional commit the later one counts,
	// whichever came true first.
	at protocol.Offset
}

// groupPartition is a partition as one group sees it.
type groupPartition struct {
	group string
	topicPartition
}

// offsets are the committed offsets of one group. The zero value has none.
//
// A transactional commit is in two places until its marker comes: the offset itself in Machine.transactions
// under its producer, and here, in unstable, only that there is one. unstable holds back OffsetFetch with
// require_stable (KIP-447), the expiry of the partition, and the group's end.
type offsets struct {
	// byTopic holds no empty maps.
	byTopic map[string]map[int32]committed
	// unstable are the partitions for which open transactions have committed offsets, with their
	// producers; it holds no empty maps.
	unstable map[topicPartition]map[protocol.ProducerID]struct{}
}

// empty reports whether there is nothing to keep the group for.
func (o *offsets) empty() bool { return len(o.byTopic) == 0 && len(o.unstable) == 0 }

// get finds an offset.
func (o *offsets) get(tp topicPartition) (committed, bool) {
	c, ok := o.byTopic[tp.Topic][tp.Partition]
	return c, ok
}

func (o *offsets) put(tp topicPartition, c committed) {
	if o.byTopic == nil {
		o.byTopic = map[string]map[int32]committed{}
	}
	if o.byTopic[tp.Topic] == nil {
		o.byTopic[tp.Topic] = map[int32]committed{}
	}
	o.byTopic[tp.Topic][tp.Partition] = c
}

func (o *offsets) remove(tp topicPartition) {
	if delete(o.byTopic[tp.Topic], tp.Partition); len(o.byTopic[tp.Topic]) == 0 {
		delete(o.byTopic, tp.Topic)
	}
}

// open notes that a transaction has committed an offset.
func (o *offsets) open(tp topicPartition, producer protocol.ProducerID) {
	if o.unstable == nil {
		o.unstable = map[topicPartition]map[protocol.ProducerID]struct{}{}
	}
	if o.unstable[tp] == nil {
		o.unstable[tp] = map[protocol.ProducerID]struct{}{}
	}
	o.unstable[tp][producer] = struct{}{}
}

// close notes that the transaction is over.
func (o *offsets) close(tp topicPartition, producer protocol.ProducerID) {
	if delete(o.unstable[tp], producer); len(o.unstable[tp]) == 0 {
		delete(o.unstable, tp)
	}
}

// topics are the names of the topics that have offsets, sorted.
func (o *offsets) topics() []string { return slices.Sorted(maps.Keys(o.byTopic)) }

// partitions are the partitions of a topic that have offsets, sorted.
func (o *offsets) partitions(topic string) []int32 { return slices.Sorted(maps.Keys(o.byTopic[topic])) }

// all are the partitions that have offsets, committed or in open transactions, sorted.
func (o *offsets) all() []topicPartition {
	var all []topicPartition
	for _, topic := range o.topics() {
		for _, partition := range o.partitions(topic) {
			all = append(all, topicPartition{Topic: topic, Partition: partition})
		}
	}
	for tp := range o.unstable {
		if _, ok := o.get(tp); !ok {
			all = append(all, tp)
		}
	}
	slices.SortFunc(all, func(a, b topicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}

// replayOffset applies the record of an offset. A group that has no record of its own is a simple one.
func (m *Machine) replayOffset(r shard.Replayed) error {
	id, tp, err := offsetKeyOf(r.Key)
	if err != nil {
		return err
	}
	g := m.groups[id]
	if r.Value == nil {
		if g != nil {
			m.forgetOffset(g, tp)
		}
		return nil
	}
	c, err := committedOf(r.Value, r.Offset)
	if err != nil {
		return err
	}
	if g == nil {
		g = m.newGroup(id)
		g.classic = newClassic(g, noStateTime)
	}
	if r.ProducerID == protocol.NoProducerID {
		g.offsets.put(tp, c)
		return nil
	}
	if m.transactions[r.ProducerID] == nil {
		m.transactions[r.ProducerID] = map[groupPartition]committed{}
	}
	m.transactions[r.ProducerID][groupPartition{id, tp}] = c
	g.offsets.open(tp, r.ProducerID)
	return nil
}

// forgetOffset applies a tombstone, which also takes what open transactions have committed.
func (m *Machine) forgetOffset(g *group, tp topicPartition) {
	g.offsets.remove(tp)
	for producer := range g.offsets.unstable[tp] {
		delete(m.transactions[producer], groupPartition{g.id, tp})
	}
	delete(g.offsets.unstable, tp)
	m.kindGone(g)
}

// EndTransaction makes the offsets of a transaction count, or forgets them. An offset that was committed
// after the transaction's stays.
//
// The rule of the later record is what a compacted log says too: there the record at the higher offset is the
// one that is left, and a coordinator that loads the log must come to the same end.
func (m *Machine) EndTransaction(producer protocol.ProducerID, commit bool) {
	pending := m.transactions[producer]
	delete(m.transactions, producer)
	for at, c := range pending {
		g := m.groups[at.group]
		if g == nil {
			continue
		}
		g.offsets.close(at.topicPartition, producer)
		if was, ok := g.offsets.get(at.topicPartition); commit && (!ok || c.at > was.at) {
			g.offsets.put(at.topicPartition, c)
		}
	}
}
