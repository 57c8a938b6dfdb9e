package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
)

// describeProducers lists the producers that partitions remember (version 0, KIP-664). It is for finding
// transactions that hang: the coordinator epoch and the first offset of an open transaction are in no other
// answer. Only the leader tells, since only its state is up to date.
func (a *API) describeProducers(r *Request, q *kmsg.DescribeProducersRequest) *kmsg.DescribeProducersResponse {
	response := respondTo(r, kmsg.NewPtrDescribeProducersResponse())
	for _, t := range q.Topics {
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = t.Topic
		for _, number := range t.Partitions {
			topic.Partitions = append(topic.Partitions, a.producersOf(protocol.TopicPartition{Topic: t.Topic, Partition: number}))
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func (a *API) producersOf(tp protocol.TopicPartition) kmsg.DescribeProducersResponseTopicPartition {
	answer := kmsg.NewDescribeProducersResponseTopicPartition()
	answer.Partition = tp.Partition
	err := protocol.ValidateTopicName(tp.Topic)
	var p *replica.Partition
	if err == nil {
		p, err = a.Replicas.Partition(tp)
	}
	if err == nil {
		err = p.CheckLeader(protocol.NoLeaderEpoch)
	}
	if err != nil {
		answer.ErrorCode, answer.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
		return answer
	}
	if p.Log() == nil {
		return answer
	}
	for _, state := range p.Log().Producers() {
		one := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		one.ProducerID, one.ProducerEpoch = int64(state.ID), int32(state.Epoch)
		one.LastSequence, one.LastTimestamp = state.LastSequence, state.LastTimestamp
		one.CoordinatorEpoch, one.CurrentTxnStartOffset = state.CoordinatorEpoch, int64(state.TransactionStart)
		answer.ActiveProducers = append(answer.ActiveProducers, one)
	}
	return answer
}
