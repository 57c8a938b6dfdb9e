package group

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// SyncGroup answers SyncGroup 0 to 5, when the leader has assigned. ctx ends with the client's connection.
//
//	3  instance id (KIP-345)
//	5  protocol type and name, both ways: a member that means another protocol is refused
func (c *Coordinator) SyncGroup(ctx context.Context, request *kmsg.SyncGroupRequest) *kmsg.SyncGroupResponse {
	return c.BeginSyncGroup(ctx, request)(ctx)
}

// BeginSyncGroup is the first phase of SyncGroup.
func (c *Coordinator) BeginSyncGroup(ctx context.Context, request *kmsg.SyncGroupRequest) func(context.Context) *kmsg.SyncGroupResponse {
	version := request.Version
	refuse := func(code protocol.Code) *kmsg.SyncGroupResponse {
		return &kmsg.SyncGroupResponse{Version: version, ErrorCode: int16(code)}
	}
	if request.Group == "" {
		return func(context.Context) *kmsg.SyncGroupResponse { return refuse(protocol.InvalidGroupID) }
	}
	pending := c.runtime.Ask(ctx, c.PartitionFor(request.Group),
		func(m *Machine, now shard.Now, t shard.Ticket) shard.Decision { return m.SyncGroup(now, request, t) }, nil)
	return func(ctx context.Context) *kmsg.SyncGroupResponse {
		answer, err := pending.Wait(ctx)
		if err != nil {
			return refuse(coordinatorCode(err))
		}
		response := answer.(*kmsg.SyncGroupResponse)
		response.Version = version
		return response
	}
}
