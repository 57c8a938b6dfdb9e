package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// replaceStatic lets a static member that has restarted take its own place again, under a new member id
// (KIP-345). What still runs under the old id is fenced. In a stable group nothing else happens if the
// protocol stays: the member gets its old assignment back. That it has another id now goes to the log, or a
// coordinator that takes over would not know it.
//
// Before KAFKA-10284 the new id lived in memory only, and after a takeover of the coordinator the running
// process was the one to be fenced.
func (m *Machine) replaceStatic(now shard.Now, c *classicGroup, j *joiner, old *member) shard.Decision {
	oldLeader := c.leader
	mb := m.takeOver(now, c, old, j.newID)
	m.rejoin(c, mb, j)
	mb.nameless = true
	switch {
	case c.state == completingRebalance:
		// The leader may be assigning to the old id just now.
		return m.prepareRebalance(now, c, "static member replaced while assignments are awaited")
	case c.state == stable && c.vote() == c.protocol:
		return shard.Decision{
			Records: []shard.Record{c.record(nil)},
			Applied: func() {
				c.persisted = true
				m.settleJoin(c, mb, c.replacedAnswer(mb, oldLeader, j.request.Version))
			},
			Refused: func(err error) shard.Decision { return m.undoReplace(now, c, mb, old, err) },
		}
	}
	return m.rebalanceOrComplete(now, c, "static member joins again")
}

// takeOver puts a member in the place of another, with another id.
func (m *Machine) takeOver(now shard.Now, c *classicGroup, old *member, id string) *member {
	m.settleJoin(c, old, refusedJoin(old.id, protocol.FencedInstanceID))
	m.settleSync(old, &kmsg.SyncGroupResponse{ErrorCode: int16(protocol.FencedInstanceID)})
	m.timers.stop(&old.session)
	mb := *old
	mb.id, mb.session, mb.fresh = id, timer{}, false
	c.strike(old)
	c.members[slices.Index(c.members, old)] = &mb
	c.enlist(&mb)
	if c.leader == old.id {
		c.leader = id
	}
	if c.awaitingSync[old.id] {
		delete(c.awaitingSync, old.id)
		c.awaitingSync[id] = true
	}
	m.keepAlive(now, c, &mb, mb.sessionTimeout)
	return &mb
}

// undoReplace puts the old member back, whose successor could not be written down.
//
// The old process may still be the living one: its id must be good again, or both would be out.
func (m *Machine) undoReplace(now shard.Now, c *classicGroup, mb, old *member, err error) shard.Decision {
	m.settleJoin(c, mb, refusedJoin("", coordinatorCode(err)))
	back := m.takeOver(now, c, mb, old.id)
	c.strike(back)
	back.protocols, back.sessionTimeout, back.rebalanceTimeout = old.protocols, old.sessionTimeout, old.rebalanceTimeout
	back.nameless = old.nameless
	c.enlist(back)
	return shard.Decision{}
}

// replacedAnswer is the answer to a static member that is back in a stable group. A leader must not assign
// again: newer clients are told so, older ones are told that the old id leads, so that they do not feel
// meant.
func (c *classicGroup) replacedAnswer(mb *member, oldLeader string, version int16) *kmsg.JoinGroupResponse {
	r := c.joinAnswer(mb)
	if version >= joinSkipsAssignment {
		r.SkipAssignment = c.leader == mb.id
		return r
	}
	r.LeaderID, r.Members = oldLeader, nil
	return r
}
