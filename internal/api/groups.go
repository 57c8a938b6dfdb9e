package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

//	JoinGroup, SyncGroup      begun: they wait for other members, for minutes
//	Heartbeat, LeaveGroup     begun: a heartbeat behind a waiting JoinGroup must not wait with it
//	OffsetCommit              begun: pipelined commits keep their order, and wait for the watermark together
//	the rest                  later

// The requests of group members go to the coordinator as they are; it answers in the request's version.

// client is what a coordinator remembers of a member's connection; the host as Java prints an address.
func client(r *Request) group.ClientInfo {
	return group.ClientInfo{ClientID: r.ClientID, Host: "/" + r.Conn.Host}
}

func (a *API) joinGroup(ctx context.Context, r *Request, q *kmsg.JoinGroupRequest) func(context.Context) *kmsg.JoinGroupResponse {
	return a.Groups.BeginJoinGroup(ctx, client(r), q)
}

// syncGroup wants from version 5 on to be told what protocol the member means.
func (a *API) syncGroup(ctx context.Context, r *Request, q *kmsg.SyncGroupRequest) func(context.Context) *kmsg.SyncGroupResponse {
	if r.Version >= 5 && (q.ProtocolType == nil || q.Protocol == nil) {
		response := respondTo(r, kmsg.NewPtrSyncGroupResponse())
		response.ErrorCode = int16(protocol.InconsistentGroupProtocol)
		return func(context.Context) *kmsg.SyncGroupResponse { return response }
	}
	return a.Groups.BeginSyncGroup(ctx, q)
}

func (a *API) heartbeat(ctx context.Context, _ *Request, q *kmsg.HeartbeatRequest) func(context.Context) *kmsg.HeartbeatResponse {
	return a.Groups.BeginHeartbeat(ctx, q)
}

func (a *API) leaveGroup(ctx context.Context, _ *Request, q *kmsg.LeaveGroupRequest) func(context.Context) *kmsg.LeaveGroupResponse {
	return a.Groups.BeginLeaveGroup(ctx, q)
}

// describeGroups tells of groups and their members. The coordinator does not know what the client may do.
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

// offsetDelete removes offsets of a group (version 0). Partitions that there are not are refused one by one;
// the others reach the coordinator.
func (a *API) offsetDelete(ctx context.Context, _ *Request, q *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	var unknown []kmsg.OffsetDeleteResponseTopic
	for i := range q.Topics {
		t := &q.Topics[i]
		answer := kmsg.NewOffsetDeleteResponseTopic()
		answer.Topic = t.Topic
		t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.OffsetDeleteRequestTopicPartition) bool {
			if a.exists(t.Topic, p.Partition) {
				return false
			}
			refused := kmsg.NewOffsetDeleteResponseTopicPartition()
			refused.Partition, refused.ErrorCode = p.Partition, int16(protocol.UnknownTopicOrPartition)
			answer.Partitions = append(answer.Partitions, refused)
			return true
		})
		if len(answer.Partitions) > 0 {
			unknown = append(unknown, answer)
		}
	}
	q.Topics = slices.DeleteFunc(q.Topics, func(t kmsg.OffsetDeleteRequestTopic) bool { return len(t.Partitions) == 0 })
	response := a.Groups.OffsetDelete(ctx, q)
	if response.ErrorCode == 0 {
		response.Topics = append(response.Topics, unknown...)
	}
	return response
}

// exists reports whether this broker's image has a partition.
func (a *API) exists(topic string, partition int32) bool {
	return a.View.Image().Partition(protocol.TopicPartition{Topic: topic, Partition: partition}) != nil
}
