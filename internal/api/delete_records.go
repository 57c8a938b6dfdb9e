package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
)

// deleteRecords moves the log start offsets of partitions forward (versions 0 to 2); -1 means up to the
// high watermark. The answer carries the new log start offset, which Kafka calls the low watermark: the
// smallest log start offset of the in-sync replicas; it waits until all of them have moved. Nothing is deleted
// beyond what is committed, and the bytes go with their segments, not at once.
func (a *API) deleteRecords(ctx context.Context, r *Request, q *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse {
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	response := respondTo(r, kmsg.NewPtrDeleteRecordsResponse())
	var waits []deleteWait
	for i, t := range q.Topics {
		topic := kmsg.NewDeleteRecordsResponseTopic()
		topic.Topic = t.Topic
		for j, asked := range t.Partitions {
			answer := kmsg.NewDeleteRecordsResponseTopicPartition()
			answer.Partition, answer.LowWatermark = asked.Partition, -1
			wait, err := a.deleteBefore(ctx, protocol.TopicPartition{Topic: t.Topic, Partition: asked.Partition}, protocol.Offset(asked.Offset))
			if answer.ErrorCode = int16(protocol.CodeOf(err)); err == nil {
				wait.topic, wait.atInTopic = i, j
				waits = append(waits, wait)
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		response.Topics = append(response.Topics, topic)
	}
	for _, w := range waits {
		answer := &response.Topics[w.topic].Partitions[w.atInTopic]
		if err := w.partition.WaitDeleted(ctx, w.epoch, w.before); err != nil {
			answer.ErrorCode = int16(protocol.CodeOf(err))
		} else {
			answer.LowWatermark = int64(max(w.before, w.partition.Bounds().Start))
		}
	}
	return response
}

// deleteWait is a partition that has moved its log start, while its followers perhaps have not.
type deleteWait struct {
	partition        *replica.Partition
	epoch            protocol.LeaderEpoch
	before           protocol.Offset
	topic, atInTopic int // where its answer is
}

// deleteBefore carries one partition's part out, up to the wait for its followers.
func (a *API) deleteBefore(ctx context.Context, tp protocol.TopicPartition, before protocol.Offset) (deleteWait, error) {
	if protocol.IsInternalTopic(tp.Topic) {
		return deleteWait{}, protocol.InvalidTopic
	}
	p, err := a.Replicas.Partition(tp)
	if err != nil {
		return deleteWait{}, err
	}
	if err := p.CheckLeader(protocol.NoLeaderEpoch); err != nil {
		return deleteWait{}, err
	}
	if !p.Settings().Delete {
		return deleteWait{}, protocol.PolicyViolation
	}
	bounds := p.Bounds()
	if before == -1 {
		before = bounds.HighWatermark
	}
	if before < 0 || before > bounds.HighWatermark {
		return deleteWait{}, protocol.OffsetOutOfRange
	}
	epoch, err := p.DeleteBefore(ctx, before)
	return deleteWait{partition: p, epoch: epoch, before: before}, err
}
