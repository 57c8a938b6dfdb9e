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

// Topics of the load. Segments are small, so that kills also hit rolls, retention and compaction.
const (
	plain     = "plain"
	trimmed   = "trimmed" // by retention and DeleteRecords
	compacted = "compacted"
)

var settings = map[string]map[string]string{
	plain:     {"segment.bytes": "1048576"},
	trimmed:   {"segment.ms": "700", "segment.bytes": "1048576", "retention.bytes": "3145728", "file.delete.delay.ms": "100"},
	compacted: {"segment.ms": "300", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "100"},
}

// compactedKeys is how many keys each producer of the compacted topic has.
const compactedKeys = 50

// A producer sends burst records every pace: all that is acknowledged has to be remembered.
const (
	burst = 20
	pace  = 10 * time.Millisecond
)

// inFlight bounds the records that one producer has not yet had an answer for.
const inFlight = 200

// place is where a record stands.
type place struct {
	partition int32
	offset    int64
}

// producer writes records that carry its number and a running number.
type producer struct {
	topic      string
	number     uint32
	idempotent bool
	client     *kgo.Client

	mu    sync.Mutex
	acked map[uint64]place
	sent  uint64
}

// load is all clients.
//
//	producers   one goroutine each; acknowledgements come on their clients' goroutines, into acked
//	admin       three more: topics come and go, offsets rise, records are deleted
//	acks        counts acknowledgements of all, by which the rounds see that the broker serves again
//	failed      the first thing that went wrong: one error is enough to end the run
//
// What a client cannot know is never counted: a record without an answer may be there or not.
type load struct {
	partitions int
	producers  []*producer
	admin      *admin
	acks       atomic.Int64
	done       chan struct{}
	running    sync.WaitGroup
	failed     chan error // one slot
}

func newLoad(ctx context.Context, address string, partitions, producers int) (*load, error) {
	l := &load{partitions: partitions, done: make(chan struct{}), failed: make(chan error, 1)}
	client, err := newClient(address)
	if err != nil {
		return nil, err
	}
	l.admin = newAdmin(client)
	for topic, with := range settings {
		configs := map[string]*string{}
		for key, value := range with {
			configs[key] = &value
		}
		if _, err := l.admin.client.CreateTopic(ctx, int32(partitions), 1, configs, topic); err != nil {
			return nil, err
		}
		for range producers {
			if err := l.add(ctx, address, topic); err != nil {
				return nil, err
			}
		}
	}
	l.running.Go(func() { l.repeat(ctx, l.admin.topics) })
	l.running.Go(func() { l.repeat(ctx, l.admin.commit) })
	l.running.Go(func() { l.repeat(ctx, l.admin.trim) })
	return l, nil
}

// newClient makes a client that is quick to come back.
func newClient(address string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts, kgo.SeedBrokers(address), kgo.MetadataMinAge(10*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))...)
}

// add starts a producer.
func (l *load) add(ctx context.Context, address, topic string) error {
	p := &producer{topic: topic, number: uint32(len(l.producers)), acked: map[uint64]place{}}
	p.idempotent = p.number%2 == 0
	opts := []kgo.Opt{
		kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(2 * time.Millisecond), kgo.MaxBufferedRecords(inFlight),
	}
	if topic != compacted { // where records of a key must be in order
		opts = append(opts, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	}
	if !p.idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	client, err := newClient(address, opts...)
	if err != nil {
		return err
	}
	p.client = client
	l.producers = append(l.producers, p)
	l.running.Go(func() { l.produce(ctx, p) })
	return nil
}

// repeat does something again and again until the load is stopped.
func (l *load) repeat(ctx context.Context, do func(context.Context) error) {
	for {
		select {
		case <-l.done:
			return
		default:
		}
		if err := do(ctx); err != nil {
			l.fail(err)
			return
		}
	}
}

// produce writes until the load is stopped. What is not acknowledged by then is of no interest.
func (l *load) produce(ctx context.Context, p *producer) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		if p.sent%burst == 0 {
			select {
			case <-tick.C:
			case <-l.done:
			}
		}
		select {
		case <-l.done:
			if err := p.client.Flush(ctx); err != nil {
				l.fail(err)
			}
			return
		default:
		}
		p.sent++
		sequence := p.sent
		p.client.Produce(ctx, p.record(sequence), func(r *kgo.Record, err error) {
			if _, cut := errors.AsType[*kgo.ErrFirstReadEOF](err); cut {
				return // the kill met a new connection, which this client takes for a missing TLS
			}
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

// record makes the record of a running number. Sizes differ, so that torn tails do too.
//
//	value   producer number uint32 | running number uint64 | 0 to 499 bytes of zeros
//	key     "<producer>/<running number mod 50>", of the compacted topic only
func (p *producer) record(sequence uint64) *kgo.Record {
	value := make([]byte, 12, 512)
	binary.BigEndian.PutUint32(value, p.number)
	binary.BigEndian.PutUint64(value[4:], sequence)
	r := &kgo.Record{Value: value[:12+int(sequence*31%500)]}
	if p.topic == compacted {
		r.Key = fmt.Appendf(nil, "%d/%d", p.number, sequence%compactedKeys)
	}
	return r
}

func (l *load) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

func (l *load) acknowledged() int64 { return l.acks.Load() }

// ackLimit is how long the load may be without an acknowledgement; far above what a start takes on a busy machine.
const ackLimit = 3 * time.Minute

// wait returns when records beyond before have been acknowledged and pause has passed.
func (l *load) wait(ctx context.Context, before int64, pause time.Duration) error {
	limit := time.After(ackLimit)
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
			return fmt.Errorf("no record was acknowledged for %v", ackLimit)
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
	l.admin.client.Close()
}

// offsetsOf is what ListOffsets says of a topic, by partition.
func offsetsOf(listed kadm.ListedOffsets, err error) (map[int32]int64, error) {
	if err != nil {
		return nil, err
	}
	offsets := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err != nil && err == nil {
			err = o.Err
		}
		offsets[o.Partition] = o.Offset
	})
	return offsets, err
}
