package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// group is the consumer group of the load.
const group = "readers"

// member is one life of one consumer.
type member struct {
	load   *load
	client *kgo.Client

	mu sync.Mutex
	// floors are the partitions that it owns, and what had been committed when it got them.
	floors map[topicPartition]int64
	// next is where it goes on, once it has read something.
	next map[topicPartition]int64
}

// consume is a consumer that leaves its group now and then, and joins again.
func (l *load) consume(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(uint64(number), 2))
	for {
		life := time.Duration(5+random.IntN(10)) * time.Second
		if ended, err := l.memberLife(ctx, fmt.Sprintf("consumer-%d", number), life); err != nil {
			l.history.contradict("consumer %d: %w", number, err)
			return
		} else if ended {
			return
		}
	}
}

// memberLife is one member from joining to leaving; ended means that there is to be no other one.
func (l *load) memberLife(ctx context.Context, name string, life time.Duration) (ended bool, err error) {
	m := &member{load: l, floors: map[topicPartition]int64{}, next: map[topicPartition]int64{}}
	m.client, err = l.newClient(name,
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(orders, moved), kgo.ConsumeResetOffset(kgo.NoResetOffset().AtStart()),
		// Cooperative members that lost their session keep their partitions until they are told otherwise, and two may
		// commit for one.
		kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond), kgo.RebalanceTimeout(6*time.Second),
		kgo.OnPartitionsAssigned(m.assigned), kgo.OnPartitionsRevoked(m.gone), kgo.OnPartitionsLost(m.gone))
	if err != nil {
		return false, err
	}
	defer m.client.CloseAllowingRebalance()
	deadline := time.Now().Add(life)
	for time.Now().Before(deadline) {
		select {
		case <-l.consuming.done:
			return true, nil
		default:
		}
		if err := m.poll(ctx); errors.Is(err, errBehind) {
			l.note("%s: %v", name, err)
			l.history.behind()
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}

// assigned begins with partitions. What is committed now is the least that the member may be told to go on from:
// nobody else commits for these partitions any more.
func (m *member) assigned(_ context.Context, _ *kgo.Client, all map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, partitions := range all {
		for _, partition := range partitions {
			tp := topicPartition{topic, partition}
			m.floors[tp] = m.load.history.committed(tp)
			delete(m.next, tp)
		}
	}
}

// gone ends with partitions.
func (m *member) gone(_ context.Context, _ *kgo.Client, all map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, partitions := range all {
		for _, partition := range partitions {
			delete(m.floors, topicPartition{topic, partition})
		}
	}
}

// errBehind says that a broker has less than the member, or the group, has read.
var errBehind = errors.New("a broker is behind")

// poll takes what there is, and commits it. Rebalances wait meanwhile.
//
// A broker that is cut off and does not know yet that another one leads has less than was committed since: it answers
// OFFSET_OUT_OF_RANGE, or tells of an end that the client takes for lost records. That ends the member, and no more:
// the next one goes on from what is committed. Whether anything was lost is not for one broker to say. The final read
// tells: it looks for every record that anybody was given, acknowledged or not.
func (m *member) poll(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	fetches := m.client.PollFetches(limited)
	defer m.client.AllowRebalance()
	var failed error
	fetches.EachError(func(topic string, partition int32, err error) {
		if _, lost := errors.AsType[*kgo.ErrDataLoss](err); lost || errors.Is(err, kerr.OffsetOutOfRange) {
			failed = fmt.Errorf("%w: %s-%d: %w", errBehind, topic, partition, err)
		}
	})
	if failed != nil || fetches.Empty() {
		return failed
	}
	for _, r := range fetches.Records() {
		if err := m.take(r); err != nil {
			return err
		}
	}
	return m.commit(ctx, fetches)
}

// take looks at one record: offsets are dense, and begin no later than others have read and no earlier than others
// have committed.
func (m *member) take(r *kgo.Record) error {
	tp := topicPartition{r.Topic, r.Partition}
	id, err := identify(r.Value)
	if err != nil {
		return err
	}
	m.mu.Lock()
	next, going := m.next[tp]
	floor := m.floors[tp]
	m.next[tp] = r.Offset + 1
	m.mu.Unlock()
	if going && r.Offset != next {
		m.load.history.contradict("%v: a consumer got offset %d after %d", tp, r.Offset, next-1)
	}
	if !going && r.Offset < floor {
		m.load.history.contradict("%v: a consumer began at %d, although a commit of %d had been acknowledged", tp, r.Offset, floor)
	}
	m.load.history.consumed(tp, r.Offset, id)
	return nil
}

// commit commits what has been polled. What fails is read again by somebody.
func (m *member) commit(ctx context.Context, fetches kgo.Fetches) error {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		last := p.Records[len(p.Records)-1]
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.Topic][p.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
	})
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answered := make(chan struct{})
	m.client.CommitOffsetsSync(limited, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		defer close(answered)
		if err != nil {
			return
		}
		for _, t := range response.Topics {
			for _, p := range t.Partitions {
				if kerr.ErrorForCode(p.ErrorCode) == nil {
					m.load.history.commit(topicPartition{t.Topic, p.Partition}, offsets[t.Topic][p.Partition].Offset)
				}
			}
		}
	})
	<-answered
	return nil
}
