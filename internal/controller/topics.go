package controller

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// topicEvent notes what an event below /brokers/topics is about: the list of topics or one of them. What is
// below a topic is written by controllers alone.
func (t *term) topicEvent(event coordination.Event) {
	if event.Kind == coordination.Resync || event.Path == znode.TopicsPath {
		t.look.topics = true
		return
	}
	name, below, _ := strings.Cut(strings.TrimPrefix(event.Path, znode.TopicsPath+"/"), "/")
	if below == "" && name != "" {
		t.look.topic[name] = true
	}
}

// readTopics looks at topics that may have been made, changed or removed by somebody else.
func (t *term) readTopics() error {
	if t.look.topics {
		names, _, err := t.session.Children(t.ctx, znode.TopicsPath)
		if err != nil {
			return err
		}
		t.look.topics = false
		for _, name := range append(names, t.cluster.image.Topics()...) {
			t.look.topic[name] = true
		}
	}
	if len(t.look.topic) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(t.look.topic))
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.TopicPath(name)
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	var unknown []string
	for i, name := range names {
		known, err := t.readTopic(name, found[i])
		if err != nil {
			return err
		}
		if !known {
			unknown = append(unknown, name)
		}
		delete(t.look.topic, name)
	}
	return t.takeIn(unknown)
}

// readTopic compares one topic with its znode. It returns false where the topic has to be read whole,
// since it is not known, or not under this id.
func (t *term) readTopic(name string, r coordination.GetResult) (known bool, err error) {
	topic := t.cluster.image.Topic(name)
	if r.Err != nil && !errors.Is(r.Err, coordination.ErrNoNode) {
		return false, r.Err
	}
	if r.Err != nil {
		if topic != nil && t.deletions[name] == nil {
			t.controller.options.Logger.Warn("controller: a topic was removed by somebody else", "topic", name)
			t.forget(topic)
		}
		return true, nil
	}
	if topic == nil {
		return false, nil
	}
	now, err := znode.DecodeTopic(name, r.Data)
	if err != nil {
		t.controller.options.Logger.Error("controller: a topic is damaged and stays as it is", "topic", name, "error", err)
		return true, nil
	}
	if now.ID.IsZero() {
		return false, nil // it gets an id
	}
	if now.ID != topic.ID && !topic.ID.IsZero() {
		t.forget(topic)
	}
	if now.ID != topic.ID {
		return false, nil
	}
	return true, t.grown(topic, now)
}

// forget takes a topic out of the image and out of the brokers' sight.
func (t *term) forget(topic *metadata.Topic) {
	t.hide(topic)
	t.change(metadata.DropTopic{Name: topic.Name})
	if d := t.deletions[topic.Name]; d != nil {
		delete(t.deletions, topic.Name)
		close(d.done)
	}
}

// hide tells all brokers that a topic is on its way out.
func (t *term) hide(topic *metadata.Topic) {
	for _, q := range t.queues {
		q.add(func(b *backlog) {
			for i, p := range topic.Partitions {
				if p.Known() && p.Epoch != P.AnyEpoch {
					tp := P.TopicPartition{Topic: topic.Name, Partition: int32(i)}
					b.metadata(t.cluster.image, tp, told{topicID: topic.ID, old: p})
				}
			}
		})
	}
}

// grown takes over a changed assignment of a topic, and gives states to partitions that have none.
func (t *term) grown(topic *metadata.Topic, now znode.Topic) error {
	var changes []metadata.Change
	var touched []P.TopicPartition
	for i, fresh := range assigned(topic.Name, now).Partitions {
		tp := P.TopicPartition{Topic: topic.Name, Partition: int32(i)}
		old := topic.Partition(int32(i))
		switch {
		case fresh == nil:
			continue
		case old != nil:
			if e := t.ending[tp]; e != nil && sameAssignment(e.stored, fresh) {
				continue // the znode does not say yet that the reassignment has ended
			}
			if sameAssignment(old, fresh) {
				continue
			}
			moved := *old
			moved.Replicas, moved.Adding, moved.Removing = fresh.Replicas, fresh.Adding, fresh.Removing
			fresh = &moved
		}
		changes = append(changes, metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: fresh})
		touched = append(touched, tp)
	}
	if len(changes) == 0 {
		return nil
	}
	t.commit(changes...)
	return t.decide(touched)
}

// takeIn reads topics that are not known, with their states, and gives states to partitions without.
func (t *term) takeIn(names []string) error {
	if len(names) == 0 {
		return nil
	}
	topics, err := t.fetchTopics(names)
	if err != nil {
		for _, name := range names {
			t.look.topic[name] = true
		}
		return err
	}
	var changes []metadata.Change
	var partitions []P.TopicPartition
	for _, topic := range topics {
		changes = append(changes, topic)
		for i := range topic.Partitions {
			partitions = append(partitions, P.TopicPartition{Topic: topic.Name, Partition: int32(i)})
		}
	}
	t.commitDecided(partitions, changes)
	t.look.deletions = true // the request for its deletion may have been seen before the topic
	return t.decide(partitions)
}

// sameAssignment reports whether two partitions have the same replicas, and are reassigned in the same way.
func sameAssignment(a, b *metadata.Partition) bool {
	return slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.Adding, b.Adding) && slices.Equal(a.Removing, b.Removing)
}
