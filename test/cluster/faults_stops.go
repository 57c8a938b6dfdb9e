package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A controller stops a replica with two requests: the first one keeps the log, and when the broker has answered the
// second one deletes it. In the rounds below the relay keeps the second one back, and the controller dies.

// betweenStops is a round of a deletion and of a reassignment in turn.
func betweenStops(ctx context.Context, t *trial, round int) error {
	if round%2 == 0 {
		return betweenStopsOfDeletion(ctx, t, round)
	}
	return betweenStopsOfMove(ctx, t, round)
}

// betweenStopsOfDeletion is a round in which no broker gets the second request for a topic that is deleted, or in every
// second one of these rounds one broker does not, and the other one has deleted its replicas.
func betweenStopsOfDeletion(ctx context.Context, t *trial, round int) error {
	topic := fmt.Sprintf("doomed-%d", round)
	if err := t.create(ctx, topic, 6, 3); err != nil {
		return err
	}
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	kept, others := t.others(head), []*broker(nil)
	if round%4 == 2 {
		kept, others = kept[:1], kept[1:]
	}
	act := func(ctx context.Context) { _, _ = t.load.admin.DeleteTopic(ctx, topic) }
	if err := t.killBetween(ctx, topic, kept, others, act); err != nil {
		return err
	}
	t.fault("controller killed between the StopReplicas of a deletion")
	return t.vanished(ctx, topic)
}

// betweenStopsOfMove is a round in which partitions move away from one broker, which does not get the second request.
func betweenStopsOfMove(ctx context.Context, t *trial, round int) error {
	topic := fmt.Sprintf("shifted-%d", round)
	if err := t.create(ctx, topic, 3, 2); err != nil { // each broker has two of six replicas
		return err
	}
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	left := t.others(head)[round/2%2]
	request, targets, err := t.away(ctx, topic, left)
	if err != nil {
		return err
	}
	move := func(ctx context.Context) error {
		responses, err := t.load.admin.AlterPartitionAssignments(ctx, request)
		return errors.Join(err, responses.Error())
	}
	if err := t.killBetween(ctx, topic, []*broker{left}, nil, func(ctx context.Context) { _ = move(ctx) }); err != nil {
		return err
	}
	t.fault("controller killed between the StopReplicas of a move")
	if err := t.load.settled(ctx); err != nil {
		return err
	}
	if err := t.load.until(ctx, "partitions to have moved", func(ctx context.Context) error {
		return errors.Join(t.liesByPartition(ctx, topic, targets), left.holdsNone(topic))
	}); err != nil {
		return err
	}
	return t.vanished(ctx, topic)
}

// killBetween does something that stops replicas of a topic, and kills the controller when the brokers in kept have
// answered the first request and have not got the second, and the others have done the second.
func (t *trial) killBetween(ctx context.Context, topic string, kept, others []*broker, act func(context.Context)) error {
	t.relay.keepBack(erasing(topic), kept...)
	defer t.relay.lose()
	finish := aside(ctx, act)
	head, err := t.caught(ctx)
	if err != nil {
		return err
	}
	if err := t.load.until(ctx, "the other broker to delete its replicas", func(context.Context) error {
		return each(others, func(b *broker) error { return b.holdsNone(topic) })
	}); err != nil {
		return err
	}
	t.kill(head)
	if err := each(kept, func(b *broker) error { return b.holds(topic) }); err != nil {
		return err
	}
	t.relay.lose()
	return t.replaced(ctx, head, finish)
}

// away is a request by which the partitions of a topic leave a broker for the one that has no replica of them, and the
// replicas that they have then.
func (t *trial) away(ctx context.Context, topic string, from *broker) (request kadm.AlterPartitionAssignmentsReq, targets map[int32][]int32, err error) {
	topics, err := t.load.admin.ListTopics(ctx, topic)
	if err != nil {
		return request, nil, err
	}
	targets = map[int32][]int32{}
	for _, p := range topics[topic].Partitions {
		if !slices.Contains(p.Replicas, int32(from.id)) {
			continue
		}
		for _, b := range t.others(from) {
			targets[p.Partition] = append(targets[p.Partition], int32(b.id))
		}
		request.Assign(topic, p.Partition, targets[p.Partition])
	}
	if len(targets) == 0 {
		err = fmt.Errorf("broker %d has no replica of %s", from.id, topic)
	}
	return request, targets, err
}

// liesByPartition fails where a partition has other replicas than it should.
func (t *trial) liesByPartition(ctx context.Context, topic string, targets map[int32][]int32) error {
	topics, err := t.load.admin.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	for partition, target := range targets {
		if p := topics[topic].Partitions[partition]; !sameMembers(p.Replicas, target) || !sameMembers(p.ISR, target) {
			return fmt.Errorf("%s-%d has replicas %v and in-sync replicas %v, wanted are %v", topic, partition, p.Replicas, p.ISR, target)
		}
	}
	return nil
}

// folders are where a broker has logs of a topic, but for those that are about to be deleted.
func (b *broker) folders(topic string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(b.Dir, "data", topic+"-[0-9]*"))
	return slices.DeleteFunc(found, func(folder string) bool { return strings.Contains(filepath.Base(folder), ".") }), err
}

// holds fails where a broker has no log of a topic.
func (b *broker) holds(topic string) error {
	folders, err := b.folders(topic)
	if err == nil && len(folders) == 0 {
		err = fmt.Errorf("broker %d has deleted its replicas of %s", b.id, topic)
	}
	return err
}

// holdsAll fails where a broker has not so many logs of a topic.
func (b *broker) holdsAll(topic string, n int) error {
	folders, err := b.folders(topic)
	if err == nil && len(folders) != n {
		err = fmt.Errorf("broker %d has %d replicas of %s", b.id, len(folders), topic)
	}
	return err
}

// holdsNone fails where a broker has a log of a topic.
func (b *broker) holdsNone(topic string) error {
	folders, err := b.folders(topic)
	if err == nil && len(folders) > 0 {
		err = fmt.Errorf("broker %d has %s", b.id, strings.Join(folders, ", "))
	}
	return err
}

// each does something with all brokers.
func each(brokers []*broker, do func(*broker) error) error {
	var errs []error
	for _, b := range brokers {
		errs = append(errs, do(b))
	}
	return errors.Join(errs...)
}
