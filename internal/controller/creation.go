package controller

import (
	"errors"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// create stores planned topics, several in one transaction: configuration, topic and states of a topic
// stand or fall together. What goes wrong with one of them is in its result; the error that comes back is
// the store's, and then the topics without a result were not made.
func (t *term) create(creations []*creation) error {
	for _, c := range creations {
		t.draw(c)
	}
	if err := t.readConfigs(creations); err != nil {
		return err
	}
	for len(creations) > 0 {
		n := packed(creations)
		if err := t.createSome(creations[:n]); err != nil {
			return err
		}
		creations = creations[n:]
	}
	return nil
}

// draw makes the first states of a planned topic.
func (t *term) draw(c *creation) {
	c.put = assigned(c.plan.name, znode.Topic{ID: c.plan.id, Replicas: c.plan.replicas})
	scratch := t.cluster
	scratch.loads = scratch.loads.clone()
	for i, p := range c.put.Partitions[:min(len(c.put.Partitions), statesWithTopic)] {
		if v := scratch.begin(p); v.next != nil {
			tp := P.TopicPartition{Topic: c.plan.name, Partition: int32(i)}
			c.first = append(c.first, decided{TopicPartition: tp, topicID: c.plan.id, from: p, to: v.next, why: v.why})
		}
	}
}

// readConfigs looks for configurations that a former topic of the same name has left behind, and draws up
// the operations of every creation.
func (t *term) readConfigs(creations []*creation) error {
	paths := make([]string, len(creations))
	for i, c := range creations {
		paths[i] = znode.EntityPath(metadata.TopicEntity(c.plan.name))
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	for i, c := range creations {
		data := znode.EncodeConfig(c.plan.configs)
		config := coordination.Create(paths[i], data, coordination.CreateOptions{})
		switch r := found[i]; {
		case r.Err == nil:
			config = coordination.Set(paths[i], data, r.Stat.Version)
		case !errors.Is(r.Err, coordination.ErrNoNode):
			return r.Err
		}
		c.ops = append(c.ops[:0], config,
			coordination.Create(znode.TopicPath(c.plan.name), znode.EncodeTopic(znode.Topic{ID: c.plan.id, Replicas: c.plan.replicas}), coordination.CreateOptions{}),
			coordination.Create(znode.PartitionsPath(c.plan.name), nil, coordination.CreateOptions{}))
		c.stateAt = c.stateAt[:0]
		for _, d := range c.first {
			c.ops = append(c.ops, stateOps(d)...)
			c.stateAt = append(c.stateAt, len(c.ops)-1)
		}
	}
	return nil
}

// topicOp is where the operation that makes the topic itself stands in a creation.
const topicOp = 1

// packed is how many creations fit into one transaction; at least one.
func packed(creations []*creation) int {
	ops, bytes := 0, 0
	for i, c := range creations {
		ops += len(c.ops)
		for _, op := range c.ops {
			bytes += op.Size()
		}
		if i > 0 && (ops > createOps || bytes > createBytes) {
			return i
		}
	}
	return len(creations)
}

// createSome stores topics in one transaction. One that the store refuses is taken out, and the others are
// tried again.
func (t *term) createSome(creations []*creation) error {
	for again := slices.Clone(creations); len(again) > 0; {
		var ops []coordination.Op
		var starts []int
		for _, c := range again {
			starts = append(starts, len(ops))
			ops = append(ops, c.ops...)
		}
		results, err := coordination.FencedTxn(t.ctx, t.session, t.guard, ops...)
		var txn *coordination.TxnError
		switch {
		case err == nil:
			return t.created(again, starts, results)
		case errors.As(err, &txn):
			i, found := slices.BinarySearch(starts, txn.Index)
			if !found {
				i--
			}
			if err := t.refused(again[i], txn.Index-starts[i], txn.Err); err != nil {
				return err
			}
			if again[i].result.Err != nil {
				again = slices.Delete(again, i, i+1)
			}
		case errors.Is(err, coordination.ErrUnknownOutcome):
			return t.unsure(again, err)
		default:
			return err
		}
	}
	return nil
}

// refused looks at the operation of a creation that the store refused. Where only the configuration had
// changed meanwhile, the creation may be tried again.
func (t *term) refused(c *creation, op int, err error) error {
	switch {
	case op == topicOp && errors.Is(err, coordination.ErrNodeExists):
		t.look.topic[c.plan.name] = true // somebody else made it
		c.result.Err = P.Errorf(P.TopicAlreadyExists, "Topic '%s' already exists.", c.plan.name)
	case op < topicOp && c.tries < configTries:
		c.tries++
		return t.readConfigs([]*creation{c})
	default:
		c.result.Err = failed(err)
	}
	return nil
}

// configTries bounds how often a creation is tried again because its configuration changed meanwhile.
const configTries = 3

// created takes stored topics over, and gives states to the partitions that were too many for the
// transaction.
func (t *term) created(creations []*creation, starts []int, results []coordination.OpResult) error {
	var changes []metadata.Change
	var rest []P.TopicPartition
	for i, c := range creations {
		for j, d := range c.first {
			stat := results[starts[i]+c.stateAt[j]].Stat
			d.to.Epoch, d.to.Modified = P.PartitionEpoch(stat.Version), stat.Mzxid
			c.put.Partitions[d.Partition] = d.to
		}
		for p := statesWithTopic; p < len(c.put.Partitions); p++ {
			rest = append(rest, P.TopicPartition{Topic: c.plan.name, Partition: int32(p)})
		}
		changes = append(changes, c.put)
		c.result.ID = c.plan.id
		t.controller.options.Logger.Info("controller: created a topic", "topic", c.plan.name, "topic-id", c.plan.id,
			"partitions", len(c.plan.replicas), "replicas", len(c.plan.replicas[0]))
	}
	t.commit(changes...)
	return t.decide(rest)
}

// unsure reads whether topics have been made of which the store did not say.
func (t *term) unsure(creations []*creation, cause error) error {
	for _, c := range creations {
		t.look.topic[c.plan.name] = true
	}
	if err := t.readTopics(); err != nil {
		return err
	}
	for _, c := range creations {
		if topic := t.cluster.image.Topic(c.plan.name); topic != nil && topic.ID == c.plan.id {
			c.result.ID = topic.ID
			continue
		}
		c.result.Err = failed(cause) // it may still happen: then the watch brings it
	}
	return nil
}
