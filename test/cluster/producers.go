package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// A producer sends burst records every pace: all that is acknowledged has to be remembered.
const (
	burst = 8
	pace  = 25 * time.Millisecond
)

// produceTimeout is how long a leader waits for the in-sync set.
const produceTimeout = 2 * time.Second

// idempotent reports whether a producer is.
func idempotent(number uint32) bool { return number%2 == 0 }

// value is the content of a record: its identity, and some filling.
func value(id identity) []byte {
	v := make([]byte, 12, 512)
	binary.BigEndian.PutUint32(v, id.producer)
	binary.BigEndian.PutUint64(v[4:], id.sequence)
	return v[:12+int(id.sequence*31%500)]
}

// identify reads a record's content.
func identify(v []byte) (identity, error) {
	if len(v) < 12 {
		return none, fmt.Errorf("a record of %d bytes is none of the load's", len(v))
	}
	id := identity{binary.BigEndian.Uint32(v), binary.BigEndian.Uint64(v[4:])}
	if len(v) != 12+int(id.sequence*31%500) {
		return none, fmt.Errorf("%+v has %d bytes", id, len(v))
	}
	return id, nil
}

// startIdempotent starts a producer that relies on its client to retry: every record must be acknowledged in the
// end.
func (l *load) startIdempotent(ctx context.Context, number uint32, topic string) error {
	client, err := l.newClient(fmt.Sprintf("producer-%d", number),
		kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(2*time.Millisecond), kgo.MaxBufferedRecords(200),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProduceRequestTimeout(produceTimeout),
		kgo.UnknownTopicRetries(-1)) // a broker may not have heard of the topic
	if err != nil {
		return err
	}
	l.producing.running.Go(func() {
		defer client.Close()
		l.paced(func(sequence uint64) {
			id, now := identity{number, sequence}, time.Now()
			client.Produce(ctx, &kgo.Record{Value: value(id)}, func(r *kgo.Record, err error) {
				if _, cut := errors.AsType[*kgo.ErrFirstReadEOF](err); cut {
					l.history.failed(id, false) // a kill met a new connection, which the client takes for a missing TLS
					return
				}
				if err != nil {
					l.history.contradict("a record of an idempotent producer was given up: %+v: %w", id, err)
					return
				}
				l.history.acknowledged(topicPartition{r.Topic, r.Partition}, r.Offset, id, now)
			})
		})
		if err := client.Flush(ctx); err != nil {
			l.history.contradict("idempotent producer %d: %w", number, err)
		}
	})
	return nil
}

// paced calls send for one sequence number after the other, until the producers are to end.
func (l *load) paced(send func(sequence uint64)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for sequence := uint64(1); ; sequence++ {
		if sequence%burst == 0 {
			select {
			case <-tick.C:
			case <-l.producing.done:
				return
			}
		}
		send(sequence)
	}
}

// plain is a producer that sends each record once: what it is told is the outcome.
type plain struct {
	load   *load
	number uint32
	topic  string
	client *kgo.Client
	leader map[int32]int32
	id     [16]byte // the topic's
	random *rand.Rand
}

func (l *load) startPlain(ctx context.Context, number uint32, topic string) error {
	client, err := l.newClient(fmt.Sprintf("producer-%d", number), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	p := &plain{load: l, number: number, topic: topic, client: client, random: rand.New(rand.NewPCG(uint64(number), 1))}
	l.producing.running.Go(func() {
		defer client.Close()
		var batch []identity
		l.paced(func(sequence uint64) {
			batch = append(batch, identity{number, sequence})
			if len(batch) == burst/2 {
				p.send(ctx, batch)
				batch = batch[:0]
			}
		})
	})
	return nil
}

// learn asks who leads.
func (p *plain) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	metadata, err := p.load.admin.Metadata(ctx, p.topic)
	if err != nil {
		return err
	}
	p.leader, p.id = map[int32]int32{}, metadata.Topics[p.topic].ID
	for _, partition := range metadata.Topics[p.topic].Partitions {
		if partition.Leader >= 0 {
			p.leader[partition.Partition] = partition.Leader
		}
	}
	return nil
}

// send sends records to one partition, in one batch. Who cannot be sent anything is not counted.
func (p *plain) send(ctx context.Context, batch []identity) {
	if len(p.leader) == 0 {
		if err := p.learn(ctx); err != nil || len(p.leader) == 0 {
			return
		}
	}
	partitions := p.load.partitions
	if p.topic == moved {
		partitions = movedPartitions
	}
	partition := p.random.Int32N(int32(partitions))
	leader, known := p.leader[partition]
	if !known {
		p.leader = nil
		return
	}
	now := time.Now()
	base, err := p.request(ctx, leader, partition, batch)
	for i, id := range batch {
		if err == nil {
			p.load.history.acknowledged(topicPartition{p.topic, partition}, base+int64(i), id, now)
		} else {
			p.load.history.failed(id, certain(err))
		}
	}
	if err != nil {
		p.leader = nil
	}
}

// certain reports whether an error says that nothing was written.
func certain(err error) bool { return errors.Is(err, kerr.NotEnoughReplicas) }

// request sends one Produce request, and returns the offset of the first record.
func (p *plain) request(ctx context.Context, leader, partition int32, batch []identity) (int64, error) {
	b := record.NewBuilder(record.BuilderOptions{})
	for _, id := range batch {
		b.Append(time.Now().UnixMilli(), nil, value(id))
	}
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, int32(produceTimeout.Milliseconds())
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = p.topic, p.id
	one := kmsg.NewProduceRequestTopicPartition()
	one.Partition, one.Records = partition, b.Build()
	topic.Partitions = append(topic.Partitions, one)
	request.Topics = append(request.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, 2*produceTimeout)
	defer cancel()
	response, err := p.client.Broker(int(leader)).Request(ctx, request)
	if err != nil {
		return 0, err
	}
	answer, ok := response.(*kmsg.ProduceResponse)
	if !ok || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("an answer that does not fit the request: %+v", response)
	}
	return answer.Topics[0].Partitions[0].BaseOffset, kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
}
