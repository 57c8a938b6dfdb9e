package admin

import (
	"context"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Written counts what a [Producer] has written to one partition.
type Written struct {
	TopicPartition
	Records     int64
	FirstOffset int64
	LastOffset  int64
}

// Producer writes records asynchronously and counts them.
//
// Acknowledgements come on the client's goroutines and are counted under mu. It holds one number a partition,
// not the records.
type Producer struct {
	client   *Client
	patience *patience // from the first record on

	mu      sync.Mutex
	written map[TopicPartition]*Written
	failed  int64
	err     error
}

// NewProducer writes through the client.
func (c *Client) NewProducer() *Producer {
	return &Producer{client: c, written: map[TopicPartition]*Written{}}
}

// Send takes a record, waiting only while the client's buffer is full. Its outcome is in [Producer.Flush]. It is
// called by one goroutine, always with the same context.
func (p *Producer) Send(ctx context.Context, record *kgo.Record) {
	if p.patience == nil {
		p.patience = newPatience(ctx, p.client.timeout)
	}
	p.patience.sent()
	p.client.kafka.Produce(p.patience.ctx, record, p.done)
}

func (p *Producer) done(record *kgo.Record, err error) {
	err = p.patience.ended(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed++
		if p.err == nil {
			p.err = p.client.Explain(err)
		}
		return
	}
	at := TopicPartition{record.Topic, record.Partition}
	w := p.written[at]
	if w == nil {
		w = &Written{TopicPartition: at, FirstOffset: record.Offset}
		p.written[at] = w
	}
	w.Records++
	w.LastOffset = max(w.LastOffset, record.Offset)
}

// Failed is the first error of a record so far, and how many records failed.
func (p *Producer) Failed() (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed, p.err
}

// Flush waits until every record is written or has failed, and returns what was written, sorted.
func (p *Producer) Flush(ctx context.Context) ([]Written, error) {
	if err := p.client.kafka.Flush(ctx); err != nil {
		return nil, err
	}
	if p.patience != nil {
		p.patience.end()
		p.patience = nil // another record begins anew
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	written := make([]Written, 0, len(p.written))
	for _, w := range p.written {
		written = append(written, *w)
	}
	slices.SortFunc(written, func(a, b Written) int { return a.Compare(b.TopicPartition) })
	return written, p.err
}
