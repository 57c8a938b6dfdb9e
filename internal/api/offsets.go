package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// offsetCommit stores offsets of a group (versions 2 to 10). From version 10 on topics go by id. Partitions
// that are not known are refused one by one, the others reach the coordinator under their topics' names.
//
// The check is against this broker's image, which may be a moment behind: a client learns
// UNKNOWN_TOPIC_OR_PARTITION, refreshes and tries again. Without it an offset of a topic that was
// deleted could be stored after the tombstones of the deletion, and would stay for ever.
func (a *API) offsetCommit(ctx context.Context, r *Request, q *kmsg.OffsetCommitRequest) func(context.Context) *kmsg.OffsetCommitResponse {
	var unknown []kmsg.OffsetCommitResponseTopic
	topics := q.Topics[:0]
	for _, t := range q.Topics {
		name, err := a.topicName(r.Version >= 10, t.Topic, t.TopicID)
		if err != nil {
			unknown = append(unknown, refusedCommit(t, t.Partitions, err))
			continue
		}
		t.Topic = name
		known := func(p kmsg.OffsetCommitRequestTopicPartition) bool { return a.exists(name, p.Partition) }
		if gone := without(t.Partitions, known); len(gone) > 0 {
			unknown = append(unknown, refusedCommit(t, gone, protocol.UnknownTopicOrPartition))
			t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool { return !known(p) })
		}
		if len(t.Partitions) > 0 {
			topics = append(topics, t)
		}
	}
	q.Topics = topics
	wait := a.Groups.BeginOffsetCommit(ctx, q)
	return func(ctx context.Context) *kmsg.OffsetCommitResponse {
		response := wait(ctx)
		for _, refused := range unknown {
			at := slices.IndexFunc(response.Topics, func(t kmsg.OffsetCommitResponseTopic) bool {
				return t.Topic == refused.Topic && t.TopicID == refused.TopicID
			})
			if at < 0 {
				response.Topics = append(response.Topics, refused)
				continue
			}
			response.Topics[at].Partitions = append(response.Topics[at].Partitions, refused.Partitions...)
		}
		return response
	}
}

// without copies the elements that a condition does not hold for.
func without[E any](elements []E, holds func(E) bool) []E {
	var rest []E
	for _, e := range elements {
		if !holds(e) {
			rest = append(rest, e)
		}
	}
	return rest
}

func refusedCommit(t kmsg.OffsetCommitRequestTopic, partitions []kmsg.OffsetCommitRequestTopicPartition, err error) kmsg.OffsetCommitResponseTopic {
	answer := kmsg.NewOffsetCommitResponseTopic()
	answer.Topic, answer.TopicID = t.Topic, t.TopicID
	for _, p := range partitions {
		one := kmsg.NewOffsetCommitResponseTopicPartition()
		one.Partition, one.ErrorCode = p.Partition, int16(protocol.CodeOf(err))
		answer.Partitions = append(answer.Partitions, one)
	}
	return answer
}

// offsetFetch reads offsets of groups (versions 1 to 10, many groups from 8 on, topic ids from 10 on). A
// null list of topics means all that the group has. The coordinator knows topics by name only; ids are
// put in and taken out here.
func (a *API) offsetFetch(ctx context.Context, r *Request, q *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	if r.Version < 10 {
		return a.Groups.OffsetFetch(ctx, q)
	}
	unknown := make([][]kmsg.OffsetFetchResponseGroupTopic, len(q.Groups))
	for i := range q.Groups {
		unknown[i] = a.nameTopics(&q.Groups[i])
	}
	response := a.Groups.OffsetFetch(ctx, q)
	for i := range response.Groups {
		a.identifyTopics(&response.Groups[i])
		response.Groups[i].Topics = append(response.Groups[i].Topics, unknown[i]...)
	}
	return response
}

// nameTopics fills in the names of a group's topics and takes those out that are not known.
func (a *API) nameTopics(g *kmsg.OffsetFetchRequestGroup) (unknown []kmsg.OffsetFetchResponseGroupTopic) {
	if g.Topics == nil {
		return nil
	}
	known := g.Topics[:0]
	for _, t := range g.Topics {
		name, err := a.topicName(true, "", t.TopicID)
		if err == nil {
			t.Topic = name
			known = append(known, t)
			continue
		}
		answer := kmsg.NewOffsetFetchResponseGroupTopic()
		answer.TopicID = t.TopicID
		for _, number := range t.Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.Metadata, p.ErrorCode = number, -1, new(string), int16(protocol.UnknownTopicID)
			answer.Partitions = append(answer.Partitions, p)
		}
		unknown = append(unknown, answer)
	}
	g.Topics = known
	return unknown
}

// identifyTopics fills in the ids of a group's topics; those that were deleted since have none, and go.
func (a *API) identifyTopics(g *kmsg.OffsetFetchResponseGroup) {
	image := a.View.Image()
	known := g.Topics[:0]
	for _, t := range g.Topics {
		if topic := image.Topic(t.Topic); topic != nil {
			t.TopicID = topic.ID
			known = append(known, t)
		}
	}
	g.Topics = known
}
