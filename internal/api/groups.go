package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/group"
)

// The requests of group members go to the coordinator as they are; it answers in the request's version.

func client(r *Request) group.ClientInfo {
	return group.ClientInfo{ClientID: r.ClientID, Host: "/" + r.Conn.Host}
}

func (a *API) joinGroup(ctx context.Context, r *Request, q *kmsg.JoinGroupRequest) func(context.Context) *kmsg.JoinGroupResponse {
	return a.Groups.BeginJoinGroup(ctx, client(r), q)
}

func (a *API) syncGroup(ctx context.Context, _ *Request, q *kmsg.SyncGroupRequest) func(context.Context) *kmsg.SyncGroupResponse {
	return a.Groups.BeginSyncGroup(ctx, q)
}

func (a *API) heartbeat(ctx context.Context, _ *Request, q *kmsg.HeartbeatRequest) func(context.Context) *kmsg.HeartbeatResponse {
	return a.Groups.BeginHeartbeat(ctx, q)
}

func (a *API) leaveGroup(ctx context.Context, _ *Request, q *kmsg.LeaveGroupRequest) func(context.Context) *kmsg.LeaveGroupResponse {
	return a.Groups.BeginLeaveGroup(ctx, q)
}

func (a *API) describeGroups(ctx context.Context, _ *Request, q *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse {
	response := a.Groups.DescribeGroups(ctx, q)
	for i := range response.Groups {
		response.Groups[i].AuthorizedOperations = operations(q.IncludeAuthorizedOperations, groupOperations)
	}
	return response
}

func (a *API) listGroups(ctx context.Context, _ *Request, q *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse {
	return a.Groups.ListGroups(ctx, q)
}

func (a *API) deleteGroups(ctx context.Context, _ *Request, q *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse {
	return a.Groups.DeleteGroups(ctx, q)
}

func (a *API) offsetDelete(ctx context.Context, _ *Request, q *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	return a.Groups.OffsetDelete(ctx, q)
}
