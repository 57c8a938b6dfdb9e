package group

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// SyncGroup asks for a member's assignment; the leader's request brings everybody's. The answer, a
// *kmsg.SyncGroupResponse, goes to ticket: at once, or when the leader has assigned.
func (m *Machine) SyncGroup(now shard.Now, request *kmsg.SyncGroupRequest, ticket shard.Ticket) shard.Decision {
	g := m.groups[request.Group]
	if g == nil || g.classic == nil || g.classic.state == empty {
		return m.refuseSync(ticket, protocol.UnknownMemberID)
	}
	c := g.classic
	if code := c.checkSync(request); code != protocol.None {
		return m.refuseSync(ticket, code)
	}
	mb := c.byID[request.MemberID]
	if c.state == preparingRebalance {
		return m.refuseSync(ticket, protocol.RebalanceInProgress)
	}
	delete(c.awaitingSync, mb.id)
	if len(c.awaitingSync) == 0 {
		m.timers.stop(&c.syncTimer)
	}
	if c.state == stable {
		m.answerSync(ticket, c.assigned(mb))
		return shard.Decision{}
	}
	m.settleSync(mb, &kmsg.SyncGroupResponse{ErrorCode: int16(protocol.RebalanceInProgress)})
	mb.sync = waiter{ticket}
	if c.leader != mb.id {
		return shard.Decision{}
	}
	return m.assign(now, c, request.GroupAssignment)
}

// checkSync says why a SyncGroup is refused.
func (c *classicGroup) checkSync(request *kmsg.SyncGroupRequest) protocol.Code {
	if code := c.check(request.MemberID, request.InstanceID); code != protocol.None {
		return code
	}
	if request.Generation != c.generation {
		return protocol.IllegalGeneration
	}
	if differs(request.ProtocolType, c.protocolType) || differs(request.Protocol, c.protocol) {
		return protocol.InconsistentGroupProtocol
	}
	return protocol.None
}

// differs reports whether a member says something else than the group does; either may say nothing.
func differs(says *string, is string) bool { return says != nil && is != "" && *says != is }

// assign writes down what the leader has assigned, and hands it out once that is in the log. Whom the leader
// forgot gets an empty assignment.
//
// Nobody sees an assignment that a takeover could lose: it is in the members only after the append, and the
// answers leave only when the watermark has passed it (package shard). Assignments for ids that are no members
// are dropped by that.
func (m *Machine) assign(now shard.Now, c *classicGroup, given []kmsg.SyncGroupRequestGroupAssignment) shard.Decision {
	assignments := make(map[string][]byte, len(given))
	for _, a := range given {
		assignments[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	for _, mb := range c.members {
		if len(assignments[mb.id]) == 0 && c.protocolType == consumerProtocol {
			assignments[mb.id] = nothingAssigned()
		}
	}
	return shard.Decision{
		Records: []shard.Record{c.record(assignments)},
		Applied: func() {
			c.persisted = true
			for _, mb := range c.members {
				mb.assignment = assignments[mb.id]
			}
			c.enter(now, stable)
			for _, mb := range c.members {
				if m.settleSync(mb, c.assigned(mb)) {
					m.keepAlive(now, c, mb, mb.sessionTimeout)
				}
			}
		},
		Refused: func(err error) shard.Decision {
			m.logger.Warn("assignment not written", "group", c.group.id, "generation", c.generation, "error", err)
			m.refuseSyncs(now, c, coordinatorCode(err))
			return m.prepareRebalance(now, c, "assignment could not be written")
		},
	}
}

// nothingAssigned is an assignment of no partitions, which not all consumers see in no bytes at all:
//
//	version int16 0 | topics: count int32 0 | user data length int32 -1
func nothingAssigned() []byte { return []byte{0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff} }

// assigned is the answer that a member of a stable group gets.
func (c *classicGroup) assigned(mb *member) *kmsg.SyncGroupResponse {
	return &kmsg.SyncGroupResponse{ProtocolType: ptr(c.protocolType), Protocol: ptr(c.protocol), MemberAssignment: mb.assignment}
}

// refuseSyncs takes all assignments back, and tells those who wait for theirs.
func (m *Machine) refuseSyncs(now shard.Now, c *classicGroup, code protocol.Code) {
	for _, mb := range c.members {
		mb.assignment = nil
		if m.settleSync(mb, &kmsg.SyncGroupResponse{ErrorCode: int16(code)}) {
			m.keepAlive(now, c, mb, mb.sessionTimeout)
		}
	}
}

func (m *Machine) refuseSync(to shard.Ticket, code protocol.Code) shard.Decision {
	m.answerSync(to, &kmsg.SyncGroupResponse{ErrorCode: int16(code)})
	return shard.Decision{}
}

func (m *Machine) answerSync(to shard.Ticket, r *kmsg.SyncGroupResponse) {
	m.answers = append(m.answers, shard.Answer{To: to, Value: r})
}
