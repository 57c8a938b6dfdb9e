package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// offsetForLeaderEpoch tells where a leader epoch ended (versions 0 to 4, KIP-101 and KIP-320): the largest
// epoch that is not above the one asked for, and the offset after its last record. Undefined, -1 and -1,
// where no such epoch is known.
//
// Followers before Kafka 2.7, and consumers that notice a new leader, compare the answer with what they have:
// where theirs goes further, it was never committed, and they truncate or tell of it. An epoch above the
// present one is undefined, never the log end: a follower that got the end would keep what it must drop.
func (a *API) offsetForLeaderEpoch(r *Request, q *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse {
	response := respondTo(r, kmsg.NewPtrOffsetForLeaderEpochResponse())
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = t.Topic
		for _, asked := range t.Partitions {
			answer := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			answer.Partition, answer.LeaderEpoch, answer.EndOffset = asked.Partition, -1, -1
			p, err := a.Replicas.Partition(protocol.TopicPartition{Topic: t.Topic, Partition: asked.Partition})
			if err == nil {
				err = p.CheckLeader(protocol.LeaderEpoch(asked.CurrentLeaderEpoch))
			}
			if err == nil && p.Log() != nil {
				epoch, end := p.Log().EndOffsetForEpoch(protocol.LeaderEpoch(asked.LeaderEpoch))
				answer.LeaderEpoch, answer.EndOffset = int32(epoch), int64(end)
			}
			answer.ErrorCode = int16(protocol.CodeOf(err))
			topic.Partitions = append(topic.Partitions, answer)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}
