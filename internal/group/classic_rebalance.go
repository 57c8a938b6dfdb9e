package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// A rebalance in three phases. Members' requests are what drives it; the coordinator can only refuse and wait:
//
//	prepare    members learn of it from their next Heartbeat (REBALANCE_IN_PROGRESS) and send JoinGroup, which waits
//	complete   generation + 1, a protocol is voted for; every JoinGroup is answered, the leader's with all members
//	assign     members send SyncGroup, which waits for the leader's; its assignments are written, then handed out
//
// Its end is bounded by the longest rebalance timeout in the first phase (joinTimer) and again in the last one
// (syncTimer).

// rebalanceOrComplete starts a rebalance, or ends the one that is on if that was all it waited for.
func (m *Machine) rebalanceOrComplete(now shard.Now, c *classicGroup, reason string) shard.Decision {
	if c.state != preparingRebalance {
		return m.prepareRebalance(now, c, reason)
	}
	return m.completeIfAllJoined(now, c)
}

// completeIfAllJoined ends a rebalance that need not wait any longer. The first one of an empty group always
// waits out its delay.
func (m *Machine) completeIfAllJoined(now shard.Now, c *classicGroup) shard.Decision {
	if c.state != preparingRebalance || c.initial || !c.allJoined() {
		return shard.Decision{}
	}
	return m.completeJoin(now, c)
}

// prepareRebalance makes everybody join again. It ends when all members have, or with the longest of their
// rebalance timeouts; the first one of a group that was empty ends with its delay, since nobody can know who
// is still to come.
func (m *Machine) prepareRebalance(now shard.Now, c *classicGroup, reason string) shard.Decision {
	if c.state == completingRebalance {
		m.refuseSyncs(now, c, protocol.RebalanceInProgress)
	}
	c.awaitingSync = nil
	m.timers.stop(&c.syncTimer)
	wasEmpty := c.state == empty
	c.enter(now, preparingRebalance)
	m.logger.Info("group rebalances", "group", c.group.id, "generation", c.generation, "reason", reason)
	if wasEmpty {
		c.initial, c.joinedMeanwhile = true, false
		delay := m.config().InitialRebalanceDelay
		m.delayInitial(now, c, delay, max(c.rebalanceTimeout()-delay, 0))
		return shard.Decision{}
	}
	if c.allJoined() {
		return m.completeJoin(now, c)
	}
	m.timers.start(&c.joinTimer, now, c.rebalanceTimeout(), c.joinTimeout)
	return shard.Decision{}
}

// joinTimeout is what happens to a rebalance whose time is up.
func (c *classicGroup) joinTimeout(m *Machine, now shard.Now) shard.Decision {
	return m.completeJoin(now, c)
}

// delayInitial waits for more members of a group that has just begun: as long as some come, but not longer
// than their rebalance timeout.
//
//	|-- delay --|-- delay --|- rest -|      each piece is begun only if somebody came in the one before
//	|------ rebalance timeout -------|      of those who are members when the rebalance begins
//
// A deployment that starts fifty consumers within a few seconds then rebalances once instead of fifty times
// (KIP-134). joinedMeanwhile is what decides; a join does not touch the timer.
func (m *Machine) delayInitial(now shard.Now, c *classicGroup, delay, remaining time.Duration) {
	m.timers.start(&c.joinTimer, now, delay, func(m *Machine, now shard.Now) shard.Decision {
		if !c.joinedMeanwhile || remaining == 0 {
			return m.completeJoin(now, c)
		}
		c.joinedMeanwhile = false
		m.delayInitial(now, c, min(m.config().InitialRebalanceDelay, remaining), max(remaining-delay, 0))
		return shard.Decision{}
	})
}

// completeJoin begins the next generation with those who have joined. Static members that have not are kept
// until their session is over, for they may be restarting.
func (m *Machine) completeJoin(now shard.Now, c *classicGroup) shard.Decision {
	m.timers.stop(&c.joinTimer)
	for _, mb := range slices.Clone(c.members) {
		if !mb.join.waits() && mb.instanceID == nil {
			m.logger.Info("member did not join in time", "group", c.group.id, "member", mb.id)
			c.remove(m, mb)
		}
	}
	// A leader must have joined: only a waiting JoinGroup can be told whom to assign to.
	if !c.electLeader() && len(c.members) > 0 {
		// Only static members are left, and none of them has joined. Their sessions will end this.
		m.timers.start(&c.joinTimer, now, c.rebalanceTimeout(), c.joinTimeout)
		return shard.Decision{}
	}
	c.generation++
	c.initial = false
	c.awaitingSync = nil
	if len(c.members) == 0 {
		return m.becomeEmpty(now, c)
	}
	c.protocol = c.vote()
	c.learnTopics()
	c.enter(now, completingRebalance)
	c.awaitingSync = make(map[string]bool, len(c.members))
	for _, mb := range c.members {
		m.settleJoin(c, mb, c.joinAnswer(mb))
		mb.fresh, mb.nameless = false, false
		c.awaitingSync[mb.id] = true
		m.keepAlive(now, c, mb, mb.sessionTimeout)
	}
	m.timers.start(&c.syncTimer, now, c.rebalanceTimeout(), c.syncTimeout)
	return shard.Decision{}
}

// electLeader makes sure that a member leads who has joined; false where nobody has.
func (c *classicGroup) electLeader() bool {
	if leader := c.byID[c.leader]; leader != nil && leader.join.waits() {
		return true
	}
	for _, mb := range c.members {
		if mb.join.waits() {
			c.leader = mb.id
			return true
		}
	}
	return false
}

// becomeEmpty is the generation that nobody is in. If it cannot be written, nothing is lost: a coordinator
// that takes over has the members of the last generation time out.
//
// The generation is written although nobody is in it: with it go the state time, from which the offsets'
// retention counts, and the number that the next generation must exceed.
func (m *Machine) becomeEmpty(now shard.Now, c *classicGroup) shard.Decision {
	c.protocol = ""
	c.learnTopics()
	c.enter(now, empty)
	m.logger.Info("group is empty", "group", c.group.id, "generation", c.generation)
	return shard.Decision{
		Records: []shard.Record{c.record(nil)},
		Applied: func() { c.persisted = true },
		Refused: func(err error) shard.Decision {
			m.logger.Warn("empty generation not written", "group", c.group.id, "error", err)
			return shard.Decision{}
		},
	}
}

// syncTimeout removes the members that joined, but never asked for their assignment.
func (c *classicGroup) syncTimeout(m *Machine, now shard.Now) shard.Decision {
	if c.state != completingRebalance && c.state != stable {
		invariant.Fail("group %s: sync timeout in state %s", c.group.id, c.state)
	}
	if len(c.awaitingSync) == 0 {
		return shard.Decision{}
	}
	for _, mb := range slices.Clone(c.members) {
		if c.awaitingSync[mb.id] {
			m.logger.Info("member did not ask for its assignment in time", "group", c.group.id, "member", mb.id)
			c.remove(m, mb)
		}
	}
	return m.prepareRebalance(now, c, "members did not ask for their assignment")
}

// lose takes out a member, and does what follows for the others.
//
// The rebalance may have been waiting for just this member, so that its end is looked at again; a coordinator
// that forgets this hangs until the rebalance timeout.
func (m *Machine) lose(now shard.Now, c *classicGroup, mb *member, reason string) shard.Decision {
	m.expel(c, mb)
	switch c.state {
	case stable, completingRebalance:
		return m.prepareRebalance(now, c, reason)
	case preparingRebalance:
		// Unlike other ends of waiting, this one holds for the first rebalance too, if nobody is left.
		if len(c.members) == 0 && len(c.pending) == 0 {
			return m.completeJoin(now, c)
		}
		return m.completeIfAllJoined(now, c)
	}
	return shard.Decision{}
}

// expel takes out a member. If it waits it is told, so that it starts anew.
func (m *Machine) expel(c *classicGroup, mb *member) {
	m.settleJoin(c, mb, refusedJoin("", protocol.UnknownMemberID))
	m.settleSync(mb, &kmsg.SyncGroupResponse{ErrorCode: int16(protocol.UnknownMemberID)})
	c.remove(m, mb)
}

// keepAlive starts a member's session anew.
func (m *Machine) keepAlive(now shard.Now, c *classicGroup, mb *member, timeout time.Duration) {
	m.timers.start(&mb.session, now, timeout, func(m *Machine, now shard.Now) shard.Decision {
		if mb.alive() {
			return shard.Decision{} // its next session starts when it gets its answer
		}
		m.logger.Info("member's session timed out", "group", c.group.id, "member", mb.id)
		return m.lose(now, c, mb, "session timed out")
	})
}

// settleJoin answers a member's waiting JoinGroup, if there is one.
func (m *Machine) settleJoin(c *classicGroup, mb *member, r *kmsg.JoinGroupResponse) {
	if mb.join.waits() {
		m.answerJoin(mb.join.ticket, r)
		mb.join = waiter{}
		c.joined--
	}
}

// settleSync answers a member's waiting SyncGroup, and reports whether there was one.
func (m *Machine) settleSync(mb *member, r *kmsg.SyncGroupResponse) bool {
	if !mb.sync.waits() {
		return false
	}
	m.answerSync(mb.sync.ticket, r)
	mb.sync = waiter{}
	return true
}
