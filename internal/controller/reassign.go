package controller

import (
	"context"
	"errors"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// ReassignmentResult is what became of the request to reassign one partition.
type ReassignmentResult struct {
	P.TopicPartition
	// Err carries Kafka's code and sentence; nil where the reassignment has begun, or has nothing to do.
	Err error
}

// AlterPartitionReassignments begins, changes or takes back reassignments, each partition for itself. The
// results stand in the order of moves. With keepFactor a change of the number of replicas is refused. What has
// begun is stored when this returns, and is carried on by whoever is controller.
func (c *Controller) AlterPartitionReassignments(ctx context.Context, moves []Reassignment, keepFactor bool) ([]ReassignmentResult, error) {
	return ask(ctx, c, func(t *term) ([]ReassignmentResult, error) { return t.reassign(moves, keepFactor) })
}

// Ongoing is a reassignment under way.
type Ongoing struct {
	P.TopicPartition
	// Replicas are the old and the new replicas, the new ones first.
	Replicas []P.BrokerID
	// Adding and Removing are those that are not in the old or the new assignment.
	Adding, Removing []P.BrokerID
}

// ListPartitionReassignments lists the reassignments under way of the given partitions, or with nil all.
func (c *Controller) ListPartitionReassignments(ctx context.Context, partitions []P.TopicPartition) ([]Ongoing, error) {
	return ask(ctx, c, func(t *term) ([]Ongoing, error) { return t.ongoing(partitions), nil })
}

func (t *term) ongoing(partitions []P.TopicPartition) []Ongoing {
	if partitions == nil {
		all := map[P.TopicPartition]bool{}
		for tp := range t.moving {
			all[tp] = true
		}
		for tp := range t.ending {
			all[tp] = true
		}
		partitions = sorted(all)
	}
	var found []Ongoing
	for _, tp := range partitions {
		p := t.cluster.image.Partition(tp)
		if e := t.ending[tp]; e != nil {
			p = e.stored
		}
		if p != nil && moving(p) && t.deletions[tp.Topic] == nil {
			found = append(found, Ongoing{tp, p.Replicas, p.Adding, p.Removing})
		}
	}
	return found
}

// reassign plans and stores reassignments, topic by topic.
func (t *term) reassign(moves []Reassignment, keepFactor bool) ([]ReassignmentResult, error) {
	results := make([]ReassignmentResult, len(moves))
	twice := repeated(moves, func(r Reassignment) P.TopicPartition { return r.TopicPartition })
	scratch := t.cluster
	scratch.loads = scratch.loads.clone()
	byTopic := map[string][]decided{}
	at := map[P.TopicPartition]int{}
	for i, r := range moves {
		results[i].TopicPartition = r.TopicPartition
		topic := t.cluster.image.Topic(r.Topic)
		switch {
		case topic == nil || topic.Partition(r.Partition) == nil || t.deletions[r.Topic] != nil:
			results[i].Err = P.Errorf(P.UnknownTopicOrPartition, "The partition does not exist.")
			continue
		case twice[r.TopicPartition]:
			results[i].Err = P.Errorf(P.InvalidRequest, "Duplicate partition in the request.")
			continue
		case t.look.state[r.TopicPartition]:
			results[i].Err = P.Errorf(P.RequestTimedOut, "The partition's state has just changed.")
			continue
		}
		p := topic.Partition(r.Partition)
		if e := t.ending[r.TopicPartition]; e != nil && r.Replicas == nil {
			results[i].Err = P.NoReassignmentInProgress // nothing can be taken back any more
			continue
		}
		next, err := planMove(&scratch, r.Topic, p, r, keepFactor)
		if results[i].Err = err; next != nil {
			at[r.TopicPartition] = i
			byTopic[r.Topic] = append(byTopic[r.Topic], decided{TopicPartition: r.TopicPartition, topicID: topic.ID, from: p, to: next, why: "reassignment"})
		}
	}
	for _, name := range sortedNames(byTopic) {
		for all := range slices.Chunk(byTopic[name], movesAtOnce) {
			err := t.storeMoves(name, all)
			for _, d := range all {
				results[at[d.TopicPartition]].Err = failed(err)
			}
			if err := t.survive(err); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// movesAtOnce bounds how many partitions of a topic one transaction reassigns.
const movesAtOnce = 400

// storeMoves writes the new assignment of some partitions of a topic together with their states, so that no
// controller finds one without the other, and tells the brokers.
func (t *term) storeMoves(name string, all []decided) error {
	_, write, err := t.reassigned(name, all)
	if err != nil {
		return err
	}
	ops := append(t.premise(), write)
	for _, d := range all {
		if d.to.LeaderEpoch != d.from.LeaderEpoch {
			ops = append(ops, stateOps(d)...)
		}
	}
	results, err := coordination.FencedTxn(t.ctx, t.session, t.guard, ops...)
	if err != nil {
		return t.unsureMoves(name, all, err)
	}
	var changes []metadata.Change
	next := len(t.premise()) + 1
	for _, d := range all {
		if d.to.LeaderEpoch != d.from.LeaderEpoch {
			stat := results[next].Stat
			d.to.Epoch, d.to.Modified = P.PartitionEpoch(stat.Version), stat.Mzxid
			next++
		}
		delete(t.ending, d.TopicPartition)
		changes = append(changes, metadata.PutPartition{TopicPartition: d.TopicPartition, TopicID: d.topicID, State: d.to})
		t.controller.options.Logger.Info("controller: reassigning a partition", "partition", d.String(), "replicas", d.to.Replicas,
			"adding", d.to.Adding, "removing", d.to.Removing, "leader", d.to.Leader, "leader-epoch", d.to.LeaderEpoch)
	}
	t.commit(changes...)
	for _, d := range all {
		t.erase(d.TopicPartition, without(d.from.Replicas, d.to.Replicas), d.to.LeaderEpoch)
	}
	return nil
}

// reassigned reads the assignment of a topic and draws up the operation that gives partitions another one.
func (t *term) reassigned(name string, all []decided) (znode.Topic, coordination.Op, error) {
	path := znode.TopicPath(name)
	data, stat, err := t.session.Get(t.ctx, path)
	if err != nil {
		return znode.Topic{}, coordination.Op{}, err
	}
	stored, err := znode.DecodeTopic(name, data)
	if err != nil {
		return znode.Topic{}, coordination.Op{}, P.Errorf(P.UnknownServerError, "%w", err)
	}
	for _, d := range all {
		if stored.ID != d.topicID || int(d.Partition) >= len(stored.Replicas) {
			t.look.topic[name] = true
			return znode.Topic{}, coordination.Op{}, P.Errorf(P.RequestTimedOut, "The topic has just been changed by somebody else.")
		}
		stored.Assign(d.Partition, d.to.Replicas, d.to.Adding, d.to.Removing)
	}
	return stored, coordination.Set(path, znode.EncodeTopic(stored), stat.Version), nil
}

// unsureMoves has everything read again that a transaction was about which failed or was not answered.
func (t *term) unsureMoves(name string, all []decided, err error) error {
	var txn *coordination.TxnError
	if !errors.As(err, &txn) && !errors.Is(err, coordination.ErrUnknownOutcome) {
		return err
	}
	t.look.brokers, t.look.topic[name] = true, true
	for _, d := range all {
		t.look.state[d.TopicPartition] = true
	}
	if errors.As(err, &txn) {
		return P.Errorf(P.RequestTimedOut, "The partition has just been changed by somebody else: %w", err)
	}
	return err
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
