package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrStop ends a reading without being its error.
var ErrStop = errors.New("stop reading")

// Sink takes what is read.
//
// Both are called by the goroutine that reads, never at once.
type Sink struct {
	// Each takes one record; [ErrStop] ends the reading behind it.
	Each func(*kgo.Record) error
	// Batch is called when no further record is at hand: what was buffered should be seen now.
	Batch func() error
}

// Read hands the records of a reading to the sink, in the order of every partition, until all partitions
// have reached their end, the sink returns an error, or ctx ends, which is no error. The client must have
// been made with the reading's options.
//
// What the sink has taken is marked for commit only after Batch, since until then it may lie in a buffer.
func (c *Client) Read(ctx context.Context, r *Reading, sink Sink) error {
	for !r.done() {
		fetches := c.poll(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if err := c.fetchError(fetches); err != nil {
			return err
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		taken, reached, err := r.deliver(fetches, sink.Each)
		if err != nil && !errors.Is(err, ErrStop) {
			return err
		}
		if failed := sink.Batch(); failed != nil {
			return failed
		}
		if r.group != "" {
			c.kafka.MarkCommitRecords(taken...)
		}
		if err != nil {
			return nil
		}
		// What is behind the end would come again and again, and hide that others have nothing more.
		c.kafka.PauseFetchPartitions(byTopic(reached))
		r.took(reached)
	}
	return nil
}

// poll waits for records, or for the reading to be over without any.
func (c *Client) poll(ctx context.Context, r *Reading) kgo.Fetches {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := r.whenOver(cancel)
	defer stop()
	return c.kafka.PollFetches(ctx)
}

// fetchError is why no further records will come; what the client retries by itself is not in it.
func (c *Client) fetchError(fetches kgo.Fetches) error {
	if fetches.IsClientClosed() {
		return kgo.ErrClientClosed
	}
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.Canceled):
		case e.Topic == "":
			return c.Explain(e.Err)
		case errors.Is(e.Err, kerr.UnknownTopicOrPartition):
			return fmt.Errorf("topic %s does not exist", e.Topic)
		default:
			return fmt.Errorf("%s-%d: %w", e.Topic, e.Partition, c.Explain(e.Err))
		}
	}
	return nil
}

// deliver hands on the records before the ends. It returns those that were taken, and the partitions that
// have reached their ends.
func (r *Reading) deliver(fetches kgo.Fetches, each func(*kgo.Record) error) (taken []*kgo.Record, reached []TopicPartition, err error) {
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		at := TopicPartition{p.Topic, p.Partition}
		end := r.ranges[at].To
		for _, record := range p.Records {
			if err != nil {
				return
			}
			if end < 0 || record.Offset < end {
				if !record.Attrs.IsControl() {
					err = each(record)
				}
				if r.group != "" && (err == nil || errors.Is(err, ErrStop)) {
					taken = append(taken, record)
				}
			}
			if end >= 0 && record.Offset+1 >= end && err == nil {
				reached = append(reached, at)
			}
		}
	})
	return taken, reached, err
}

// byTopic are partitions as the client takes them.
func byTopic(partitions []TopicPartition) map[string][]int32 {
	topics := map[string][]int32{}
	for _, at := range partitions {
		topics[at.Topic] = append(topics[at.Topic], at.Partition)
	}
	return topics
}
