package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// adminPace is how often the admin does something.
const adminPace = 300 * time.Millisecond

// names is how many topics the admin works on at a time.
const names = 6

// topicModel is what the admin was told about topics of its own.
type topicModel struct {
	topics map[string]*modelled
	next   int
	// done counts what was acknowledged, lost what was not and cannot be told.
	done, lost, moves int
}

// modelled is one topic. Once an answer is missing nothing is known of it any more, and it is left alone: what was
// asked for may yet happen.
type modelled struct {
	known, present bool
	partitions     int
	retention      string
}

func newTopicModel() *topicModel { return &topicModel{topics: map[string]*modelled{}} }

// pick chooses a topic whose state is known; a new name replaces one that is not.
func (m *topicModel) pick(random *rand.Rand) (string, *modelled) {
	var known []string
	for name := range m.topics {
		if m.topics[name].known {
			known = append(known, name)
		}
	}
	if len(known) < names {
		name := fmt.Sprintf("made-%d", m.next)
		m.next++
		m.topics[name] = &modelled{known: true}
		return name, m.topics[name]
	}
	name := known[random.IntN(len(known))]
	return name, m.topics[name]
}

// administrate changes topics of its own, and moves partitions of moved around.
//
// It has a client of its own: brokers answer the requests of a connection one after the other, and the deletion of a topic
// while a broker stands still would hold up what a scenario asks for.
func (l *load) administrate(ctx context.Context, client *kadm.Client, random *rand.Rand) {
	l.every(ctx, adminPace, 10*time.Second, func(ctx context.Context) {
		if random.IntN(3) == 0 {
			l.move(ctx, client, random)
		} else {
			l.change(ctx, client, random)
		}
	})
}

// move gives a partition two other replicas. What becomes of that is seen in the end: as many replicas in sync.
func (l *load) move(ctx context.Context, client *kadm.Client, random *rand.Rand) {
	one := random.IntN(3)
	other := (one + 1 + random.IntN(2)) % 3
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign(moved, random.Int32N(movedPartitions), []int32{int32(one), int32(other)})
	responses, err := client.AlterPartitionAssignments(ctx, request)
	if err = errors.Join(err, responses.Error()); err != nil {
		l.note("admin: a move: %v", err)
		return
	}
	l.topics.moves++
}

// change creates, alters, grows or deletes a topic.
func (l *load) change(ctx context.Context, client *kadm.Client, random *rand.Rand) {
	name, topic := l.topics.pick(random)
	var err error
	switch action := random.IntN(4); {
	case !topic.present:
		partitions := 1 + random.IntN(4)
		_, err = client.CreateTopic(ctx, int32(partitions), 3, nil, name)
		if errors.Is(err, kerr.InvalidReplicationFactor) {
			return // a broker is down: there is no such topic, for certain
		}
		*topic = modelled{present: true, partitions: partitions}
	case action == 0:
		retention := strconv.Itoa(3_600_000 + random.IntN(1000))
		err = alter(ctx, client, name, "retention.ms", retention)
		topic.retention = retention
	case action == 1:
		var grown kadm.CreatePartitionsResponses
		grown, err = client.CreatePartitions(ctx, 1, name)
		err = errors.Join(err, grown.Error())
		topic.partitions++
	default:
		_, err = client.DeleteTopic(ctx, name)
		*topic = modelled{}
	}
	topic.known = err == nil
	switch {
	case err == nil:
		l.topics.done++
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.InvalidRequest):
		l.history.contradict("the admin got %w for %s", err, name)
	default:
		l.topics.lost++
		l.note("admin: %s: %v", name, err)
	}
}

// alter changes one property of a topic.
func alter(ctx context.Context, client *kadm.Client, topic, name, value string) error {
	responses, err := client.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	if err != nil {
		return err
	}
	for _, r := range responses {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// settled waits until no partition is being moved.
func (l *load) settled(ctx context.Context) error {
	return l.until(ctx, "reassignments to end", func(ctx context.Context) error {
		moving, err := l.admin.ListPartitionReassignments(ctx, nil)
		if err != nil {
			return err
		}
		for _, r := range moving.Sorted() {
			return fmt.Errorf("%s-%d still moves from %v by %v to %v", r.Topic, r.Partition, r.Replicas, r.RemovingReplicas, r.AddingReplicas)
		}
		return nil
	})
}

// checkTopics compares the topics that there are with the model.
func (l *load) checkTopics(ctx context.Context) (string, error) {
	there, err := l.admin.ListTopics(ctx)
	if err != nil {
		return "", err
	}
	known := 0
	for name, topic := range l.topics.topics {
		detail, shown := there[name]
		switch {
		case !topic.known:
			continue
		case topic.present != shown:
			return "", fmt.Errorf("topic %s: there is %v, acknowledged was %v", name, shown, topic.present)
		case topic.present && len(detail.Partitions) != topic.partitions:
			return "", fmt.Errorf("topic %s has %d partitions, acknowledged were %d", name, len(detail.Partitions), topic.partitions)
		case topic.present && topic.retention != "":
			if err := l.checkRetention(ctx, name, topic.retention); err != nil {
				return "", err
			}
		}
		known++
	}
	return fmt.Sprintf("%d changes of topics acknowledged, %d of unknown outcome, %d topics as acknowledged; %d moves of partitions",
		l.topics.done, l.topics.lost, known, l.topics.moves), nil
}

func (l *load) checkRetention(ctx context.Context, topic, want string) error {
	configs, err := l.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	for _, c := range configs {
		if c.Err != nil {
			return c.Err
		}
		for _, entry := range c.Configs {
			if entry.Key == "retention.ms" && entry.MaybeValue() != want {
				return fmt.Errorf("topic %s has retention.ms %s, acknowledged was %s", topic, entry.MaybeValue(), want)
			}
		}
	}
	return nil
}
