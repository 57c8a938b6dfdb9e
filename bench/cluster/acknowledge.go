package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// place is a partition.
type place struct {
	topic  string
	number int32
}

// acknowledge writes a record with acks=all to every partition, and returns how long after since the last one was
// acknowledged. Leaders are those that broker says; partitions that are refused are tried again.
func (a *asker) acknowledge(ctx context.Context, since time.Time, broker int32) (time.Duration, error) {
	done := make(map[place]bool, a.partitions)
	last := fmt.Errorf("broker %d has not answered", broker)
	for {
		m, err := a.metadata(ctx, broker)
		if err == nil {
			a.write(ctx, m, done)
			err = fmt.Errorf("%d of %d partitions acknowledge", len(done), a.partitions)
		}
		if len(done) == a.partitions {
			return time.Since(since), nil
		}
		if ctx.Err() == nil || m != nil {
			last = err
		}
		if stopped := pause(ctx, leastPause); stopped != nil {
			return 0, fmt.Errorf("%w: %w", stopped, last)
		}
	}
}

// write sends one request to each leader, all at once, and notes the partitions that have acknowledged.
func (a *asker) write(ctx context.Context, m *kmsg.MetadataResponse, done map[place]bool) {
	requests := map[int32]*kmsg.ProduceRequest{}
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			if p.Leader < 0 || done[place{*topic.Topic, p.Partition}] {
				continue
			}
			q := requests[p.Leader]
			if q == nil {
				q = kmsg.NewPtrProduceRequest()
				q.Acks, q.TimeoutMillis = -1, 30_000
				requests[p.Leader] = q
			}
			addRecord(q, *topic.Topic, p.Partition)
		}
	}
	answers := make(chan *kmsg.ProduceResponse)
	for leader, q := range requests {
		go func() {
			answer, err := a.kafka.Broker(int(leader)).Request(ctx, q)
			if err != nil {
				answer = nil // it is asked again, if it still leads
			}
			got, _ := answer.(*kmsg.ProduceResponse)
			answers <- got
		}()
	}
	for range requests {
		if answer := <-answers; answer != nil {
			for _, topic := range answer.Topics {
				for _, p := range topic.Partitions {
					if p.ErrorCode == 0 {
						done[place{topic.Topic, p.Partition}] = true
					}
				}
			}
		}
	}
}

// addRecord adds a batch of one record for a partition to a request.
func addRecord(q *kmsg.ProduceRequest, topic string, partition int32) {
	if last := len(q.Topics) - 1; last < 0 || q.Topics[last].Topic != topic {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = topic
		q.Topics = append(q.Topics, t)
	}
	t := &q.Topics[len(q.Topics)-1]
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, oneRecord()
	t.Partitions = append(t.Partitions, p)
}

// oneRecord is a batch of one record of ten bytes.
func oneRecord() []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	b.Append(time.Now().UnixMilli(), nil, []byte("0123456789"))
	return b.Build()
}
