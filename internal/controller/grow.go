package controller

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// GrowthResult is what became of one Growth.
type GrowthResult struct {
	// Topic is the topic's name.
	Topic string
	// Err carries Kafka's code and sentence; nil for success.
	Err error
}

// CreatePartitions gives topics more partitions, each topic for itself. The results stand in the order of
// growths. With validateOnly everything is checked and nothing written.
func (c *Controller) CreatePartitions(ctx context.Context, growths []Growth, validateOnly bool) []GrowthResult {
	results, err := ask(ctx, c, func(t *term) ([]GrowthResult, error) { return t.createPartitions(growths, validateOnly) })
	if err != nil {
		results = make([]GrowthResult, len(growths))
		for i, g := range growths {
			results[i] = GrowthResult{Topic: g.Topic, Err: err}
		}
	}
	return results
}

func (t *term) createPartitions(growths []Growth, validateOnly bool) ([]GrowthResult, error) {
	results := make([]GrowthResult, len(growths))
	twice := repeated(growths, func(g Growth) string { return g.Topic })
	var fatal error
	for i, g := range growths {
		results[i].Topic = g.Topic
		switch {
		case fatal != nil:
			results[i].Err = failed(fatal)
		case twice[g.Topic]:
			results[i].Err = P.Errorf(P.InvalidRequest, "Duplicate topic name.")
		default:
			results[i].Err, fatal = t.grow(g, validateOnly)
		}
	}
	return results, fatal
}

// grow gives one topic more partitions. The second error is one of the store.
func (t *term) grow(g Growth, validateOnly bool) (refusal, fatal error) {
	if t.deletions[g.Topic] != nil {
		return P.UnknownTopicOrPartition, nil
	}
	replicas, err := planGrowth(t.cluster.image, t.cluster.loads, g, t.controller.random)
	if err != nil || validateOnly {
		return err, nil
	}
	topic := t.cluster.image.Topic(g.Topic)
	path := znode.TopicPath(g.Topic)
	data, stat, err := t.session.Get(t.ctx, path)
	if err != nil {
		return failed(err), err
	}
	stored, err := znode.DecodeTopic(g.Topic, data)
	if err != nil {
		return P.Errorf(P.UnknownServerError, "%w", err), nil
	}
	if stored.ID != topic.ID || len(stored.Replicas) != len(topic.Partitions) {
		t.look.topic[g.Topic] = true
		return P.Errorf(P.RequestTimedOut, "The topic has just been changed by somebody else."), nil
	}
	stored.Replicas = append(stored.Replicas, replicas...)
	_, err = coordination.FencedTxn(t.ctx, t.session, t.guard, coordination.Set(path, znode.EncodeTopic(stored), stat.Version))
	var txn *coordination.TxnError
	switch {
	case errors.As(err, &txn), errors.Is(err, coordination.ErrUnknownOutcome):
		t.look.topic[g.Topic] = true // whatever happened, the topic's znode says it
		return P.Errorf(P.RequestTimedOut, "The topic has just been changed by somebody else, or the store did not answer: %w", err), nil
	case err != nil:
		return failed(err), err
	}
	t.controller.options.Logger.Info("controller: a topic has more partitions", "topic", g.Topic, "topic-id", topic.ID, "partitions", g.Count)
	return nil, t.grown(topic, stored)
}
