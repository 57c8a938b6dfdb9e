package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/barnabas-mq/barnabas/bench/servers"
)

// asker sends requests to brokers of one's choice. What is timed is not repeated behind one's back.
type asker struct {
	kafka *kgo.Client
	// topics are those that are looked at, partitions how many they have together.
	topics     []string
	partitions int
}

// newAsker knows all brokers of a cluster, which must run.
func newAsker(ctx context.Context, c *servers.Cluster) (*asker, error) {
	kafka, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...), kgo.DisableClientMetrics(), kgo.MaxVersions(kversion.V3_9_0()))
	if err != nil {
		return nil, err
	}
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{}
	if _, err := q.RequestWith(ctx, kafka); err != nil { // so that the client knows the brokers by their ids
		kafka.Close()
		return nil, err
	}
	return &asker{kafka: kafka}, nil
}

func (a *asker) close() { a.kafka.Close() }

// metadata asks one broker about the topics.
func (a *asker) metadata(ctx context.Context, broker int32) (*kmsg.MetadataResponse, error) {
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{}
	for i := range a.topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &a.topics[i]
		q.Topics = append(q.Topics, topic)
	}
	answer, err := a.kafka.Broker(int(broker)).Request(ctx, q)
	if err != nil {
		return nil, err
	}
	return answer.(*kmsg.MetadataResponse), nil
}

// condition is what an answer shall show of every partition.
type condition func(*kmsg.MetadataResponseTopicPartition) bool

// whole is a partition with a leader and so many replicas in sync.
func whole(replicas int) condition {
	return func(p *kmsg.MetadataResponseTopicPartition) bool { return p.Leader >= 0 && len(p.ISR) == replicas }
}

// ledByOther is a partition that has a leader, and another one than gone.
func ledByOther(gone int32) condition {
	return func(p *kmsg.MetadataResponseTopicPartition) bool { return p.Leader >= 0 && p.Leader != gone }
}

// holds counts the partitions for which a condition holds.
func holds(m *kmsg.MetadataResponse, is condition) int {
	n := 0
	for i := range m.Topics {
		for j := range m.Topics[i].Partitions {
			if is(&m.Topics[i].Partitions[j]) {
				n++
			}
		}
	}
	return n
}

// The pauses between two looks: at least leastPause, and restFactor times as long as the look took, since brokers and
// measuring share the machine, and an answer about 10,000 partitions is work for both.
const (
	leastPause = 5 * time.Millisecond
	restFactor = 2
)

// see returns once each of the brokers shows the condition for all partitions, and how long after since the last did.
// Brokers that refuse, or are not there for a moment, are asked again until ctx ends. The error then is about the last
// look that came to its end, not about the one that was cut off.
func (a *asker) see(ctx context.Context, since time.Time, brokers []int32, is condition) (time.Duration, error) {
	for _, broker := range brokers { // one after the other: it takes as long as the slowest
		last := errors.New("it has not answered")
		for {
			asked := time.Now()
			m, err := a.metadata(ctx, broker)
			shown := 0
			if err == nil {
				if shown = holds(m, is); shown == a.partitions {
					break
				}
				err = fmt.Errorf("it shows %d of %d partitions as they should be", shown, a.partitions)
			}
			if ctx.Err() == nil || m != nil {
				last = err
			}
			if ended := pause(ctx, max(leastPause, restFactor*time.Since(asked))); ended != nil {
				return 0, fmt.Errorf("metadata of broker %d: %w: %w", broker, ended, last)
			}
		}
	}
	return time.Since(since), nil
}

// pause waits; ctx ends it with its cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// create makes so many partitions with three replicas each, in topics of at most perTopic. It returns when the
// controller has answered.
func (a *asker) create(ctx context.Context, prefix string, partitions int) error {
	const perTopic = 1000
	controller, err := a.controller(ctx)
	if err != nil {
		return err
	}
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = 120_000
	for left := partitions; left > 0; left -= perTopic {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic = fmt.Sprintf("%s-%d", prefix, len(q.Topics))
		topic.NumPartitions, topic.ReplicationFactor = int32(min(left, perTopic)), 3
		q.Topics = append(q.Topics, topic)
		a.topics = append(a.topics, topic.Topic)
	}
	a.partitions += partitions
	response, err := a.kafka.Broker(int(controller)).Request(ctx, q)
	if err != nil {
		return err
	}
	var failed error
	for _, topic := range response.(*kmsg.CreateTopicsResponse).Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			failed = errors.Join(failed, fmt.Errorf("create %s: %w", topic.Topic, err))
		}
	}
	return failed
}

// controller asks who it is.
func (a *asker) controller(ctx context.Context) (int32, error) {
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{}
	m, err := q.RequestWith(ctx, a.kafka)
	if err != nil {
		return -1, err
	}
	return m.ControllerID, nil
}
