package perf

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Consume reads a topic from its first offset to its present end, as one who catches up does, and counts what it got.
// The partitions are dealt out to the clients, which must not consume anything yet and are of no use for consuming
// afterwards. Every offset up to the end must hold a record: the topic is neither compacted nor has transactions.
//
// Time counts from before the first fetch.
func Consume(ctx context.Context, topic string, clients ...*kgo.Client) (*Measured, error) {
	starts, ends, err := bounds(ctx, clients[0], topic)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]Measured, len(clients))
	errs := make([]error, len(clients))
	began := time.Now()
	var readers sync.WaitGroup
	for i, client := range clients {
		readers.Go(func() {
			errs[i] = consumeShare(ctx, client, topic, starts, ends, i, len(clients), &results[i])
			if errs[i] != nil {
				cancel()
			}
		})
	}
	readers.Wait()
	total := &Measured{Elapsed: time.Since(began)}
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		total.Records += results[i].Records
		total.Bytes += results[i].Bytes
	}
	return total, nil
}

// bounds are the first offsets and the ends of a topic's partitions.
func bounds(ctx context.Context, client *kgo.Client, topic string) (starts, ends map[int32]int64, err error) {
	admin := kadm.NewClient(client)
	ask := func(list func(context.Context, ...string) (kadm.ListedOffsets, error)) map[int32]int64 {
		offsets := map[int32]int64{}
		if err != nil {
			return offsets
		}
		var listed kadm.ListedOffsets
		if listed, err = list(ctx, topic); err == nil {
			err = listed.Error()
		}
		listed.Each(func(l kadm.ListedOffset) { offsets[l.Partition] = l.Offset })
		return offsets
	}
	return ask(admin.ListStartOffsets), ask(admin.ListEndOffsets), err
}

// consumeShare reads the partitions whose number leaves the rest i by n.
func consumeShare(ctx context.Context, client *kgo.Client, topic string, starts, ends map[int32]int64, i, n int, got *Measured) error {
	from := map[int32]kgo.Offset{}
	for number, end := range ends {
		if int(number)%n == i && starts[number] < end {
			from[number] = kgo.NewOffset().At(starts[number])
		}
	}
	if len(from) == 0 {
		return nil
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	for pending := len(from); pending > 0; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%s after %d records: %w", topic, got.Records, err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			end := ends[p.Partition]
			for _, r := range p.Records {
				if r.Offset >= end {
					return // written since
				}
				got.Records++
				got.Bytes += int64(len(r.Key) + len(r.Value))
				if r.Offset == end-1 {
					pending--
				}
			}
		})
	}
	return nil
}
