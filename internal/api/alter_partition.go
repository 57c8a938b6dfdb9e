package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// alterPartition asks the controller to change in-sync sets (KIP-497, versions 0 to 3; the state of recovery
// from 1 on, topic ids from 2 on, the epochs of the members' brokers from 3 on).
//
// Only leaders send it. A refusal of one partition is in its place: FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION
// where the state has changed meanwhile, INELIGIBLE_REPLICA where a member is not alive in that epoch.
func (a *API) alterPartition(ctx context.Context, r *Request, q *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	response := respondTo(r, kmsg.NewPtrAlterPartitionResponse())
	var wanted []controller.Alteration
	for _, topic := range q.Topics {
		for i := range topic.Partitions {
			w := alterationOf(&topic.Partitions[i])
			w.Topic, w.TopicID = topic.Topic, topic.TopicID
			wanted = append(wanted, w)
		}
	}
	results, err := a.Controller.AlterPartition(ctx, protocol.BrokerID(q.BrokerID), protocol.BrokerEpoch(q.BrokerEpoch), wanted)
	if err != nil {
		response.ErrorCode = int16(protocol.CodeOf(err))
		return response
	}
	next := 0
	for _, topic := range q.Topics {
		t := kmsg.NewAlterPartitionResponseTopic()
		t.Topic, t.TopidID = topic.Topic, topic.TopicID
		for range topic.Partitions {
			t.Partitions = append(t.Partitions, altered(&results[next]))
			next++
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}

// alterationOf is what is wanted for one partition.
func alterationOf(p *kmsg.AlterPartitionRequestTopicPartition) controller.Alteration {
	w := controller.Alteration{
		LeaderEpoch: protocol.LeaderEpoch(p.LeaderEpoch), Epoch: protocol.PartitionEpoch(p.PartitionEpoch),
		Recovering: p.LeaderRecoveryState == 1,
	}
	w.Partition = p.Partition
	for _, id := range p.NewISR {
		w.ISR = append(w.ISR, controller.Member{ID: protocol.BrokerID(id), Epoch: protocol.NoBrokerEpoch})
	}
	for _, m := range p.NewEpochISR {
		w.ISR = append(w.ISR, controller.Member{ID: protocol.BrokerID(m.BrokerID), Epoch: protocol.BrokerEpoch(m.BrokerEpoch)})
	}
	return w
}

// altered is the answer for one partition.
func altered(r *controller.Altered) kmsg.AlterPartitionResponseTopicPartition {
	p := kmsg.NewAlterPartitionResponseTopicPartition()
	p.Partition = r.Partition
	if r.Err != nil {
		p.ErrorCode = int16(protocol.CodeOf(r.Err))
		return p
	}
	p.LeaderID, p.LeaderEpoch, p.PartitionEpoch = int32(r.State.Leader), int32(r.State.LeaderEpoch), int32(r.State.Epoch)
	p.LeaderRecoveryState = recoveryState(r.State)
	p.ISR = numbersOf(r.State.ISR)
	peer.SetEligible(&p.UnknownTags, r.State.Eligible)
	return p
}

// recoveryState is Kafka's number of what [metadata.Partition] calls Recovering.
func recoveryState(p *metadata.Partition) int8 {
	if p.Recovering {
		return 1
	}
	return 0
}
