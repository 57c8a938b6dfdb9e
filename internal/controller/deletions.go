package controller

import (
	"errors"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// repeatDeletion is how long a term waits before it asks again a replica that could not be deleted.
const repeatDeletion = 2 * time.Second

// readDeletions looks at the requests to delete topics, which anybody may have made.
func (t *term) readDeletions() error {
	if !t.look.deletions {
		return nil
	}
	names, _, err := t.session.Children(t.ctx, znode.DeleteTopicsPath)
	if err != nil {
		return err
	}
	err = t.markDeletions(names)
	t.look.deletions = err != nil
	return err
}

// markDeletions begins to delete topics that somebody asked for. A request for a topic that does not exist
// is removed, and so is every one where deletion is not allowed.
func (t *term) markDeletions(names []string) error {
	enabled := t.controller.options.Config().Bool("delete.topic.enable")
	var void []coordination.Op
	for _, name := range names {
		topic := t.cluster.image.Topic(name)
		switch {
		case topic == nil || !enabled:
			void = append(void, coordination.Delete(znode.DeleteTopicPath(name), coordination.AnyVersion))
		case t.deletions[name] == nil:
			if _, err := t.beginDeletion(topic); err != nil {
				return err
			}
		}
	}
	if len(void) == 0 {
		return nil
	}
	_, err := coordination.BatchFenced(t.ctx, t.session, t.guard, void)
	return err
}

// beginDeletion hides a topic and stops its replicas.
func (t *term) beginDeletion(topic *metadata.Topic) (*deletion, error) {
	t.controller.options.Logger.Info("controller: deleting a topic", "topic", topic.Name, "topic-id", topic.ID, "partitions", len(topic.Partitions))
	d := newDeletion(topic)
	t.deletions[topic.Name] = d
	t.hide(topic)
	for id, q := range t.queues {
		q.add(func(b *backlog) { t.tellStop(b, id, d) })
	}
	if len(d.left) == 0 {
		return d, t.finishDeletion(d)
	}
	return d, nil
}

// stopped counts the replicas that a broker has deleted.
func (t *term) stopped(a answer, response *kmsg.StopReplicaResponse) error {
	erased := map[P.TopicPartition]bool{}
	for _, topic := range a.request.(*peer.StopReplica).Topics {
		for _, p := range topic.PartitionStates {
			erased[P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = p.Delete
		}
	}
	var finished []*deletion
	for _, p := range response.Partitions {
		tp := P.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		d := t.deletions[p.Topic]
		if d == nil && erased[tp] {
			t.erased(tp, a.broker, P.Code(p.ErrorCode))
		}
		if d == nil || !erased[tp] {
			continue
		}
		if code := P.Code(p.ErrorCode); code != P.None {
			t.controller.options.Logger.Warn("controller: a replica cannot be deleted, trying again", "partition", tp.String(), "broker", a.broker, "error", code)
			if t.again == nil {
				t.again = time.After(repeatDeletion)
			}
			continue
		}
		if d.confirm(a.broker, p.Partition) {
			finished = append(finished, d)
		}
	}
	for _, d := range finished {
		if err := t.survive(t.finishDeletion(d)); err != nil {
			return err
		}
	}
	return nil
}

// repeatDeletions asks again for all replicas that are left, and removes topics whose replicas are gone but
// whose znodes could not be removed.
func (t *term) repeatDeletions() {
	for _, d := range t.deletions {
		if len(d.left) == 0 {
			_ = t.survive(t.finishDeletion(d)) // a fatal error comes back with the next event
			continue
		}
		for id, q := range t.queues {
			q.add(func(b *backlog) { t.tellStop(b, id, d) })
		}
	}
}

// finishDeletion removes the znodes of a topic without replicas: those below it first, then in one
// transaction the topic, its configuration and the request. As long as the request is there a new controller
// starts over; and a topic whose states are gone must not be there without the request, since its partitions
// would be given new states.
func (t *term) finishDeletion(d *deletion) error {
	if t.again == nil {
		t.again = time.After(repeatDeletion) // in case this fails
	}
	name := d.topic.Name
	var below []coordination.Op
	remove := func(path string) { below = append(below, coordination.Delete(path, coordination.AnyVersion)) }
	for i := range d.topic.Partitions {
		tp := P.TopicPartition{Topic: name, Partition: int32(i)}
		remove(znode.StatePath(tp))
		remove(znode.PartitionPath(tp))
	}
	remove(znode.PartitionsPath(name))
	results, err := coordination.BatchFenced(t.ctx, t.session, t.guard, below)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, coordination.ErrNoNode) {
			return r.Err
		}
	}
	if err := t.removeTopic(name); err != nil {
		return err
	}
	t.change(metadata.DropTopic{Name: name})
	delete(t.deletions, name)
	close(d.done)
	t.controller.options.Logger.Info("controller: deleted a topic", "topic", name, "topic-id", d.topic.ID)
	return nil
}

// removeTopic removes what is left of a topic, as far as it is there.
func (t *term) removeTopic(name string) error {
	paths := []string{znode.TopicPath(name), znode.EntityPath(metadata.TopicEntity(name)), znode.DeleteTopicPath(name)}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	var ops []coordination.Op
	for i, r := range found {
		if r.Err == nil {
			ops = append(ops, coordination.Delete(paths[i], coordination.AnyVersion))
		} else if !errors.Is(r.Err, coordination.ErrNoNode) {
			return r.Err
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err = coordination.FencedTxn(t.ctx, t.session, t.guard, ops...)
	return err
}

// deleting lists the names of topics on their way out.
func (t *term) deleting() map[string]bool {
	names := make(map[string]bool, len(t.deletions))
	for name := range t.deletions {
		names[name] = true
	}
	return names
}
