package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// LeaveGroup takes members out of a group, on their own wish or an admin's. The error of the response is that
// of the group; members have their own.
//
// Several members go in one decision, so that an admin who removes all of them (KIP-345, used by Streams' reset
// tool) causes one rebalance.
func (m *Machine) LeaveGroup(now shard.Now, id string, members []kmsg.LeaveGroupRequestMember) (*kmsg.LeaveGroupResponse, shard.Decision) {
	response := &kmsg.LeaveGroupResponse{}
	g := m.groups[id]
	size, left := 0, false
	if g != nil && g.classic != nil {
		size = len(g.classic.members)
	}
	for _, who := range members {
		code := protocol.UnknownMemberID
		if g != nil && g.classic != nil {
			code = m.leave(g.classic, who)
		}
		left = left || code == protocol.None
		response.Members = append(response.Members, kmsg.LeaveGroupResponseMember{
			MemberID: who.MemberID, InstanceID: who.InstanceID, ErrorCode: int16(code),
		})
	}
	if !left {
		return response, shard.Decision{}
	}
	c := g.classic
	if len(c.members) < size && (c.state == stable || c.state == completingRebalance) {
		return response, m.prepareRebalance(now, c, "members left")
	}
	return response, m.completeIfAllJoined(now, c)
}

// leave takes out one member. Admins name static members by their instance id alone.
func (m *Machine) leave(c *classicGroup, who kmsg.LeaveGroupRequestMember) protocol.Code {
	reason := "not provided"
	if who.Reason != nil {
		reason = *who.Reason
	}
	switch {
	case who.MemberID == "":
		if who.InstanceID == nil || c.byInstance[*who.InstanceID] == nil {
			return protocol.UnknownMemberID
		}
		who.MemberID = c.byInstance[*who.InstanceID].id
	case c.pending[who.MemberID] != nil:
		c.removePending(m, who.MemberID)
		return protocol.None
	default:
		if code := c.check(who.MemberID, who.InstanceID); code != protocol.None {
			return code
		}
	}
	m.logger.Info("member leaves", "group", c.group.id, "member", who.MemberID, "reason", reason)
	m.expel(c, c.byID[who.MemberID])
	return protocol.None
}
