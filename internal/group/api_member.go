package group

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// leaveListsMembers is the first version of LeaveGroup that names several members.
const leaveListsMembers = 3

// Heartbeat answers Heartbeat 0 to 4; version 3 has the instance id. While the group is being loaded it
// answers that all is well: what else would a member do but wait?
func (c *Coordinator) Heartbeat(ctx context.Context, request *kmsg.HeartbeatRequest) *kmsg.HeartbeatResponse {
	return c.BeginHeartbeat(ctx, request)(ctx)
}

// BeginHeartbeat is the first phase of Heartbeat.
func (c *Coordinator) BeginHeartbeat(ctx context.Context, request *kmsg.HeartbeatRequest) func(context.Context) *kmsg.HeartbeatResponse {
	response := &kmsg.HeartbeatResponse{Version: request.Version}
	if request.Group == "" {
		response.ErrorCode = int16(protocol.InvalidGroupID)
		return func(context.Context) *kmsg.HeartbeatResponse { return response }
	}
	code := protocol.None
	pending := c.runtime.Submit(ctx, c.PartitionFor(request.Group), func(m *Machine, now shard.Now) (shard.Decision, error) {
		code = m.Heartbeat(now, request)
		return shard.Decision{}, nil
	})
	return func(ctx context.Context) *kmsg.HeartbeatResponse {
		if _, err := pending.Wait(ctx); err != nil {
			code = coordinatorCode(err)
		}
		if code == protocol.CoordinatorLoadInProgress {
			code = protocol.None // sessions start when the load is over
		}
		response.ErrorCode = int16(code)
		return response
	}
}

// LeaveGroup answers LeaveGroup 0 to 5.
//
//	0  one member, whose error is the response's
//	3  several members, by member or instance id, each with its error (KIP-345)
//	5  reasons, for the log (KIP-800)
func (c *Coordinator) LeaveGroup(ctx context.Context, request *kmsg.LeaveGroupRequest) *kmsg.LeaveGroupResponse {
	return c.BeginLeaveGroup(ctx, request)(ctx)
}

// BeginLeaveGroup is the first phase of LeaveGroup.
func (c *Coordinator) BeginLeaveGroup(ctx context.Context, request *kmsg.LeaveGroupRequest) func(context.Context) *kmsg.LeaveGroupResponse {
	version := request.Version
	refuse := func(code protocol.Code) *kmsg.LeaveGroupResponse {
		return &kmsg.LeaveGroupResponse{Version: version, ErrorCode: int16(code)}
	}
	if request.Group == "" {
		return func(context.Context) *kmsg.LeaveGroupResponse { return refuse(protocol.InvalidGroupID) }
	}
	members := request.Members
	if version < leaveListsMembers {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: request.MemberID}}
	}
	var response *kmsg.LeaveGroupResponse
	pending := c.runtime.Submit(ctx, c.PartitionFor(request.Group), func(m *Machine, now shard.Now) (shard.Decision, error) {
		var decision shard.Decision
		response, decision = m.LeaveGroup(now, request.Group, members)
		return decision, nil
	})
	return func(ctx context.Context) *kmsg.LeaveGroupResponse {
		if _, err := pending.Wait(ctx); err != nil {
			return refuse(coordinatorCode(err))
		}
		response.Version = version
		if version < leaveListsMembers { // the only member's error is the request's
			response.ErrorCode, response.Members = response.Members[0].ErrorCode, nil
		}
		return response
	}
}
