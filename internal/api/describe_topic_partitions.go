package api

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// describePartitionsMax is how many partitions one answer holds at most (max.request.partition.size.limit).
const describePartitionsMax = 2000

// describeTopicPartitions tells of topics page by page (version 0, KIP-966): sorted by name, from the
// cursor on, and where the limit cuts a page, with a cursor for the next one.
//
// The cursor is a name and a number, not a place in a list: topics that come or go between two pages shift
// nothing, and nothing that stays is shown twice or left out.
func (a *API) describeTopicPartitions(r *Request, q *kmsg.DescribeTopicPartitionsRequest) *kmsg.DescribeTopicPartitionsResponse {
	response := respondTo(r, kmsg.NewPtrDescribeTopicPartitionsResponse())
	image := a.View.Image()
	names := make([]string, 0, len(q.Topics))
	for _, t := range q.Topics {
		names = append(names, t.Topic)
	}
	if c := q.Cursor; c != nil && (c.Partition < 0 || len(names) > 0 && !slices.Contains(names, c.Topic)) {
		return refuseTopics(response, names)
	}
	if len(names) == 0 {
		names = slices.Clone(image.Topics())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	left := describePartitionsMax
	if q.ResponsePartitionLimit > 0 {
		left = min(left, int(q.ResponsePartitionLimit))
	}
	for _, name := range names {
		from := 0
		if q.Cursor != nil {
			if strings.Compare(name, q.Cursor.Topic) < 0 {
				continue
			}
			if name == q.Cursor.Topic {
				from = max(int(q.Cursor.Partition), 0)
			}
		}
		if left == 0 {
			response.NextCursor = cursorAt(name, from)
			return response
		}
		t, next := describeTopicPage(name, image.Topic(name), from, left)
		left -= len(t.Partitions)
		response.Topics = append(response.Topics, t)
		if next >= 0 {
			response.NextCursor = cursorAt(name, next)
			return response
		}
	}
	return response
}

// refuseTopics answers a request with a cursor that points nowhere in what it asks for.
func refuseTopics(response *kmsg.DescribeTopicPartitionsResponse, names []string) *kmsg.DescribeTopicPartitionsResponse {
	for i := range names {
		t := kmsg.NewDescribeTopicPartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.AuthorizedOperations = &names[i], int16(protocol.InvalidRequest), notAsked
		response.Topics = append(response.Topics, t)
	}
	return response
}

// The cursor names the first partition that was not told, which need not exist any more when it comes back.
func cursorAt(topic string, partition int) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	cursor := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	cursor.Topic, cursor.Partition = topic, int32(partition)
	return &cursor
}

// describeTopicPage tells of the partitions of one topic from one number on; next is where the next page
// begins, -1 where the topic ends here.
func describeTopicPage(name string, topic *metadata.Topic, from, limit int) (_ kmsg.DescribeTopicPartitionsResponseTopic, next int) {
	t := kmsg.NewDescribeTopicPartitionsResponseTopic()
	t.Topic, t.IsInternal, t.AuthorizedOperations = &name, protocol.IsInternalTopic(name), topicOperations
	if topic == nil {
		t.ErrorCode, t.AuthorizedOperations = int16(protocol.UnknownTopicOrPartition), notAsked
		if protocol.ValidateTopicName(name) != nil {
			t.ErrorCode = int16(protocol.InvalidTopic)
		}
		return t, -1
	}
	t.TopicID = topic.ID
	for number := from; number < len(topic.Partitions); number++ {
		if len(t.Partitions) == limit {
			return t, number
		}
		state := topic.Partitions[number]
		p := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		p.Partition, p.LeaderID, p.LeaderEpoch = int32(number), int32(state.Leader), int32(state.LeaderEpoch)
		p.Replicas, p.ISR, p.OfflineReplicas = ids(state.Replicas), ids(state.ISR), ids(state.Offline)
		p.EligibleLeaderReplicas, p.LastKnownELR = []int32{}, []int32{}
		if state.Leader == protocol.NoBroker {
			p.ErrorCode = int16(protocol.LeaderNotAvailable)
		}
		t.Partitions = append(t.Partitions, p)
	}
	return t, -1
}
