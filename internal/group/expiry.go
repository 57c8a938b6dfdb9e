package group

import "github.com/barnabas-mq/barnabas/internal/shard"

// startCheck has the retention of offsets checked, if that is not to happen already.
func (m *Machine) startCheck(now shard.Now) {
	if m.check.index == 0 {
		m.timers.start(&m.check, now, m.config().RetentionCheckInterval, (*Machine).expireOffsets)
	}
}

// expireOffsets forgets offsets that nobody has used for the retention time, and empty groups that have none.
// Age is judged by a clock that a step of the wall clock cannot make older.
//
// One decision for all groups, which may be split in batches: each tombstone stands for itself, and what a
// failed append leaves over is found again by the next check.
func (m *Machine) expireOffsets(now shard.Now) shard.Decision {
	decision := shard.Decision{Split: true, Refused: shard.Unharmed}
	for _, id := range m.ids() {
		g := m.groups[id]
		expired := m.expired(g, now)
		for _, tp := range expired {
			decision.Records = append(decision.Records, offsetTombstone(id, tp))
		}
		if len(expired) == g.offsets.count() && len(g.offsets.unstable) == 0 && m.idle(g) {
			decision.Records = append(decision.Records, g.kind().tombstones(id)...)
		}
	}
	if len(decision.Records) > 0 {
		m.logger.Info("offsets expire", "records", len(decision.Records))
	}
	if len(m.groups) > 0 {
		m.startCheck(now)
	}
	return decision
}

// idle reports whether a group is only there for its offsets. Groups of other kinds have more to them.
func (m *Machine) idle(g *group) bool {
	return g.classic != nil && g.classic.state == empty && len(g.classic.pending) == 0
}

// expired lists the offsets of a group whose time is over.
func (m *Machine) expired(g *group, now shard.Now) []topicPartition {
	retention := m.config().OffsetsRetention.Milliseconds()
	var all []topicPartition
	for _, topic := range g.offsets.topics() {
		if g.kind().subscribedTo(topic) {
			continue
		}
		for _, partition := range g.offsets.partitions(topic) {
			tp := topicPartition{Topic: topic, Partition: partition}
			c, _ := g.offsets.get(tp)
			since, expires := g.kind().unusedSince(c)
			old := expires && now.Earliest-since >= retention
			if expires && c.expireTime != noExpiry {
				old = now.Earliest >= c.expireTime
			}
			if old && len(g.offsets.unstable[tp]) == 0 {
				all = append(all, tp)
			}
		}
	}
	return all
}

// count is the number of committed offsets.
func (o *offsets) count() int {
	n := 0
	for _, partitions := range o.byTopic {
		n += len(partitions)
	}
	return n
}
