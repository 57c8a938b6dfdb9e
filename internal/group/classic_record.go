package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/shard"
)

// record is the group as it goes into the log, with the members' assignments or with those given. A member
// that is missing among them has none.
func (c *classicGroup) record(assignments map[string][]byte) shard.Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp = groupValueVersion, c.protocolType, c.generation, c.stateTime
	if c.protocol != "" {
		v.Protocol = &c.protocol
	}
	if c.leader != "" {
		v.Leader = &c.leader
	}
	for _, mb := range c.members {
		entry := kmsg.GroupMetadataValueMember{
			MemberID: mb.id, InstanceID: mb.instanceID, ClientID: mb.clientID, ClientHost: mb.clientHost,
			RebalanceTimeoutMillis: int32(mb.rebalanceTimeout.Milliseconds()),
			SessionTimeoutMillis:   int32(mb.sessionTimeout.Milliseconds()),
			Subscription:           mb.metadata(c.protocol), Assignment: mb.assignment,
		}
		if assignments != nil {
			entry.Assignment = assignments[mb.id]
		}
		v.Members = append(v.Members, entry)
	}
	return shard.Record{Key: groupKeyBytes(c.group.id), Value: v.AppendTo(nil)}
}

// classicFromRecord is the group as it comes out of the log: a rebalance that was on is not in there, so that
// the group is as it was before that, and members that have gone meanwhile time out.
//
// Only PreparingRebalance and CompletingRebalance have no record of their own, so that members mean Stable and
// none means Empty. The leader falls to the first member where the record names none that exists.
func classicFromRecord(g *group, v *kmsg.GroupMetadataValue) *classicGroup {
	c := newClassic(g, v.CurrentStateTimestamp)
	c.protocolType, c.generation, c.persisted = v.ProtocolType, v.Generation, true
	if v.Protocol != nil {
		c.protocol = *v.Protocol
	}
	for i := range v.Members {
		if mb := memberFromRecord(v, &v.Members[i]); c.byID[mb.id] == nil {
			c.add(mb)
		}
	}
	c.leader = ""
	if len(c.members) > 0 {
		c.state, c.leader = stable, c.members[0].id
		if v.Leader != nil && c.byID[*v.Leader] != nil {
			c.leader = *v.Leader
		}
	}
	c.learnTopics()
	return c
}

// memberFromRecord is one member as it comes out of the log. It speaks the protocol of the generation; what
// else it speaks is not in there, and comes with its next join.
func memberFromRecord(v *kmsg.GroupMetadataValue, entry *kmsg.GroupMetadataValueMember) *member {
	mb := &member{
		id: entry.MemberID, instanceID: entry.InstanceID, clientID: entry.ClientID, clientHost: entry.ClientHost,
		protocolType: v.ProtocolType, assignment: append([]byte(nil), entry.Assignment...),
		sessionTimeout: millis(entry.SessionTimeoutMillis), rebalanceTimeout: millis(entry.RebalanceTimeoutMillis),
	}
	if v.Protocol != nil {
		mb.protocols = []memberProtocol{{*v.Protocol, append([]byte(nil), entry.Subscription...)}}
	}
	if entry.RebalanceTimeoutMillis < 0 {
		mb.rebalanceTimeout = mb.sessionTimeout
	}
	return mb
}

// loaded starts the sessions of a group that came out of the log.
func (c *classicGroup) loaded(m *Machine, now shard.Now) shard.Decision {
	for _, mb := range c.members {
		m.keepAlive(now, c, mb, max(mb.sessionTimeout, time.Millisecond))
	}
	if len(c.members) > m.config().MaxSize {
		return m.prepareRebalance(now, c, "group is larger than group.max.size now")
	}
	return shard.Decision{}
}
