package group

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

const (
	// fetchTellsGroupError is the first version of OffsetFetch with an error above the partitions.
	fetchTellsGroupError = 2
	// fetchListsGroups is the first version of OffsetFetch that names several groups.
	fetchListsGroups = 8
)

// OffsetFetch answers OffsetFetch 1 to 10. Topics must have names; those of version 10 are the caller's to
// find, also in answers to requests for all. A nil list of topics asks for all, an empty one for none.
//
//	1  one group; its error is that of every partition       7   require stable offsets (KIP-447)
//	2  a null list of topics, an error above partitions      8   several groups, each with its error
//	5  leader epochs (KIP-320)                               10  topic ids in place of names (KIP-848)
func (c *Coordinator) OffsetFetch(ctx context.Context, request *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	response := &kmsg.OffsetFetchResponse{Version: request.Version}
	if request.Version >= fetchListsGroups {
		for i := range request.Groups {
			response.Groups = append(response.Groups, c.fetchGroup(ctx, &request.Groups[i], request))
		}
		return response
	}
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = request.Group
	if request.Topics != nil {
		group.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(request.Topics))
	}
	for _, topic := range request.Topics {
		group.Topics = append(group.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic.Topic, Partitions: topic.Partitions})
	}
	answer := c.fetchGroup(ctx, &group, request)
	response.ErrorCode = answer.ErrorCode
	for _, topic := range answer.Topics {
		old := kmsg.OffsetFetchResponseTopic{Topic: topic.Topic}
		for _, p := range topic.Partitions {
			old.Partitions = append(old.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		response.Topics = append(response.Topics, old)
	}
	return response
}

// fetchGroup reads the offsets of one group.
func (c *Coordinator) fetchGroup(ctx context.Context, group *kmsg.OffsetFetchRequestGroup, request *kmsg.OffsetFetchRequest) kmsg.OffsetFetchResponseGroup {
	var answer kmsg.OffsetFetchResponseGroup
	err := c.runtime.Read(ctx, c.PartitionFor(group.Group), func(m *Machine, _ shard.Now) error {
		answer = m.OffsetFetch(group, request.RequireStable)
		return nil
	})
	if err != nil {
		return refusedFetch(group, fetchCode(err), request.Version)
	}
	return answer
}

// refusedFetch is an error for the group; in the oldest version all partitions have it.
func refusedFetch(group *kmsg.OffsetFetchRequestGroup, code protocol.Code, version int16) kmsg.OffsetFetchResponseGroup {
	answer := kmsg.OffsetFetchResponseGroup{Group: group.Group, ErrorCode: int16(code)}
	if version >= fetchTellsGroupError {
		return answer
	}
	for _, topic := range group.Topics {
		refused := kmsg.OffsetFetchResponseGroupTopic{Topic: topic.Topic}
		for _, partition := range topic.Partitions {
			refused.Partitions = append(refused.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
				Partition: partition, Offset: noCommittedOffset, LeaderEpoch: noLeaderEpoch, Metadata: ptr(""), ErrorCode: int16(code),
			})
		}
		answer.Topics = append(answer.Topics, refused)
	}
	return answer
}
