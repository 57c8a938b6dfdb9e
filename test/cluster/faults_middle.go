package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Topics of scenarios in which the controller dies in the middle of something.
const (
	wide      = "wide"      // many partitions, to be elected
	wandering = "wandering" // is reassigned
)

// How many partitions they have.
const (
	widePartitions      = 150
	wanderingPartitions = 12
)

func exceptExists(err error) error {
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

func exceptUnknown(err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	return err
}

// aside does something whose outcome does not matter: the controller is to die in the middle of it. The function that
// is returned waits for its end.
func aside(ctx context.Context, do func(context.Context)) (wait func()) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(limited)
	}()
	return func() { <-done; cancel() }
}

// appears waits for a node.
func (t *trial) appears(ctx context.Context, path string, there bool) error {
	return t.tree(ctx, func(s coordination.Session) error {
		for {
			_, found, err := s.Exists(ctx, path)
			if err != nil || found == there {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	})
}

// complete waits until a topic has so many partitions, each with a leader and whole.
func (t *trial) complete(ctx context.Context, topic string, partitions int) error {
	return t.load.until(ctx, topic+" to be whole", func(ctx context.Context) error {
		topics, err := t.load.admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if n := len(topics[topic].Partitions); n != partitions {
			return fmt.Errorf("it has %d partitions", n)
		}
		for _, p := range topics[topic].Partitions {
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) {
				return fmt.Errorf("partition %d has leader %d, replicas %v and in-sync replicas %v", p.Partition, p.Leader, p.Replicas, p.ISR)
			}
		}
		return nil
	})
}

// create waits for a topic.
func (t *trial) create(ctx context.Context, topic string, partitions, replicas int) error {
	if err := t.load.until(ctx, topic+" to be created", func(ctx context.Context) error {
		_, err := t.load.admin.CreateTopic(ctx, int32(partitions), int16(replicas), nil, topic)
		return exceptExists(err)
	}); err != nil {
		return err
	}
	return t.complete(ctx, topic, partitions)
}

// vanished waits until a topic is gone: from the tree, and its folders from all disks.
func (t *trial) vanished(ctx context.Context, topic string) error {
	if err := t.load.until(ctx, topic+" to be deleted", func(ctx context.Context) error {
		_, err := t.load.admin.DeleteTopic(ctx, topic)
		return exceptUnknown(err)
	}); err != nil {
		return err
	}
	return t.load.until(ctx, topic+" to leave no trace", func(ctx context.Context) error {
		if err := each(t.brokers, func(b *broker) error { return b.holdsNone(topic) }); err != nil {
			return err
		}
		return t.tree(ctx, func(s coordination.Session) error {
			for _, path := range []string{znode.TopicPath(topic), znode.DeleteTopicPath(topic), "/config/topics/" + topic} {
				if _, there, err := s.Exists(ctx, path); err != nil || there {
					return errors.Join(fmt.Errorf("%s is there", path), err)
				}
			}
			return nil
		})
	})
}

// midElection is a round in which a broker that leads much is killed, and the controller while it elects others.
func midElection(ctx context.Context, t *trial, _ int) error {
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	other := t.others(head)[t.random.IntN(2)]
	t.kill(other)
	if err := t.appears(ctx, fmt.Sprintf("%s/%d", znode.BrokersPath, other.id), false); err != nil {
		return err
	}
	if err := t.pause(ctx, 0, 60*time.Millisecond); err != nil {
		return err
	}
	t.kill(head)
	t.fault("controller killed while it elects")
	if err := t.pause(ctx, 0, second(1)); err != nil {
		return err
	}
	if err := start([]*broker{head, other}); err != nil {
		return err
	}
	if err := t.servedAgain(ctx, "both are back"); err != nil {
		return err
	}
	return t.complete(ctx, wide, widePartitions)
}

// midCreation is a round in which the controller is killed while it creates a topic of many partitions.
func midCreation(ctx context.Context, t *trial, round int) error {
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	topic := fmt.Sprintf("batch-%d", round)
	finish := aside(ctx, func(ctx context.Context) { _, _ = t.load.admin.CreateTopic(ctx, widePartitions, 3, nil, topic) })
	if err := t.appears(ctx, znode.TopicPath(topic), true); err != nil {
		return err
	}
	if err := t.pause(ctx, 0, 100*time.Millisecond); err != nil {
		return err
	}
	t.kill(head)
	t.fault("controller killed while it creates")
	if err := t.replaced(ctx, head, finish); err != nil {
		return err
	}
	if err := t.complete(ctx, topic, widePartitions); err != nil {
		return err
	}
	return t.vanished(ctx, topic)
}

// replaced waits for the request that the controller was killed in, and for another controller to do without the killed
// one, which is started again then.
func (t *trial) replaced(ctx context.Context, head *broker, finish func()) error {
	finish()
	if err := t.servedAgain(ctx, "the controller is down"); err != nil {
		return err
	}
	return head.Start()
}

// midReassignment is a round in which the controller is killed while replicas move.
func midReassignment(ctx context.Context, t *trial, round int) error {
	target := []int32{int32((round + 1) % 3), int32((round + 2) % 3)}
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	finish := aside(ctx, func(ctx context.Context) { _ = t.wander(ctx, target) })
	if err := t.pause(ctx, 0, 400*time.Millisecond); err != nil {
		return err
	}
	t.kill(head)
	t.fault("controller killed while it reassigns")
	if err := t.replaced(ctx, head, finish); err != nil {
		return err
	}
	if err := t.wandered(ctx, target); err != nil {
		return err
	}
	return t.load.settled(ctx)
}

// wander asks for the replicas of all partitions of wandering to be on some brokers.
func (t *trial) wander(ctx context.Context, target []int32) error {
	var request kadm.AlterPartitionAssignmentsReq
	for partition := range int32(wanderingPartitions) {
		request.Assign(wandering, partition, target)
	}
	responses, err := t.load.admin.AlterPartitionAssignments(ctx, request)
	return errors.Join(err, responses.Error())
}

// wandered asks for that until it has been heard, and waits until they are there.
func (t *trial) wandered(ctx context.Context, target []int32) error {
	if err := t.load.until(ctx, "the reassignment to be asked for", func(ctx context.Context) error { return t.wander(ctx, target) }); err != nil {
		return err
	}
	return t.load.until(ctx, "replicas where they were moved to", func(ctx context.Context) error { return t.lies(ctx, wandering, target) })
}

// lies fails where the partitions of a topic are not on the brokers given.
func (t *trial) lies(ctx context.Context, topic string, target []int32) error {
	topics, err := t.load.admin.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	for _, p := range topics[topic].Partitions {
		if !sameMembers(p.Replicas, target) || !sameMembers(p.ISR, target) {
			return fmt.Errorf("%s-%d has replicas %v and in-sync replicas %v, wanted are %v", topic, p.Partition, p.Replicas, p.ISR, target)
		}
	}
	return nil
}

// sameMembers reports whether both hold the same, in whatever order.
func sameMembers(one, other []int32) bool {
	return slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(other)))
}

// midDeletion is a round in which the controller is killed at any moment of a deletion. One broker stands still, so that
// the first of the two orders to stop a replica is not answered by all, and the second not sent to it.
func midDeletion(ctx context.Context, t *trial, round int) error {
	topic := fmt.Sprintf("doomed-%d", round)
	if err := t.create(ctx, topic, 6, 3); err != nil {
		return err
	}
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	still := t.others(head)[t.random.IntN(2)]
	if err := still.Pause(); err != nil {
		return err
	}
	finish := aside(ctx, func(ctx context.Context) { _, _ = t.load.admin.DeleteTopic(ctx, topic) })
	if err := t.appears(ctx, znode.DeleteTopicPath(topic), true); err != nil {
		return err
	}
	if err := t.pause(ctx, 0, 100*time.Millisecond); err != nil {
		return err
	}
	t.kill(head)
	t.fault("controller killed while it deletes")
	if err := still.Resume(); err != nil {
		return err
	}
	if err := t.replaced(ctx, head, finish); err != nil {
		return err
	}
	return t.vanished(ctx, topic)
}
