package controller

import (
	"context"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// TopicResult is what became of one NewTopic.
type TopicResult struct {
	// Name is the topic's.
	Name string
	// ID is that of the new topic; zero where it was not created.
	ID P.TopicID
	// Partitions and ReplicationFactor are what it got, or would have got.
	Partitions        int32
	ReplicationFactor int16
	// Configs is what is set on the topic itself.
	Configs map[string]string
	// Err carries Kafka's code and sentence; nil for success.
	Err error
}

// CreateTopics creates topics, each for itself: one that is wrong does not keep the others from being made.
// The results stand in the order of topics. With validateOnly everything is checked and nothing written.
//
// A topic has been stored, with the states of its partitions, when this returns; brokers are being told. If
// ctx ends first the results say REQUEST_TIMED_OUT, and the topics may come into being all the same.
func (c *Controller) CreateTopics(ctx context.Context, topics []NewTopic, validateOnly bool) []TopicResult {
	results, err := ask(ctx, c, func(t *term) ([]TopicResult, error) { return t.createTopics(topics, validateOnly) })
	if err != nil {
		results = make([]TopicResult, len(topics))
		for i, topic := range topics {
			results[i] = TopicResult{Name: topic.Name, Err: err}
		}
	}
	return results
}

// creation is a planned topic on its way into the store.
type creation struct {
	result *TopicResult
	plan   topicPlan
	put    metadata.PutTopic
	// first are the states that are written together with the topic; the others come after it.
	first []decided
	ops   []coordination.Op
	// stateAt says where each of first stands in ops.
	stateAt []int
	// tries counts how often the configuration was read again.
	tries int
}

// What one transaction that makes topics holds at most: operations and bytes.
const (
	createOps   = 500
	createBytes = 256 << 10
)

// statesWithTopic is how many partitions get their states in the transaction that makes the topic.
const statesWithTopic = 200

func (t *term) createTopics(topics []NewTopic, validateOnly bool) ([]TopicResult, error) {
	planner := planner{
		image: t.cluster.image, loads: t.cluster.loads.clone(), config: t.controller.options.Config(),
		random: t.controller.random, deleting: t.deleting(), policy: t.controller.options.Policy, spoken: t.spoken,
		planned: map[string]string{},
	}
	twice := repeated(topics, func(n NewTopic) string { return n.Name })
	results := make([]TopicResult, len(topics))
	var creations []*creation
	partitions := 0
	for i, topic := range topics {
		r := &results[i]
		r.Name = topic.Name
		if twice[topic.Name] {
			r.Err = P.Errorf(P.InvalidRequest, "Duplicate topic name.")
			continue
		}
		plan, err := planner.planTopic(topic)
		if partitions += len(plan.replicas); err == nil && partitions > maxPartitionsPerRequest {
			err = P.Errorf(P.PolicyViolation, "Excessively large number of partitions per request.")
		}
		if err != nil {
			r.Err = err
			continue
		}
		r.Partitions, r.ReplicationFactor, r.Configs = int32(len(plan.replicas)), int16(len(plan.replicas[0])), plan.configs
		creations = append(creations, &creation{result: r, plan: plan})
	}
	if validateOnly || len(creations) == 0 {
		return results, nil
	}
	err := t.create(creations)
	for _, c := range creations {
		if err != nil && c.result.Err == nil && c.result.ID.IsZero() {
			c.result.Err = failed(err)
		}
	}
	return results, err
}
