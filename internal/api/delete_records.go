package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
)

// deleteRecords moves the log start offsets of partitions forward (versions 0 to 2); -1 means up to the
// high watermark. The answer carries the new log start offset, which Kafka calls the low watermark: the
// smallest log start offset of all replicas. Nothing is deleted beyond what is committed, and the bytes go
// with their segments, not at once.
func (a *API) deleteRecords(_ context.Context, r *Request, q *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse {
	response := respondTo(r, kmsg.NewPtrDeleteRecordsResponse())
	for _, t := range q.Topics {
		topic := kmsg.NewDeleteRecordsResponseTopic()
		topic.Topic = t.Topic
		for _, asked := range t.Partitions {
			answer := kmsg.NewDeleteRecordsResponseTopicPartition()
			answer.Partition, answer.LowWatermark = asked.Partition, -1
			low, err := a.deleteBefore(protocol.TopicPartition{Topic: t.Topic, Partition: asked.Partition}, protocol.Offset(asked.Offset))
			if err == nil {
				answer.LowWatermark = int64(low)
			}
			answer.ErrorCode = int16(protocol.CodeOf(err))
			topic.Partitions = append(topic.Partitions, answer)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// deleteBefore carries one partition's part out and gives the new log start offset.
func (a *API) deleteBefore(tp protocol.TopicPartition, before protocol.Offset) (protocol.Offset, error) {
	if protocol.IsInternalTopic(tp.Topic) {
		return 0, protocol.InvalidTopic
	}
	p, err := a.Replicas.Partition(tp)
	if err != nil {
		return 0, err
	}
	if err := p.CheckLeader(protocol.NoLeaderEpoch); err != nil {
		return 0, err
	}
	return advanceStart(p, before)
}

// advanceStart checks what a partition's topic and log allow, and does it.
func advanceStart(p *replica.Partition, before protocol.Offset) (protocol.Offset, error) {
	if !p.Settings().Delete {
		return 0, protocol.PolicyViolation
	}
	bounds := p.Bounds()
	if before == -1 {
		before = bounds.HighWatermark
	}
	if before < 0 || before > bounds.HighWatermark {
		return 0, protocol.OffsetOutOfRange
	}
	if before <= bounds.Start || p.Log() == nil {
		return bounds.Start, nil
	}
	if err := p.Log().AdvanceStart(before); err != nil {
		return 0, err
	}
	return p.Bounds().Start, nil
}
