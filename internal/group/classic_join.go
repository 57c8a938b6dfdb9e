package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// A JoinGroup goes one of these ways, in this order of checks:
//
//	no room (group.max.size)           GROUP_MAX_SIZE_REACHED, and a member that asks is one no longer
//	no protocol in common              INCONSISTENT_GROUP_PROTOCOL
//	member id, handed out before       the pending id becomes a member, which waits
//	member id of a member              waits, or gets the present generation again where nothing has changed
//	member id unknown                  UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID: the client begins anew
//	no member id, instance id in use   the static member takes its own place (classic_static.go)
//	no member id, version 4 and up     MEMBER_ID_REQUIRED with a fresh id, no member yet (KIP-394)
//	no member id, older                a member at once, which waits
//
// To wait means that the answer is made when the rebalance ends; the request holds a ticket, not a goroutine of
// the machine.

const (
	// joinNeedsMemberID is the first version of JoinGroup whose clients come back with the id they are
	// given (KIP-394).
	joinNeedsMemberID = 4
	// joinSkipsAssignment is the first version whose leaders can be told not to assign (KIP-814).
	joinSkipsAssignment = 9
)

// joiner is a JoinGroup request with what belongs to it.
type joiner struct {
	client  ClientInfo
	request *kmsg.JoinGroupRequest
	ticket  shard.Ticket
	// newID is the member id to hand out, if one is needed.
	newID string
}

func (j *joiner) sessionTimeout() time.Duration { return millis(j.request.SessionTimeoutMillis) }

// rebalanceTimeout is the session timeout for the clients of version 0, which have no other.
//
// Version 0 decodes to 0, and -1 is how later clients leave it out. Taken literally either ends the rebalance
// at once and evicts everybody who has not joined in that instant, over and over (KAFKA-8653).
func (j *joiner) rebalanceTimeout() time.Duration {
	if j.request.Version == 0 || j.request.RebalanceTimeoutMillis < 0 {
		return j.sessionTimeout()
	}
	return millis(j.request.RebalanceTimeoutMillis)
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

// JoinGroup takes a member into a group, which may be new. The answer, a *kmsg.JoinGroupResponse, goes to
// ticket: at once, or when the rebalance that the member waits for is over. newID is a fresh member id for a
// client that has none. The request's timeouts have been checked.
func (m *Machine) JoinGroup(now shard.Now, client ClientInfo, request *kmsg.JoinGroupRequest, newID string, ticket shard.Ticket) shard.Decision {
	j := &joiner{client, request, ticket, newID}
	g := m.groups[request.Group]
	var converted []shard.Record
	switch {
	case g == nil || g.foreign != nil && g.foreign.convertible():
		if request.MemberID != "" {
			return m.refuseJoin(j, protocol.UnknownMemberID)
		}
		g, converted = m.classicFor(now, request.Group)
	case g.foreign != nil:
		return m.refuseJoin(j, protocol.InconsistentGroupProtocol)
	}
	decision := m.join(now, g.classic, j)
	decision.Records = append(converted, decision.Records...)
	m.dropUnborn(g)
	return decision
}

// join takes a member into a classic group.
func (m *Machine) join(now shard.Now, c *classicGroup, j *joiner) shard.Decision {
	switch known := j.request.MemberID != ""; {
	case !c.hasRoom(j.request, m.config().MaxSize):
		return m.turnAway(now, c, j)
	case !c.accepts(j.request.ProtocolType, j.request.Protocols):
		return m.refuseJoin(j, protocol.InconsistentGroupProtocol)
	case known:
		return m.joinKnown(now, c, j)
	case j.request.InstanceID != nil && c.byInstance[*j.request.InstanceID] != nil:
		return m.replaceStatic(now, c, j, c.byInstance[*j.request.InstanceID])
	case j.request.InstanceID == nil && j.request.Version >= joinNeedsMemberID:
		return m.handOutID(now, c, j)
	}
	return m.addMember(now, c, j, j.newID)
}

// hasRoom reports whether group.max.size lets somebody join. While members join again those count that
// have: if the limit was lowered, the last ones to come are those who are left out. A static member that is
// back takes no room of its own.
func (c *classicGroup) hasRoom(request *kmsg.JoinGroupRequest, maxSize int) bool {
	mb := c.byID[request.MemberID]
	if request.MemberID == "" && request.InstanceID != nil {
		mb = c.byInstance[*request.InstanceID]
	}
	switch c.state {
	case empty:
		return true
	case preparingRebalance:
		return c.joined < maxSize || mb != nil && mb.join.waits()
	}
	return mb != nil || len(c.members) < maxSize
}

// turnAway refuses somebody for whom there is no room; a member is one no longer.
func (m *Machine) turnAway(now shard.Now, c *classicGroup, j *joiner) shard.Decision {
	m.answerJoin(j.ticket, &kmsg.JoinGroupResponse{Generation: noGeneration, ErrorCode: int16(protocol.GroupMaxSizeReached)})
	if mb := c.byID[j.request.MemberID]; mb != nil {
		return m.lose(now, c, mb, "group is full")
	}
	c.removePending(m, j.request.MemberID)
	return m.completeIfAllJoined(now, c)
}

// handOutID answers with a member id to come back with, so that clients that only retry leave no members
// behind (KIP-394).
//
// The id counts as somebody to wait for until it comes back or its session timeout is over: a rebalance that
// ended in between would have to be followed by another one at once.
func (m *Machine) handOutID(now shard.Now, c *classicGroup, j *joiner) shard.Decision {
	p := &pendingMember{}
	if c.pending == nil {
		c.pending = map[string]*pendingMember{}
	}
	c.pending[j.newID] = p
	id := j.newID
	m.timers.start(&p.session, now, j.sessionTimeout(), func(m *Machine, now shard.Now) shard.Decision {
		c.removePending(m, id)
		return m.completeIfAllJoined(now, c)
	})
	m.answerJoin(j.ticket, &kmsg.JoinGroupResponse{
		Generation: noGeneration, ErrorCode: int16(protocol.MemberIDRequired), MemberID: id,
	})
	return shard.Decision{}
}

// joinKnown is a join with a member id.
func (m *Machine) joinKnown(now shard.Now, c *classicGroup, j *joiner) shard.Decision {
	id := j.request.MemberID
	if c.pending[id] != nil {
		if j.request.InstanceID != nil {
			return m.refuseJoin(j, protocol.UnknownMemberID) // ids are handed out to dynamic members only
		}
		return m.addMember(now, c, j, id)
	}
	if code := c.check(id, j.request.InstanceID); code != protocol.None {
		return m.refuseJoin(j, code)
	}
	mb := c.byID[id]
	same := sameProtocols(mb.protocols, protocolsOf(j.request.Protocols))
	switch c.state {
	case completingRebalance:
		if same { // it has not got the answer to its last one
			m.answerJoin(j.ticket, c.joinAnswer(mb))
			return shard.Decision{}
		}
	case stable:
		// A follower that joins with the same metadata has lost an answer. Giving it the present generation
		// spares the whole group a rebalance.
		if same && c.leader != id {
			m.answerJoin(j.ticket, c.joinAnswer(mb))
			return shard.Decision{}
		}
		// A leader that joins again wants a rebalance, for a reason that its metadata does not show.
	case empty:
		return m.refuseJoin(j, protocol.UnknownMemberID)
	}
	m.rejoin(c, mb, j)
	return m.rebalanceOrComplete(now, c, "member joins again")
}

// rejoin renews what is known of a member, and has its request wait.
func (m *Machine) rejoin(c *classicGroup, mb *member, j *joiner) {
	if mb.join.waits() { // the client has given up on that one
		m.answerJoin(mb.join.ticket, refusedJoin(mb.id, protocol.RebalanceInProgress))
	}
	c.strike(mb)
	mb.protocols = protocolsOf(j.request.Protocols)
	mb.sessionTimeout, mb.rebalanceTimeout = j.sessionTimeout(), j.rebalanceTimeout()
	mb.join = waiter{j.ticket}
	c.enlist(mb)
}

// addMember takes in a new member.
func (m *Machine) addMember(now shard.Now, c *classicGroup, j *joiner, id string) shard.Decision {
	c.removePending(m, id)
	mb := &member{
		id: id, instanceID: cloneString(j.request.InstanceID), clientID: j.client.ClientID, clientHost: j.client.Host,
		protocolType: j.request.ProtocolType, protocols: protocolsOf(j.request.Protocols),
		sessionTimeout: j.sessionTimeout(), rebalanceTimeout: j.rebalanceTimeout(),
		join: waiter{j.ticket}, fresh: true, nameless: j.request.MemberID == "",
	}
	c.joinedMeanwhile = c.joinedMeanwhile || c.initial
	c.add(mb)
	// Nobody can send a heartbeat before it knows its member id, so that the session timeout says nothing
	// yet. Clients that have gone must not pile up all the same.
	m.keepAlive(now, c, mb, m.config().NewMemberJoinTimeout)
	return m.rebalanceOrComplete(now, c, "new member")
}

// joinAnswer is the answer to a member that joins the present generation; the leader gets all members.
func (c *classicGroup) joinAnswer(mb *member) *kmsg.JoinGroupResponse {
	r := &kmsg.JoinGroupResponse{
		Generation: c.generation, ProtocolType: ptr(c.protocolType), Protocol: ptr(c.protocol),
		LeaderID: c.leader, MemberID: mb.id,
	}
	if c.leader == mb.id && c.state != preparingRebalance {
		r.Members = c.membersForLeader()
	}
	return r
}

// membersForLeader is what the leader assigns by.
func (c *classicGroup) membersForLeader() []kmsg.JoinGroupResponseMember {
	all := make([]kmsg.JoinGroupResponseMember, len(c.members))
	for i, mb := range c.members {
		all[i] = kmsg.JoinGroupResponseMember{MemberID: mb.id, InstanceID: mb.instanceID, ProtocolMetadata: mb.metadata(c.protocol)}
	}
	return all
}

func ptr(text string) *string { return &text }

// cloneString copies what a request points to, for the request may be used again.
func cloneString(text *string) *string {
	if text == nil {
		return nil
	}
	return ptr(*text)
}

// refuseJoin answers a join with an error. Members keep their id, unless they are to start anew.
func (m *Machine) refuseJoin(j *joiner, code protocol.Code) shard.Decision {
	m.answerJoin(j.ticket, refusedJoin(j.request.MemberID, code))
	return shard.Decision{}
}

func refusedJoin(memberID string, code protocol.Code) *kmsg.JoinGroupResponse {
	return &kmsg.JoinGroupResponse{Generation: noGeneration, MemberID: memberID, ErrorCode: int16(code)}
}

func (m *Machine) answerJoin(to shard.Ticket, r *kmsg.JoinGroupResponse) {
	m.answers = append(m.answers, shard.Answer{To: to, Value: r})
}

// JoinGone is told when the connection of a waiting JoinGroup is gone. A client that does not know its member
// id will come back as somebody else, so that member is removed; others may come back for the answer.
//
// Clients before version 4 that lose the connection while they wait retry without an id, every few seconds, and
// each try would leave another member behind that the rebalance then waits for (KAFKA-7610).
func (m *Machine) JoinGone(now shard.Now, id string, ticket shard.Ticket) shard.Decision {
	g := m.groups[id]
	if g == nil || g.classic == nil {
		return shard.Decision{}
	}
	for _, mb := range g.classic.members {
		if mb.join.ticket == ticket && mb.nameless && mb.instanceID == nil {
			return m.lose(now, g.classic, mb, "client disconnected before it knew its member id")
		}
	}
	return shard.Decision{}
}
