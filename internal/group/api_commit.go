package group

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// OffsetCommit answers OffsetCommit 2 to 10. Topics must have names; those of version 10 are the caller's to
// find. Errors are those of partitions, in all versions.
//
//	2  retention time of the request, up to 4       8   flexible
//	6  leader epoch of the last record read         9   GROUP_ID_NOT_FOUND, where it was ILLEGAL_GENERATION
//	7  instance id (KIP-345)                        10  topic ids in place of names (KIP-848)
func (c *Coordinator) OffsetCommit(ctx context.Context, request *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	return c.BeginOffsetCommit(ctx, request)(ctx)
}

// BeginOffsetCommit is the first phase of OffsetCommit.
func (c *Coordinator) BeginOffsetCommit(ctx context.Context, request *kmsg.OffsetCommitRequest) func(context.Context) *kmsg.OffsetCommitResponse {
	if len(request.Group) > textMax {
		return func(context.Context) *kmsg.OffsetCommitResponse {
			return refusedCommit(request, protocol.InvalidGroupID)
		}
	}
	var response *kmsg.OffsetCommitResponse
	pending := c.runtime.Submit(ctx, c.PartitionFor(request.Group), func(m *Machine, now shard.Now) (decision shard.Decision, err error) {
		response, decision, err = m.OffsetCommit(now, request)
		return decision, err
	})
	return func(ctx context.Context) *kmsg.OffsetCommitResponse {
		if _, err := pending.Wait(ctx); err != nil {
			return refusedCommit(request, coordinatorCode(err))
		}
		response.Version = request.Version
		return response
	}
}

// refusedCommit has the same error for all partitions.
func refusedCommit(request *kmsg.OffsetCommitRequest, code protocol.Code) *kmsg.OffsetCommitResponse {
	response := &kmsg.OffsetCommitResponse{Version: request.Version}
	for _, topic := range request.Topics {
		answer := kmsg.OffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, p := range topic.Partitions {
			answer.Partitions = append(answer.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
		}
		response.Topics = append(response.Topics, answer)
	}
	return response
}

// TxnOffsetCommit answers TxnOffsetCommit 0 to 6. That the producer has this transaction open is the
// caller's to check.
//
//	3  member id, generation, instance id: members are fenced (KIP-447)
//	6  topic ids in place of names, GROUP_ID_NOT_FOUND (KIP-1319)
func (c *Coordinator) TxnOffsetCommit(ctx context.Context, request *kmsg.TxnOffsetCommitRequest) *kmsg.TxnOffsetCommitResponse {
	return c.BeginTxnOffsetCommit(ctx, request)(ctx)
}

// BeginTxnOffsetCommit is the first phase of TxnOffsetCommit.
func (c *Coordinator) BeginTxnOffsetCommit(ctx context.Context, request *kmsg.TxnOffsetCommitRequest) func(context.Context) *kmsg.TxnOffsetCommitResponse {
	if request.Group == "" || len(request.Group) > textMax {
		return func(context.Context) *kmsg.TxnOffsetCommitResponse {
			return refusedTxnCommit(request, protocol.InvalidGroupID)
		}
	}
	var response *kmsg.TxnOffsetCommitResponse
	pending := c.runtime.Submit(ctx, c.PartitionFor(request.Group), func(m *Machine, now shard.Now) (decision shard.Decision, err error) {
		response, decision, err = m.TxnOffsetCommit(now, request)
		return decision, err
	})
	return func(ctx context.Context) *kmsg.TxnOffsetCommitResponse {
		if _, err := pending.Wait(ctx); err != nil {
			return refusedTxnCommit(request, coordinatorCode(err))
		}
		response.Version = request.Version
		return response
	}
}

// refusedTxnCommit has the same error for all partitions.
func refusedTxnCommit(request *kmsg.TxnOffsetCommitRequest, code protocol.Code) *kmsg.TxnOffsetCommitResponse {
	response := &kmsg.TxnOffsetCommitResponse{Version: request.Version}
	for _, topic := range request.Topics {
		answer := kmsg.TxnOffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, p := range topic.Partitions {
			answer.Partitions = append(answer.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
		}
		response.Topics = append(response.Topics, answer)
	}
	return response
}
