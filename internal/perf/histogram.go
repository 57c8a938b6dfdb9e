package perf

import (
	"math/bits"
	"time"
)

// Measured is what a run has moved, and how long records took.
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

// Add counts one record of so many bytes that took so long.
func (m *Measured) Add(took time.Duration, bytes int) {
	m.Records++
	m.Bytes += int64(bytes)
	m.latency.add(took)
}

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

// Merge adds what another run has measured, but for its time.
func (m *Measured) Merge(other *Measured) {
	m.Records += other.Records
	m.Bytes += other.Bytes
	h, o := &m.latency, &other.latency
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count, h.sum, h.max = h.count+o.count, h.sum+o.sum, max(h.max, o.max)
}
