package group

import (
	"context"
	"iter"

	"github.com/barnabas-mq/barnabas/internal/shard"
)

// Progress is how far a group is, for metrics of lag.
//
// It is a copy: whoever has it may keep it, and sees nothing of what happens afterwards.
type Progress struct {
	Group string
	// State and Kind are as ListGroups has them.
	State, Kind string
	// Members is how many there are.
	Members int
	Offsets []CommittedOffset
}

// CommittedOffset is one offset of a group.
type CommittedOffset struct {
	Topic     string
	Partition int32
	// Offset is where the group goes on reading.
	Offset int64
	// CommitTime is when it said so, in ms since 1970.
	CommitTime int64
}

// Progress tells how far each group is that this broker coordinates, as far as it is loaded. What it tells
// may not be committed yet. Groups and their offsets are in order within each partition of
// __consumer_offsets, which is locked for no longer than it takes to copy them.
func (c *Coordinator) Progress(ctx context.Context) iter.Seq[Progress] {
	return func(yield func(Progress) bool) {
		for _, partition := range c.runtime.Led() {
			var all []Progress
			// An error means that the partition is not loaded, or no longer led: then there is nothing.
			_ = c.runtime.Peek(ctx, partition, func(m *Machine, _ shard.Now) { all = m.progress() })
			for _, p := range all {
				if !yield(p) {
					return
				}
			}
		}
	}
}

func (m *Machine) progress() []Progress {
	all := make([]Progress, 0, len(m.groups))
	for _, id := range m.ids() {
		g := m.groups[id]
		p := Progress{Group: id, State: g.kind().stateName(), Kind: g.kind().typeName()}
		if g.classic != nil {
			p.Members = len(g.classic.members)
		}
		for _, topic := range g.offsets.topics() {
			for _, partition := range g.offsets.partitions(topic) {
				c, _ := g.offsets.get(topicPartition{Topic: topic, Partition: partition})
				p.Offsets = append(p.Offsets, CommittedOffset{Topic: topic, Partition: partition, Offset: c.offset, CommitTime: c.commitTime})
			}
		}
		all = append(all, p)
	}
	return all
}
