package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// whole waits until every partition of the load has all replicas in sync, by ZooKeeper's tree and as every broker shows
// it: one that was cut off shows for some time what was before.
func (l *load) whole(ctx context.Context) error {
	partitions := map[string]int{orders: l.partitions, moved: movedPartitions}
	return l.until(ctx, "whole in-sync sets", func(ctx context.Context) error {
		shown := map[int]*kmsg.MetadataResponse{}
		for _, b := range l.cluster.brokers {
			var err error
			if shown[b.id], err = l.shown(ctx, b, partitions); err != nil {
				return fmt.Errorf("broker %d: %w", b.id, err)
			}
		}
		for topic, n := range partitions { // last, since a session is made for it
			states, err := l.cluster.states(ctx, topic, n)
			if err != nil {
				return err
			}
			for id, answer := range shown {
				if err := agree(answer, topic, states); err != nil {
					return fmt.Errorf("broker %d: %w", id, err)
				}
			}
		}
		return nil
	})
}

// shown is what one broker shows of topics. It fails where that is not whole.
func (l *load) shown(ctx context.Context, b *broker, partitions map[string]int) (*kmsg.MetadataResponse, error) {
	request := kmsg.NewPtrMetadataRequest()
	for name := range partitions {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	response, err := l.client.Broker(b.id).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	answer, ok := response.(*kmsg.MetadataResponse)
	if !ok || len(answer.Topics) != len(partitions) {
		return nil, fmt.Errorf("an answer that does not fit the request: %+v", response)
	}
	for _, t := range answer.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("%s: %w", *t.Topic, err)
		}
		if n := partitions[*t.Topic]; len(t.Partitions) != n {
			return nil, fmt.Errorf("%d partitions of %s are shown", len(t.Partitions), *t.Topic)
		}
		for _, p := range t.Partitions {
			if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
				return nil, fmt.Errorf("%s-%d has leader %d, replicas %v and in-sync replicas %v", *t.Topic, p.Partition, p.Leader, p.Replicas, p.ISR)
			}
		}
	}
	return answer, nil
}

// agree compares what a broker shows of a topic with the tree.
func agree(answer *kmsg.MetadataResponse, topic string, states []znode.State) error {
	for _, t := range answer.Topics {
		if *t.Topic != topic {
			continue
		}
		for _, p := range t.Partitions {
			s, isr := states[p.Partition], []int32(nil)
			for _, id := range states[p.Partition].ISR {
				isr = append(isr, int32(id))
			}
			if p.Leader != int32(s.Leader) || p.LeaderEpoch != int32(s.LeaderEpoch) || !sameMembers(p.ISR, isr) {
				return fmt.Errorf("%s-%d is shown with leader %d in epoch %d and in-sync replicas %v, and has leader %d in epoch %d and %v",
					topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, s.Leader, s.LeaderEpoch, s.ISR)
			}
		}
	}
	return nil
}

// states are the states of the partitions of a topic in the tree.
func (c *cluster) states(ctx context.Context, topic string, partitions int) (states []znode.State, err error) {
	var paths []string
	for partition := range int32(partitions) {
		paths = append(paths, znode.StatePath(protocol.TopicPartition{Topic: topic, Partition: partition}))
	}
	err = c.tree(ctx, func(s coordination.Session) error {
		results, err := s.GetMany(ctx, paths)
		if err != nil {
			return err
		}
		states = nil
		for i, r := range results {
			state, err := znode.DecodeState(protocol.TopicPartition{Topic: topic, Partition: int32(i)}, r.Data)
			if err = errors.Join(r.Err, err); err != nil {
				return err
			}
			states = append(states, state)
		}
		return nil
	})
	return states, err
}

// tree does something in the tree of the cluster.
func (c *cluster) tree(ctx context.Context, do func(coordination.Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := c.openSession(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}
