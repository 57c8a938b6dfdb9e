package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "orders"

// How long clients may wait to be served, or sets to be whole.
const patience = time.Minute

// A producer sends burst records every pace: all that is acknowledged has to be remembered.
const (
	burst = 20
	pace  = 10 * time.Millisecond
)

// place is where a record stands.
type place struct {
	partition int32
	offset    int64
}

// identity is what a record says of itself.
type identity struct {
	producer uint32
	sequence uint64
}

// load is all clients.
type load struct {
	addresses  []string
	partitions int
	producers  []*kgo.Client
	client     *kgo.Client
	admin      *kadm.Client
	done       chan struct{}
	running    sync.WaitGroup
	failed     chan error // one slot

	mu struct {
		sync.Mutex
		acked map[place]identity
		count map[int32]int // acknowledged, by partition
	}
}

func newLoad(ctx context.Context, addresses []string, partitions, producers int) (*load, error) {
	l := &load{addresses: addresses, partitions: partitions, done: make(chan struct{}), failed: make(chan error, 1)}
	l.mu.acked, l.mu.count = map[place]identity{}, map[int32]int{}
	var err error
	if l.client, err = l.newClient(); err != nil {
		return nil, err
	}
	l.admin = kadm.NewClient(l.client)
	if _, err := l.admin.CreateTopic(ctx, int32(partitions), 3, map[string]*string{
		"min.insync.replicas": new("2"), "segment.bytes": new("1048576"),
	}, topic); err != nil {
		return nil, err
	}
	if err := l.whole(ctx); err != nil {
		return nil, err
	}
	for number := range producers {
		if err := l.add(ctx, uint32(number)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// newClient makes a client that is quick to come back.
func (l *load) newClient(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(l.addresses...), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RequestTimeoutOverhead(3*time.Second),
		kgo.RetryTimeout(patience))...)
}

// idempotent reports whether a producer is.
func idempotent(number uint32) bool { return number%2 == 0 }

// add starts a producer.
func (l *load) add(ctx context.Context, number uint32) error {
	options := []kgo.Opt{
		kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(2 * time.Millisecond), kgo.MaxBufferedRecords(500),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProduceRequestTimeout(2 * time.Second),
	}
	if !idempotent(number) {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	client, err := l.newClient(options...)
	if err != nil {
		return err
	}
	l.producers = append(l.producers, client)
	l.running.Go(func() { l.produce(ctx, client, number) })
	return nil
}

// produce writes until the load is stopped, and then waits for the last acknowledgements.
func (l *load) produce(ctx context.Context, client *kgo.Client, number uint32) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for sequence := uint64(1); ; sequence++ {
		if sequence%burst == 0 {
			select {
			case <-tick.C:
			case <-l.done:
				if err := client.Flush(ctx); err != nil {
					l.fail(err)
				}
				return
			}
		}
		value := make([]byte, 12, 512)
		binary.BigEndian.PutUint32(value, number)
		binary.BigEndian.PutUint64(value[4:], sequence)
		client.Produce(ctx, &kgo.Record{Value: value[:12+int(sequence*31%500)]}, func(r *kgo.Record, err error) {
			if _, cut := errors.AsType[*kgo.ErrFirstReadEOF](err); cut && !idempotent(number) {
				return // the kill met a new connection, which this client takes for a missing TLS
			}
			if err != nil {
				l.fail(fmt.Errorf("producer %d: record %d: %w", number, sequence, err))
				return
			}
			l.acknowledge(place{r.Partition, r.Offset}, identity{number, sequence})
		})
	}
}

func (l *load) acknowledge(at place, id identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, twice := l.mu.acked[at]; twice && other != id {
		l.fail(fmt.Errorf("record %d of producer %d and record %d of producer %d were both acknowledged at %v", id.sequence, id.producer, other.sequence, other.producer, at))
	}
	l.mu.acked[at] = id
	l.mu.count[at.partition]++
}

func (l *load) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

// counts is how many records were acknowledged, by partition.
func (l *load) counts() map[int32]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[int32]int{}
	for partition, n := range l.mu.count {
		counts[partition] = n
	}
	return counts
}

// progress returns when something more has been acknowledged in every partition.
func (l *load) progress(ctx context.Context) error {
	before := l.counts()
	return l.until(ctx, "records to be acknowledged in every partition", func() error {
		now := l.counts()
		for partition := range int32(l.partitions) {
			if now[partition] <= before[partition] {
				return fmt.Errorf("nothing in partition %d", partition)
			}
		}
		return nil
	})
}

// until tries again and again.
func (l *load) until(ctx context.Context, what string, try func() error) error {
	limit := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-l.failed:
			return err
		case <-limit:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// whole waits until every partition has all replicas in sync.
func (l *load) whole(ctx context.Context) error {
	return l.until(ctx, "whole in-sync sets", func() error {
		topics, err := l.topics(ctx)
		if err != nil {
			return err
		}
		for _, p := range topics[topic].Partitions {
			if p.Leader < 0 || len(p.ISR) < 3 {
				return fmt.Errorf("partition %d has leader %d and in-sync replicas %v", p.Partition, p.Leader, p.ISR)
			}
		}
		if n := len(topics[topic].Partitions); n != l.partitions {
			return fmt.Errorf("%d partitions are shown", n)
		}
		return nil
	})
}

func (l *load) topics(ctx context.Context) (kadm.TopicDetails, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return l.admin.ListTopics(ctx, topic)
}

// heads are the leader of partition 0 and the controller.
func (l *load) heads(ctx context.Context) (leader, controller int32, err error) {
	err = l.until(ctx, "a leader and a controller", func() error {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		metadata, err := l.admin.Metadata(limited, topic)
		if err != nil {
			return err
		}
		leader, controller = metadata.Topics[topic].Partitions[0].Leader, metadata.Controller
		if leader < 0 || controller < 0 {
			return fmt.Errorf("leader %d, controller %d", leader, controller)
		}
		return nil
	})
	return leader, controller, err
}

// stop ends the load, and waits until all sets are whole.
func (l *load) stop(ctx context.Context) error {
	close(l.done)
	l.running.Wait()
	for _, client := range l.producers {
		client.Close()
	}
	select {
	case err := <-l.failed:
		return err
	default:
	}
	return l.whole(ctx)
}
