package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// deleteTopics deletes topics by name, from version 6 on also by id (versions 0 to 6).
func (a *API) deleteTopics(ctx context.Context, r *Request, q *kmsg.DeleteTopicsRequest) *kmsg.DeleteTopicsResponse {
	response := respondTo(r, kmsg.NewPtrDeleteTopicsResponse())
	ctx, cancel := within(ctx, q.TimeoutMillis)
	defer cancel()
	var topics []controller.TopicRef
	for i := range q.TopicNames {
		topics = append(topics, controller.TopicRef{Name: q.TopicNames[i]})
	}
	for _, t := range q.Topics {
		ref := controller.TopicRef{ID: t.TopicID}
		if t.Topic != nil {
			ref.Name = *t.Topic
		}
		topics = append(topics, ref)
	}
	if !a.Config().Bool("delete.topic.enable") {
		return refuseDeletes(response, topics)
	}
	for _, result := range a.Controller.DeleteTopics(ctx, topics) {
		response.Topics = append(response.Topics, deleted(result.Name, result.ID, result.Err))
		if result.Err == nil {
			a.traffic.Forget(result.Name)
		}
	}
	return response
}

func refuseDeletes(response *kmsg.DeleteTopicsResponse, topics []controller.TopicRef) *kmsg.DeleteTopicsResponse {
	err := error(protocol.TopicDeletionDisabled)
	if response.Version < 3 {
		err = protocol.InvalidRequest
	}
	for _, t := range topics {
		response.Topics = append(response.Topics, deleted(t.Name, t.ID, err))
	}
	return response
}

func deleted(name string, id protocol.TopicID, err error) kmsg.DeleteTopicsResponseTopic {
	t := kmsg.NewDeleteTopicsResponseTopic()
	if name != "" {
		t.Topic = &name
	}
	t.TopicID = id
	t.ErrorCode, t.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
	return t
}
