package metrics

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// LagReader finds out how far groups lag, in records and in time. The time is that of the first record not
// read, which takes a look into the log; it is taken once for as long as a group stands still. Its methods
// may be called concurrently.
type LagReader struct {
	progress func(context.Context) iter.Seq[group.Progress]
	logOf    func(protocol.TopicPartition) *log.Log
	now      func() time.Time

	mu    sync.Mutex
	times map[position]int64 // ms since 1970; what the last pass needed
}

// position is where a partition is read on.
type position struct {
	partition protocol.TopicPartition
	offset    int64
}

// NewLagReader reads the progress of groups ([group.Coordinator.Progress]) against the logs that this broker
// leads; logOf answers nil for others.
func NewLagReader(progress func(context.Context) iter.Seq[group.Progress], logOf func(protocol.TopicPartition) *log.Log,
	now func() time.Time) *LagReader {
	return &LagReader{progress: progress, logOf: logOf, now: now}
}

// Groups lists the groups with their lag.
//
// times is replaced as a whole at the end of a pass: positions that no group is at any more are forgotten with
// it. A pass that was cut off leaves the one before.
func (r *LagReader) Groups(ctx context.Context) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		times := make(map[position]int64)
		for p := range r.progress(ctx) {
			g := Group{Name: p.Group, State: p.State, Members: p.Members, Offsets: make([]GroupOffset, len(p.Offsets))}
			for i := range p.Offsets {
				g.Offsets[i] = r.offset(&p.Offsets[i], times)
			}
			if ctx.Err() != nil || !yield(g) {
				return
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.times = times
	}
}

// offset is one committed offset with its lag.
func (r *LagReader) offset(c *group.CommittedOffset, times map[position]int64) GroupOffset {
	o := GroupOffset{Topic: c.Topic, Partition: c.Partition, Committed: c.Offset, Lag: -1, Behind: -1}
	tp := protocol.TopicPartition{Topic: c.Topic, Partition: c.Partition}
	l := r.logOf(tp)
	if l == nil {
		return o
	}
	start, watermark := int64(l.StartOffset()), int64(l.HighWatermark())
	o.Lag = Lag(c.Offset, start, watermark)
	if o.Lag == 0 {
		o.Behind = 0
		return o
	}
	at := position{tp, max(c.Offset, start)}
	r.mu.Lock()
	timestamp, known := r.times[at]
	r.mu.Unlock()
	if !known {
		if timestamp, known = timestampAt(l, at.offset, watermark); !known {
			return o
		}
	}
	times[at] = timestamp
	o.Behind = max(r.now().Sub(time.UnixMilli(timestamp)), 0)
	return o
}

// timestampAt is the time of the batch that holds an offset; false where that cannot be read, or has none.
//
// It is the largest time in the batch, not that of the record: a batch is what is read with one header, and
// within it producers' times differ by their linger.
func timestampAt(l *log.Log, offset, limit int64) (int64, bool) {
	slice, err := l.Read(protocol.Offset(offset), 1, protocol.Offset(limit), true)
	if err != nil {
		return 0, false // retention may have been faster; the next scrape sees the new start
	}
	defer slice.Release()
	if slice.Length == 0 {
		return 0, false
	}
	header := make([]byte, min(slice.Length, record.HeaderSize))
	if _, err := slice.File.ReadAt(header, slice.Position); err != nil {
		return 0, false
	}
	h, err := record.ParseHeader(header)
	if err != nil || h.MaxTimestamp < 0 {
		return 0, false
	}
	return h.MaxTimestamp, true
}
