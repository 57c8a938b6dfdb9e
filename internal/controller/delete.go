package controller

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// TopicRef names a topic by its name or, where that is empty, by its id.
type TopicRef struct {
	Name string
	ID   P.TopicID
}

// DeleteResult is what became of the deletion of one topic.
type DeleteResult struct {
	// Name and ID are the topic's, as far as they are known.
	Name string
	ID   P.TopicID
	// Err carries Kafka's code and sentence; nil for success.
	Err error
}

// DeleteTopics deletes topics with their records. It returns when they are gone, so that topics of the same
// names can be made at once; a topic that has a replica on a dead broker counts as deleted when no client
// sees it any more, and is removed when that broker returns. If ctx ends first the results say
// REQUEST_TIMED_OUT, and the deletion goes on.
func (c *Controller) DeleteTopics(ctx context.Context, topics []TopicRef) []DeleteResult {
	type begun struct {
		results []DeleteResult
		wait    []<-chan struct{}
		ended   <-chan struct{}
	}
	b, err := ask(ctx, c, func(t *term) (begun, error) {
		results, wait, err := t.deleteTopics(topics)
		return begun{results, wait, t.done}, err
	})
	if err != nil {
		results := make([]DeleteResult, len(topics))
		for i, topic := range topics {
			results[i] = DeleteResult{Name: topic.Name, ID: topic.ID, Err: err}
		}
		return results
	}
	for i := range b.results {
		if b.wait[i] == nil {
			continue
		}
		select {
		case <-b.wait[i]:
		case <-b.ended: // the request is stored: the next controller carries it out
		case <-ctx.Done():
			b.results[i].Err = ctx.Err()
		}
	}
	return b.results
}

// deleteTopics stores the requests to delete topics and begins with it. For every topic there is a channel
// to wait on, or nil.
func (t *term) deleteTopics(topics []TopicRef) (results []DeleteResult, wait []<-chan struct{}, err error) {
	results, wait = make([]DeleteResult, len(topics)), make([]<-chan struct{}, len(topics))
	twice := repeated(topics, func(r TopicRef) TopicRef { return r })
	var ops []coordination.Op
	var at []int
	found := make([]*metadata.Topic, len(topics))
	for i, ref := range topics {
		results[i] = DeleteResult{Name: ref.Name, ID: ref.ID}
		if twice[ref] {
			results[i].Err = P.Errorf(P.InvalidRequest, "Duplicate topic name.")
			continue
		}
		topic, err := t.find(ref)
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i].Name, results[i].ID, found[i] = topic.Name, topic.ID, topic
		if t.deletions[topic.Name] == nil {
			ops = append(ops, coordination.Create(znode.DeleteTopicPath(topic.Name), nil, coordination.CreateOptions{}))
			at = append(at, i)
		}
	}
	stored, err := coordination.BatchFenced(t.ctx, t.session, t.guard, ops)
	for j, i := range at {
		if e := stored[j].Err; e != nil && !errors.Is(e, coordination.ErrNodeExists) {
			results[i].Err = failed(e)
			t.look.deletions = true
			found[i] = nil
		}
	}
	if err != nil {
		return results, wait, err
	}
	for i, topic := range found {
		if topic == nil {
			continue
		}
		if wait[i], err = t.deleteTopic(topic); err != nil {
			return results, wait, err
		}
	}
	return results, wait, nil
}

// find looks a topic up by name or id.
func (t *term) find(ref TopicRef) (*metadata.Topic, error) {
	if !t.controller.options.Config().Bool("delete.topic.enable") {
		return nil, P.TopicDeletionDisabled
	}
	if ref.Name != "" {
		if topic := t.cluster.image.Topic(ref.Name); topic != nil {
			return topic, nil
		}
		return nil, P.UnknownTopicOrPartition
	}
	if topic := t.cluster.image.TopicByID(ref.ID); topic != nil {
		return topic, nil
	}
	return nil, P.UnknownTopicID
}

// deleteTopic begins a deletion unless it has begun, and gives what to wait for: nil where a dead broker
// would make that long.
func (t *term) deleteTopic(topic *metadata.Topic) (<-chan struct{}, error) {
	d := t.deletions[topic.Name]
	if d == nil {
		var err error
		if d, err = t.beginDeletion(topic); err != nil {
			return nil, err
		}
	}
	if d.held(t.cluster.image) {
		return nil, nil
	}
	return d.done, nil
}
