package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// alterPartitionReassignments begins, changes and takes back reassignments (KIP-455, versions 0 and 1; from 1
// on a client may ask that the number of replicas stay as it is, KIP-1172). Null replicas take a reassignment
// back.
func (a *API) alterPartitionReassignments(ctx context.Context, r *Request, q *kmsg.AlterPartitionAssignmentsRequest) *kmsg.AlterPartitionAssignmentsResponse {
	response := respondTo(r, kmsg.NewPtrAlterPartitionAssignmentsResponse())
	if answer, ok := a.forward(ctx, r, q, millis(q.TimeoutMillis)).(*kmsg.AlterPartitionAssignmentsResponse); ok {
		return answer
	}
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	keepFactor := r.Version >= 1 && !q.AllowReplicationFactorChange
	response.AllowReplicationFactorChange = !keepFactor
	var moves []controller.Reassignment
	for _, topic := range q.Topics {
		for _, p := range topic.Partitions {
			m := controller.Reassignment{TopicPartition: protocol.TopicPartition{Topic: topic.Topic, Partition: p.Partition}}
			if p.Replicas != nil {
				m.Replicas = []protocol.BrokerID{}
			}
			for _, id := range p.Replicas {
				m.Replicas = append(m.Replicas, protocol.BrokerID(id))
			}
			moves = append(moves, m)
		}
	}
	results, err := a.Controller.AlterPartitionReassignments(ctx, moves, keepFactor)
	if err != nil {
		response.ErrorCode, response.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
		return response
	}
	next := 0
	for _, topic := range q.Topics {
		t := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		t.Topic = topic.Topic
		for range topic.Partitions {
			result := results[next]
			p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = result.Partition, int16(protocol.CodeOf(result.Err)), protocol.MessageOf(result.Err)
			t.Partitions = append(t.Partitions, p)
			next++
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}

// listPartitionReassignments lists the reassignments under way, of the named partitions or, where the list of
// topics is null, of all (KIP-455, version 0). A tag of ours asks for the unclean elections that will be held, too.
func (a *API) listPartitionReassignments(ctx context.Context, r *Request, q *kmsg.ListPartitionReassignmentsRequest) *kmsg.ListPartitionReassignmentsResponse {
	response := respondTo(r, kmsg.NewPtrListPartitionReassignmentsResponse())
	if answer, ok := a.forward(ctx, r, q, millis(q.TimeoutMillis)).(*kmsg.ListPartitionReassignmentsResponse); ok {
		return answer
	}
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	var partitions []protocol.TopicPartition
	if q.Topics != nil {
		partitions = []protocol.TopicPartition{}
	}
	for _, topic := range q.Topics {
		for _, number := range topic.Partitions {
			partitions = append(partitions, protocol.TopicPartition{Topic: topic.Topic, Partition: number})
		}
	}
	found, err := a.Controller.ListPartitionReassignments(ctx, partitions)
	if err != nil {
		response.ErrorCode, response.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
		return response
	}
	if peer.AsksForWaits(&q.UnknownTags) {
		peer.SetWaits(&response.UnknownTags, a.waits())
	}
	places := map[string]int{}
	for _, o := range found {
		at, ok := places[o.Topic]
		if !ok {
			at = len(response.Topics)
			places[o.Topic] = at
			t := kmsg.NewListPartitionReassignmentsResponseTopic()
			t.Topic = o.Topic
			response.Topics = append(response.Topics, t)
		}
		p := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
		p.Partition, p.Replicas = o.Partition, numbersOf(o.Replicas)
		p.AddingReplicas, p.RemovingReplicas = numbersOf(o.Adding), numbersOf(o.Removing)
		response.Topics[at].Partitions = append(response.Topics[at].Partitions, p)
	}
	return response
}

// waits are the unclean elections that will be held.
func (a *API) waits() []peer.Wait {
	var waits []peer.Wait
	for _, w := range a.Controller.Waits() {
		waits = append(waits, peer.Wait{TopicPartition: w.TopicPartition, Left: max(time.Until(w.Until), 0)})
	}
	return waits
}

// numbersOf turns broker ids into what a message holds.
func numbersOf(ids []protocol.BrokerID) []int32 {
	numbers := make([]int32, len(ids))
	for i, id := range ids {
		numbers[i] = int32(id)
	}
	return numbers
}
