package controller

import (
	"errors"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// load reads the whole cluster and decides about all of it. The brokers are told afterwards: one that has
// restarted must not hear that it still leads in its old epoch.
func (t *term) load() error {
	began := t.controller.options.Now()
	brokers, err := t.listBrokers()
	if err != nil {
		return err
	}
	names, _, err := t.session.Children(t.ctx, znode.TopicsPath)
	if err != nil {
		return err
	}
	topics, err := t.fetchTopics(names)
	if err != nil {
		return err
	}
	marked, _, err := t.session.Children(t.ctx, znode.DeleteTopicsPath)
	if err != nil {
		return err
	}
	t.begin(brokers, topics)
	if err := t.markDeletions(marked); err != nil {
		t.look.deletions = true
		if err := t.survive(err); err != nil {
			return err
		}
	}
	if err := t.survive(t.decide(t.all())); err != nil {
		return err
	}
	if err := t.survive(t.resumeMoves()); err != nil {
		return err
	}
	t.controller.options.Logger.Info("controller: loaded the cluster", "brokers", len(brokers), "topics", len(topics),
		"partitions", t.cluster.image.PartitionCount(), "took", t.controller.options.Now().Sub(began))
	return nil
}

// begin takes over what was read.
func (t *term) begin(brokers []znode.Registration, topics []metadata.PutTopic) {
	changes := []metadata.Change{metadata.SetController{ID: t.controller.options.BrokerID, Epoch: t.cluster.epoch}}
	for _, b := range brokers {
		changes = append(changes, metadata.PutBroker{Broker: &b.Broker})
		t.cluster.stops[b.ID] = b.Stopped
	}
	for _, topic := range topics {
		changes = append(changes, topic)
	}
	t.change(changes...)
	t.cluster.settling = t.cold && t.missing()
	if t.cluster.settling {
		t.settle = time.After(settleTime)
	}
	t.look.requests, t.look.notifications = true, true
	t.armBalance(firstBalance)
	t.widening = time.After(widenAfter)
	t.filling.slowed = true // until it has been looked
	t.armFill(fillAfter)
}

// all lists every partition.
func (t *term) all() []P.TopicPartition {
	return t.partitions(func(*metadata.Partition) bool { return true })
}

// partitions lists those that match, by topic and number, without topics that are on their way out.
func (t *term) partitions(match func(*metadata.Partition) bool) []P.TopicPartition {
	var found []P.TopicPartition
	for _, name := range t.cluster.image.Topics() {
		if t.deletions[name] != nil {
			continue
		}
		for i, p := range t.cluster.image.Topic(name).Partitions {
			if p.Known() && match(p) {
				found = append(found, P.TopicPartition{Topic: name, Partition: int32(i)})
			}
		}
	}
	return found
}

// missing reports whether a broker has replicas and is not registered.
func (t *term) missing() bool {
	for id, n := range t.cluster.loads.replicas {
		if n > 0 && !t.cluster.image.Alive(id) {
			return true
		}
	}
	return false
}

// settled ends the time in which missing brokers are waited for.
func (t *term) settled() {
	t.settle, t.cluster.settling, t.look.all = nil, false, true
}

// decideAgain decides about everything once settling has ended.
func (t *term) decideAgain() error {
	if !t.look.all {
		return nil
	}
	t.look.all = false
	return t.decide(t.all())
}

// listBrokers reads all registrations. One that cannot be read is left out: it must not keep the cluster
// from having a controller.
func (t *term) listBrokers() ([]znode.Registration, error) {
	names, stat, err := t.session.Children(t.ctx, znode.BrokersPath)
	if err != nil {
		return nil, err
	}
	t.registered = stat.Version // before the registrations are read: one that comes in between changes it again
	var ids []P.BrokerID
	var paths []string
	for _, name := range names {
		if id, err := znode.ParseBrokerName(name); err == nil {
			ids, paths = append(ids, id), append(paths, znode.BrokerPath(id))
		}
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return nil, err
	}
	var brokers []znode.Registration
	for i, r := range found {
		if errors.Is(r.Err, coordination.ErrNoNode) {
			continue
		}
		if r.Err != nil {
			return nil, r.Err
		}
		b, err := znode.DecodeRegistration(ids[i], P.BrokerEpoch(r.Stat.Czxid), r.Data)
		if err != nil {
			t.controller.options.Logger.Error("controller: a registration is damaged, its broker counts as dead", "broker", ids[i], "error", err)
			continue
		}
		brokers = append(brokers, b)
	}
	return brokers, nil
}

// fetchTopics reads topics with the states of all their partitions. A topic that is gone meanwhile is left
// out, and so is one that cannot be read.
func (t *term) fetchTopics(names []string) ([]metadata.PutTopic, error) {
	slices.Sort(names)
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.TopicPath(name)
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return nil, err
	}
	var topics []metadata.PutTopic
	var unnamed []unnamedTopic
	for i, r := range found {
		if errors.Is(r.Err, coordination.ErrNoNode) {
			continue
		}
		if r.Err != nil {
			return nil, r.Err
		}
		topic, err := znode.DecodeTopic(names[i], r.Data)
		if err != nil {
			t.controller.options.Logger.Error("controller: a topic is damaged and stays as it is", "topic", names[i], "error", err)
			continue
		}
		if topic.ID.IsZero() {
			unnamed = append(unnamed, unnamedTopic{at: len(topics), version: r.Stat.Version, topic: topic})
		}
		topics = append(topics, assigned(names[i], topic))
	}
	if err := t.giveIDs(topics, unnamed); err != nil {
		return nil, err
	}
	return topics, t.fillStates(topics)
}

// assigned makes a topic of which only the assignment is known.
func assigned(name string, topic znode.Topic) metadata.PutTopic {
	put := metadata.PutTopic{Name: name, ID: topic.ID, Partitions: make([]*metadata.Partition, len(topic.Replicas))}
	for p, replicas := range topic.Replicas {
		if replicas != nil {
			put.Partitions[p] = &metadata.Partition{
				Leader: P.NoBroker, LeaderEpoch: P.NoLeaderEpoch, Epoch: P.AnyEpoch, Replicas: replicas,
				Adding: topic.Adding[int32(p)], Removing: topic.Removing[int32(p)],
			}
		}
	}
	return put
}

// fillStates reads the states of topics' partitions into them.
func (t *term) fillStates(topics []metadata.PutTopic) error {
	var partitions []P.TopicPartition
	var targets []*metadata.Partition
	for _, topic := range topics {
		for i, p := range topic.Partitions {
			if p != nil {
				partitions = append(partitions, P.TopicPartition{Topic: topic.Name, Partition: int32(i)})
				targets = append(targets, p)
			}
		}
	}
	found, err := t.getStates(partitions)
	if err != nil {
		return err
	}
	for i, r := range found {
		if err := t.fillState(targets[i], partitions[i], r); err != nil {
			return err
		}
	}
	return nil
}

// getStates reads the state znodes of partitions.
func (t *term) getStates(partitions []P.TopicPartition) ([]coordination.GetResult, error) {
	paths := make([]string, len(partitions))
	for i, tp := range partitions {
		paths[i] = znode.StatePath(tp)
	}
	return t.session.GetMany(t.ctx, paths)
}

// fillState puts what was read of a state into a partition; a missing one leaves it without. A damaged one
// leaves the partition without a leader until somebody repairs the znode: what it said about epochs must
// not be guessed.
func (t *term) fillState(p *metadata.Partition, tp P.TopicPartition, r coordination.GetResult) error {
	switch {
	case errors.Is(r.Err, coordination.ErrNoNode):
		return nil
	case r.Err != nil:
		return r.Err
	}
	p.Epoch, p.Modified = P.PartitionEpoch(r.Stat.Version), r.Stat.Mzxid
	state, err := znode.DecodeState(tp, r.Data)
	if err != nil {
		t.controller.options.Logger.Error("controller: a partition's state is damaged, it stays offline until the znode is repaired",
			"partition", tp.String(), "error", err)
		return nil
	}
	p.Leader, p.LeaderEpoch, p.ISR, p.Recovering = state.Leader, state.LeaderEpoch, state.ISR, state.Recovering
	p.ControllerEpoch, p.Doubtful, p.Eligible, p.UncleanEpoch = state.ControllerEpoch, state.Doubtful, state.Eligible, state.UncleanEpoch
	return nil
}
