package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "kill"

// inFlight bounds the records that one producer has not yet had an answer for.
const inFlight = 200

// place is where a record stands.
type place struct {
	partition int32
	offset    int64
}

// producer writes records that carry its number and a running number.
type producer struct {
	number     uint32
	idempotent bool
	client     *kgo.Client

	mu    sync.Mutex
	acked map[uint64]place
	sent  uint64
}

// load is all producers.
type load struct {
	partitions int
	producers  []*producer
	acks       atomic.Int64
	done       chan struct{}
	running    sync.WaitGroup
	failed     chan error // one slot
}

func newLoad(ctx context.Context, address string, partitions, producers int) (*load, error) {
	if err := createTopic(ctx, address, partitions); err != nil {
		return nil, err
	}
	l := &load{partitions: partitions, done: make(chan struct{}), failed: make(chan error, 1)}
	for n := range producers {
		p := &producer{number: uint32(n), idempotent: n%2 == 0, acked: map[uint64]place{}}
		opts := []kgo.Opt{
			kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(2 * time.Millisecond),
			kgo.MaxBufferedRecords(inFlight), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
			kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.MetadataMinAge(10 * time.Millisecond),
		}
		if !p.idempotent {
			opts = append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.MaxProduceRequestsInflightPerBroker(1))
		}
		client, err := kgo.NewClient(opts...)
		if err != nil {
			return nil, err
		}
		p.client = client
		l.producers = append(l.producers, p)
		l.running.Go(func() { l.produce(ctx, p) })
	}
	return l, nil
}

func createTopic(ctx context.Context, address string, partitions int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer client.Close()
	// Small segments, so that kills also hit rolls.
	segment := "1048576"
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, map[string]*string{"segment.bytes": &segment}, topic)
	return err
}

// produce writes until the load is stopped. What is not acknowledged by then is of no interest.
func (l *load) produce(ctx context.Context, p *producer) {
	for {
		select {
		case <-l.done:
			if err := p.client.Flush(ctx); err != nil {
				l.fail(err)
			}
			return
		default:
		}
		p.sent++
		value := make([]byte, 12, 512)
		binary.BigEndian.PutUint32(value, p.number)
		binary.BigEndian.PutUint64(value[4:], p.sent)
		value = value[:12+int(p.sent*31%500)] // sizes differ, so that torn tails do too
		sequence := p.sent
		p.client.Produce(ctx, &kgo.Record{Value: value}, func(r *kgo.Record, err error) {
			if err != nil {
				l.fail(fmt.Errorf("producer %d: record %d: %w", p.number, sequence, err))
				return
			}
			p.mu.Lock()
			p.acked[sequence] = place{r.Partition, r.Offset}
			p.mu.Unlock()
			l.acks.Add(1)
		})
	}
}

func (l *load) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

func (l *load) acknowledged() int64 { return l.acks.Load() }

// wait returns when records beyond before have been acknowledged and pause has passed.
func (l *load) wait(ctx context.Context, before int64, pause time.Duration) error {
	limit := time.After(30 * time.Second)
	paused := time.After(pause)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for rest := false; !rest || l.acknowledged() <= before; {
		select {
		case <-paused:
			rest = true
		case <-tick.C:
		case err := <-l.failed:
			return err
		case <-limit:
			return errors.New("no record was acknowledged for 30 s")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stop ends the load and waits for the last acknowledgements.
func (l *load) stop() {
	close(l.done)
	l.running.Wait()
	for _, p := range l.producers {
		p.client.Close()
	}
}
