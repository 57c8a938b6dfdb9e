package admin

import (
	"cmp"
	"context"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Measured is what a run has moved, and how long records took to be acknowledged.
type Measured struct {
	Records, Bytes int64
	Elapsed        time.Duration

	latency histogram
}

// RecordsPerSecond is 0 where no time has passed.
func (m *Measured) RecordsPerSecond() float64 { return m.perSecond(float64(m.Records)) }

// MegabytesPerSecond counts megabytes of 1,048,576 bytes, as Kafka's tools do.
func (m *Measured) MegabytesPerSecond() float64 { return m.perSecond(float64(m.Bytes) / (1 << 20)) }

func (m *Measured) perSecond(n float64) float64 {
	if m.Elapsed <= 0 {
		return 0
	}
	return n / m.Elapsed.Seconds()
}

// Quantile is the latency in ms that the share q of the records did not exceed, to about 1.5 %.
func (m *Measured) Quantile(q float64) float64 { return ms(m.latency.quantile(q)) }

// Mean is the mean latency in ms.
func (m *Measured) Mean() float64 { return ms(m.latency.mean()) }

// Max is the largest latency in ms.
func (m *Measured) Max() float64 { return ms(m.latency.max) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// subBuckets is how many buckets a power of two of the histogram has.
const subBuckets = 64

// histogram counts durations in buckets whose width is a 64th of their size.
//
//	d < 64        its own bucket for each nanosecond
//	otherwise     64 buckets for each power of two: the top 7 bits of d choose
//
// so that a quantile is off by at most a 64th of its size, whatever the scale, and adding costs one increment.
// 32 KiB.
type histogram struct {
	buckets [64 * subBuckets]int64
	count   int64
	sum     time.Duration
	max     time.Duration
}

func bucketOf(d time.Duration) int {
	u := uint64(max(d, 0))
	if u < subBuckets {
		return int(u)
	}
	shift := bits.Len64(u) - bits.Len64(subBuckets)
	return (shift+1)*subBuckets + int(u>>shift) - subBuckets
}

// upper is the largest duration of a bucket.
func upper(bucket int) time.Duration {
	if bucket < subBuckets {
		return time.Duration(bucket)
	}
	shift := bucket/subBuckets - 1
	return time.Duration((uint64(bucket%subBuckets+subBuckets)+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.count++
	h.sum += d
	h.max = max(h.max, d)
}

func (h *histogram) mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

func (h *histogram) quantile(q float64) time.Duration {
	rank, seen := int64(q*float64(h.count)), int64(0)
	for bucket, n := range h.buckets {
		if seen += n; n > 0 && seen > rank {
			return min(upper(bucket), h.max)
		}
	}
	return h.max
}

// Load is what [Client.MeasureProduce] writes.
//
// The callbacks run on the client's goroutines while a lock is held: they must be quick.
type Load struct {
	Topic   string
	Records int64
	// Size is the bytes of a value, which are random letters.
	Size int
	// Value makes the values instead, where it is not nil, and Key the keys.
	Value, Key func(i int64) []byte
	// Rate is records a second, 0 for as fast as they go.
	Rate float64
	// Each is called now and then with what has been measured so far.
	Each func(*Measured)
	// Acknowledged is called with each record's time to its acknowledgement and its size, one at a time.
	Acknowledged func(took time.Duration, size int)
	// Failed is called with the error of each record that failed, one at a time; nil ends the load at the
	// first.
	Failed func(error)
}

// measureEvery is how many records lie between two calls of Load.Each.
const measureEvery = 1000

// MeasureProduce writes a load and waits for its acknowledgements. It ends early with ctx, which is no
// error, and with the first record that fails.
func (c *Client) MeasureProduce(ctx context.Context, load Load) (*Measured, error) {
	m := &measuring{load: load, began: time.Now()}
	value := load.Value
	if value == nil {
		value = Letters(load.Size, 0)
	}
	patience := newPatience(ctx, c.timeout)
	defer patience.end()
	for i := int64(0); i < load.Records && ctx.Err() == nil && m.failure() == nil; i++ {
		m.pace(ctx, i)
		record := &kgo.Record{Topic: load.Topic, Value: value(i)}
		if load.Key != nil {
			record.Key = load.Key(i)
		}
		sent := time.Now()
		patience.sent()
		c.kafka.Produce(patience.ctx, record, func(r *kgo.Record, err error) { m.done(r, time.Since(sent), patience.ended(err)) })
	}
	ending, cancel := c.limit(context.WithoutCancel(ctx))
	defer cancel()
	if err := c.kafka.Flush(ending); err != nil {
		return nil, c.Explain(err)
	}
	m.measured.Elapsed = time.Since(m.began)
	if err := m.failure(); err != nil && ctx.Err() == nil {
		return nil, c.Explain(err)
	}
	return &m.measured, nil
}

// Letters makes values of random letters, as Kafka's tool does, cut out of one long text.
func Letters(size int, seed uint64) func(i int64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	// Making each value anew would cost more than sending it.
	text := make([]byte, size+1<<16)
	for i := range text {
		text[i] = byte('A' + random.IntN(26))
	}
	return func(i int64) []byte {
		from := int(uint64(i) * 7919 % (1 << 16))
		return text[from : from+size]
	}
}

// measuring is a load under way.
type measuring struct {
	load  Load
	began time.Time

	mu       sync.Mutex
	measured Measured
	err      error
}

// pace waits until it is time for record i.
func (m *measuring) pace(ctx context.Context, i int64) {
	if m.load.Rate <= 0 {
		return
	}
	due := m.began.Add(time.Duration(float64(i) / m.load.Rate * float64(time.Second)))
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

func (m *measuring) done(r *kgo.Record, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil && m.load.Failed != nil:
		m.load.Failed(err)
		return
	case err != nil:
		m.err = cmp.Or(m.err, err)
		return
	}
	m.measured.Records++
	m.measured.Bytes += int64(len(r.Key) + len(r.Value))
	if m.load.Acknowledged != nil {
		m.load.Acknowledged(took, len(r.Value))
	}
	m.measured.latency.add(took)
	if m.load.Each != nil && m.measured.Records%measureEvery == 0 {
		m.measured.Elapsed = time.Since(m.began)
		m.load.Each(&m.measured)
	}
}

func (m *measuring) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
