package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// electLeaders elects leaders anew (versions 0 to 2; version 0 knows preferred elections only, KIP-460). A
// null list of topics means all partitions that need an election, and only those are answered.
func (a *API) electLeaders(ctx context.Context, r *Request, q *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	response := respondTo(r, kmsg.NewPtrElectLeadersResponse())
	elsewhere := a.forward(ctx, r, q, millis(q.TimeoutMillis))
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	if answer, ok := elsewhere.(*kmsg.ElectLeadersResponse); ok {
		a.awaitElected(ctx, q.ElectionType, answer)
		return answer
	}
	// Version 0 has no field for the type.
	kind := controller.ElectionType(q.ElectionType)
	if r.Version == 0 {
		kind = controller.PreferredElection
	}
	if kind != controller.PreferredElection && kind != controller.UncleanElection {
		response.ErrorCode = int16(protocol.InvalidRequest)
		return response
	}
	// nil is all partitions, an empty list is none.
	var partitions []protocol.TopicPartition
	if q.Topics != nil {
		partitions = []protocol.TopicPartition{}
	}
	for _, t := range q.Topics {
		for _, number := range t.Partitions {
			partitions = append(partitions, protocol.TopicPartition{Topic: t.Topic, Partition: number})
		}
	}
	places := map[string]int{}
	for _, result := range a.Controller.ElectLeaders(ctx, kind, partitions) {
		at, ok := places[result.Topic]
		if !ok {
			at = len(response.Topics)
			places[result.Topic] = at
			t := kmsg.NewElectLeadersResponseTopic()
			t.Topic = result.Topic
			response.Topics = append(response.Topics, t)
		}
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.Partition, p.ErrorCode, p.ErrorMessage = result.Partition, int16(protocol.CodeOf(result.Err)), protocol.MessageOf(result.Err)
		response.Topics[at].Partitions = append(response.Topics[at].Partitions, p)
	}
	a.awaitElected(ctx, q.ElectionType, response)
	return response
}
