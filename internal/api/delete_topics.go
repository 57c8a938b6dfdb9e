package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// deleteTopics deletes topics by name, from version 6 on also by id (versions 0 to 6):
//
//	1  throttle time
//	3  TOPIC_DELETION_DISABLED; before that INVALID_REQUEST stands for it
//	5  error messages
//	6  topic ids (KIP-516), in a list of its own
//
// It answers when the topics are gone for everybody, so that others of their names can be made at once. The
// files of their partitions go later.
func (a *API) deleteTopics(ctx context.Context, r *Request, q *kmsg.DeleteTopicsRequest) *kmsg.DeleteTopicsResponse {
	response := respondTo(r, kmsg.NewPtrDeleteTopicsResponse())
	elsewhere := a.forward(ctx, r, q, millis(q.TimeoutMillis))
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	if answer, ok := elsewhere.(*kmsg.DeleteTopicsResponse); ok {
		a.awaitDeleted(ctx, answer)
		return answer
	}
	topics := topicRefs(q, response)
	if !a.Config().Bool("delete.topic.enable") {
		return refuseDeletes(response, topics)
	}
	for i, result := range a.Controller.DeleteTopics(ctx, topics) {
		if slices.Contains(topics[:i], topics[i]) {
			continue // one answer for all that name the same topic
		}
		response.Topics = append(response.Topics, deleted(result.Name, result.ID, result.Err))
		if result.Err == nil {
			a.traffic.Forget(result.Name)
		}
	}
	return response
}

// topicRefs lists the topics that a request names. Those that it names both ways or not at all are answered.
func topicRefs(q *kmsg.DeleteTopicsRequest, response *kmsg.DeleteTopicsResponse) []controller.TopicRef {
	var topics []controller.TopicRef
	named := func(name string) {
		if name != "" {
			topics = append(topics, controller.TopicRef{Name: name})
		} else { // which a reference by id would be
			response.Topics = append(response.Topics, deleted(name, protocol.TopicID{}, protocol.UnknownTopicOrPartition))
		}
	}
	if q.Version < 6 {
		for _, name := range q.TopicNames {
			named(name)
		}
		return topics
	}
	for _, t := range q.Topics {
		byID := t.TopicID != [16]byte{}
		switch {
		case t.Topic != nil && byID:
			response.Topics = append(response.Topics, deleted(*t.Topic, t.TopicID,
				protocol.Errorf(protocol.InvalidRequest, "You may not specify both topic name and topic id.")))
		case t.Topic != nil:
			named(*t.Topic)
		case byID:
			topics = append(topics, controller.TopicRef{ID: t.TopicID})
		default:
			response.Topics = append(response.Topics, deleted("", t.TopicID,
				protocol.Errorf(protocol.InvalidRequest, "Neither topic name nor id were specified.")))
		}
	}
	return topics
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
	if name != "" || id == (protocol.TopicID{}) {
		t.Topic = &name
	}
	t.TopicID = id
	t.ErrorCode, t.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
	return t
}
