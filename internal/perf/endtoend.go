package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Stream is a load at a rate that [EndToEnd] sends, one record after another.
type Stream struct {
	Topic string
	// Rate is records a second, Records how many are measured, Warmup how many of the same kind come before them and
	// are not.
	Rate            float64
	Records, Warmup int64
	// Size is the bytes of a value, at least 8.
	Size int
	// Grace is how long to wait for records that do not arrive; 0 is 10 s.
	Grace time.Duration
}

// Latencies are what became of a [Stream].
type Latencies struct {
	// Acknowledged has the times to the acknowledgements, Received those to the consumer.
	Acknowledged, Received Measured
	// Failed are records that were refused, Lost those that were acknowledged and did not arrive.
	Failed, Lost int64
	// Late is by how much the generator itself was late, at most.
	Late time.Duration
}

// stampSize is what EndToEnd puts in front of every value: the time at which it was due, in ns since the
// beginning, as int64; negative while warming up.
const stampSize = 8

// EndToEnd sends a stream with one client and reads it with another, which must not consume anything yet. Both
// latencies count from when a record was due. The topic has to exist, and nobody else may write to it meanwhile.
func EndToEnd(ctx context.Context, stream Stream, producer, consumer *kgo.Client) (*Latencies, error) {
	if stream.Size < stampSize || stream.Rate <= 0 || stream.Records < 1 {
		return nil, fmt.Errorf("a stream needs values of %d bytes, a rate and a number of records: %+v", stampSize, stream)
	}
	_, ends, err := bounds(ctx, producer, stream.Topic)
	if err != nil {
		return nil, err
	}
	// From the present ends exactly, so that nothing is missed.
	from := map[int32]kgo.Offset{}
	for number, end := range ends {
		from[number] = kgo.NewOffset().At(end)
	}
	consumer.AddConsumePartitions(map[string]map[int32]kgo.Offset{stream.Topic: from})
	e := &endToEnd{stream: stream, began: time.Now()}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	read := make(chan error, 1)
	go func() { read <- e.read(reading, consumer) }()
	e.send(ctx, producer)
	if err := producer.Flush(ctx); err != nil {
		return nil, err
	}
	grace := stream.Grace
	if grace == 0 {
		grace = 10 * time.Second
	}
	timer := time.AfterFunc(grace, stop)
	defer timer.Stop()
	if err := <-read; err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() == nil) {
		return nil, err
	}
	e.Lost = e.Acknowledged.Records - e.Received.Records
	return &e.Latencies, e.err
}

// endToEnd is a stream under way.
type endToEnd struct {
	stream Stream
	began  time.Time
	Latencies

	mu  sync.Mutex // for Acknowledged, Failed and err while sending
	err error      // the first
}

// send writes the stream.
func (e *endToEnd) send(ctx context.Context, producer *kgo.Client) {
	pace := NewPace(e.stream.Rate)
	defer pace.End()
	started := time.Now()
	value := Letters(e.stream.Size, 1)
	for i := int64(0); i < e.stream.Warmup+e.stream.Records && ctx.Err() == nil; i++ {
		due := pace.Await(ctx, i)
		if i == e.stream.Warmup {
			pace.Forget()
			started = due
		}
		counts := i >= e.stream.Warmup
		stamp := int64(-1)
		if counts {
			stamp = due.Sub(e.began).Nanoseconds()
		}
		stamped := append(binary.BigEndian.AppendUint64(make([]byte, 0, e.stream.Size), uint64(stamp)), value(i)[stampSize:]...)
		producer.Produce(ctx, &kgo.Record{Topic: e.stream.Topic, Value: stamped}, func(r *kgo.Record, err error) {
			e.acknowledged(time.Since(due), len(r.Value), counts, err)
		})
	}
	e.Late = pace.Late()
	e.Acknowledged.Elapsed = time.Since(started)
}

func (e *endToEnd) acknowledged(took time.Duration, size int, counts bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		e.Failed++
		if e.err == nil {
			e.err = err
		}
	case counts:
		e.Acknowledged.Add(took, size)
	}
}

// read takes records until all that are measured have come.
func (e *endToEnd) read(ctx context.Context, consumer *kgo.Client) error {
	for e.Received.Records < e.stream.Records {
		fetches := consumer.PollFetches(ctx)
		now := time.Since(e.began)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				if stamp := int64(binary.BigEndian.Uint64(r.Value)); stamp >= 0 {
					e.Received.Add(now-time.Duration(stamp), len(r.Value))
				}
			}
		})
	}
	return nil
}
