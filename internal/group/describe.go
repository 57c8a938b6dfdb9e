package group

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// describeTellsUnknownGroup is the first version of DescribeGroups whose clients know GROUP_ID_NOT_FOUND;
// older ones see a group that is Dead.
const describeTellsUnknownGroup = 6

// DescribeGroup is one group for DescribeGroups, which knows classic groups only.
//
// A group that does not exist is Dead without an error up to version 5, as kafka-consumer-groups.sh and
// monitoring tools have relied on since 0.9. Members have metadata only in Stable, assignments whatever they
// were given last.
func (m *Machine) DescribeGroup(id string, version int16) kmsg.DescribeGroupsResponseGroup {
	r := kmsg.NewDescribeGroupsResponseGroup()
	r.Group, r.State = id, deadState
	g := m.groups[id]
	if g == nil || g.classic == nil {
		if version >= describeTellsUnknownGroup {
			r.ErrorCode = int16(protocol.GroupIDNotFound)
			r.ErrorMessage = ptr("Group " + id + " not found.")
			if g != nil {
				r.ErrorMessage = ptr("Group " + id + " is not a classic group.")
			}
		}
		return r
	}
	c := g.classic
	r.State, r.ProtocolType = c.stateName(), c.protocolType
	if c.state == stable {
		r.Protocol = c.protocol
	}
	for _, mb := range c.members {
		entry := kmsg.DescribeGroupsResponseGroupMember{
			MemberID: mb.id, InstanceID: mb.instanceID, ClientID: mb.clientID, ClientHost: mb.clientHost,
			MemberAssignment: mb.assignment,
		}
		if c.state == stable { // otherwise no protocol is agreed on
			entry.ProtocolMetadata = mb.metadata(c.protocol)
		}
		r.Members = append(r.Members, entry)
	}
	return r
}

// ListGroups lists the groups in one of the states and of one of the types, in any case of letters; an empty
// list means all.
func (m *Machine) ListGroups(states, types []string) []kmsg.ListGroupsResponseGroup {
	var all []kmsg.ListGroupsResponseGroup
	for _, id := range m.ids() {
		k := m.groups[id].kind()
		if !oneOf(states, k.stateName()) || !oneOf(types, k.typeName()) {
			continue
		}
		all = append(all, kmsg.ListGroupsResponseGroup{
			Group: id, ProtocolType: k.protocolName(), GroupState: k.stateName(), GroupType: k.typeName(),
		})
	}
	return all
}

func oneOf(filter []string, name string) bool {
	for _, f := range filter {
		if strings.EqualFold(f, name) {
			return true
		}
	}
	return len(filter) == 0
}

// DeleteGroups forgets groups that nobody is in, with their offsets.
func (m *Machine) DeleteGroups(ids []string) ([]kmsg.DeleteGroupsResponseGroup, shard.Decision) {
	var results []kmsg.DeleteGroupsResponseGroup
	decision := shard.Decision{Split: true, Refused: shard.Unharmed}
	for _, id := range ids {
		code := protocol.GroupIDNotFound
		g := m.groups[id]
		if g != nil {
			code = g.kind().checkDelete()
		}
		result := kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: int16(code)}
		if code != protocol.None {
			result.ErrorMessage = ptr(deleteMessage(g, id, code))
		} else {
			for _, tp := range g.offsets.all() {
				decision.Records = append(decision.Records, offsetTombstone(id, tp))
			}
			decision.Records = append(decision.Records, g.kind().tombstones(id)...)
		}
		results = append(results, result)
	}
	return results, decision
}

// deleteMessage says why a group is not deleted.
func deleteMessage(g *group, id string, code protocol.Code) string {
	switch {
	case g == nil:
		return "Group " + id + " not found."
	case g.foreign != nil:
		return "Group " + id + " is a " + g.foreign.kindName + " group, which this broker does not coordinate yet."
	}
	return code.Description()
}
