package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// createPartitions grows topics to a number of partitions (versions 0 to 3; flexible from 2 on, 3 allows an
// answer that says that the client is throttled). The count is what the topic shall have, not what is added.
// An assignment names the brokers of the new partitions only.
//
// There is no way back, and keys go to other partitions than before: nothing here does it by itself.
func (a *API) createPartitions(ctx context.Context, r *Request, q *kmsg.CreatePartitionsRequest) *kmsg.CreatePartitionsResponse {
	response := respondTo(r, kmsg.NewPtrCreatePartitionsResponse())
	elsewhere := a.forward(ctx, r, q, millis(q.TimeoutMillis))
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	if answer, ok := elsewhere.(*kmsg.CreatePartitionsResponse); ok {
		if !q.ValidateOnly {
			a.awaitGrown(ctx, q, answer)
		}
		return answer
	}
	topics := make([]controller.Growth, 0, len(q.Topics))
	for _, t := range q.Topics {
		grow := controller.Growth{Topic: t.Topic, Count: t.Count}
		if t.Assignment != nil {
			grow.Assignment = [][]protocol.BrokerID{} // an empty list is an assignment, too short
		}
		for _, assigned := range t.Assignment {
			replicas := make([]protocol.BrokerID, len(assigned.Replicas))
			for i, id := range assigned.Replicas {
				replicas[i] = protocol.BrokerID(id)
			}
			grow.Assignment = append(grow.Assignment, replicas)
		}
		topics = append(topics, grow)
	}
	answered := map[string]bool{}
	for _, result := range a.Controller.CreatePartitions(ctx, topics, q.ValidateOnly) {
		if answered[result.Topic] {
			continue // a name that stands there twice gets one answer
		}
		answered[result.Topic] = true
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = result.Topic, int16(protocol.CodeOf(result.Err)), protocol.MessageOf(result.Err)
		response.Topics = append(response.Topics, t)
	}
	if !q.ValidateOnly {
		a.awaitGrown(ctx, q, response)
	}
	return response
}
