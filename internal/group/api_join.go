package group

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// JoinGroup answers JoinGroup 0 to 9, when the rebalance is over that it takes part in. ctx ends with the
// client's connection.
//
//	0  no rebalance timeout: the session timeout is it     5  instance id: static members (KIP-345)
//	1  rebalance timeout (KIP-62)                          7  protocol type in the answer, null for none
//	4  MEMBER_ID_REQUIRED: clients come back with the      8  reason, for the log (KIP-800)
//	   id they are given (KIP-394)                         9  skip the assignment (KIP-814)
func (c *Coordinator) JoinGroup(ctx context.Context, client ClientInfo, request *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse {
	return c.BeginJoinGroup(ctx, client, request)(ctx)
}

// BeginJoinGroup is the first phase of JoinGroup.
func (c *Coordinator) BeginJoinGroup(ctx context.Context, client ClientInfo, request *kmsg.JoinGroupRequest) func(context.Context) *kmsg.JoinGroupResponse {
	version, memberID := request.Version, request.MemberID
	refuse := func(code protocol.Code) *kmsg.JoinGroupResponse {
		r := refusedJoin(memberID, code)
		r.Version = version
		return r
	}
	newID, err := c.newMemberID(client, request.InstanceID)
	code := c.checkJoin(request)
	if err != nil {
		code = protocol.UnknownServerError
	}
	if code != protocol.None {
		return func(context.Context) *kmsg.JoinGroupResponse { return refuse(code) }
	}
	group := request.Group
	pending := c.runtime.Ask(ctx, c.PartitionFor(group),
		func(m *Machine, now shard.Now, t shard.Ticket) shard.Decision {
			return m.JoinGroup(now, client, request, newID, t)
		},
		func(m *Machine, now shard.Now, t shard.Ticket) shard.Decision { return m.JoinGone(now, group, t) },
	)
	return func(ctx context.Context) *kmsg.JoinGroupResponse {
		answer, err := pending.Wait(ctx)
		if err != nil {
			return refuse(coordinatorCode(err))
		}
		response := answer.(*kmsg.JoinGroupResponse)
		response.Version = version
		return response
	}
}

// checkJoin says why a JoinGroup is refused whatever the group is like.
func (c *Coordinator) checkJoin(request *kmsg.JoinGroupRequest) protocol.Code {
	config := c.config()
	session := millis(request.SessionTimeoutMillis)
	instanceID := ""
	if request.InstanceID != nil {
		instanceID = *request.InstanceID
	}
	switch {
	case request.Group == "" || len(request.Group) > textMax:
		return protocol.InvalidGroupID
	case session < config.MinSessionTimeout || session > config.MaxSessionTimeout:
		return protocol.InvalidSessionTimeout
	case len(request.ProtocolType) > textMax || len(instanceID) > memberIDClientMax:
		return protocol.InvalidRequest
	}
	for _, p := range request.Protocols {
		if len(p.Name) > textMax {
			return protocol.InvalidRequest
		}
	}
	return protocol.None
}
