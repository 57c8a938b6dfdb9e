package replica

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// CoordinatorLog is a partition of an internal topic as a coordinator sees it: it appends in the epoch in
// which it loaded its state, and reads up to the log end.
type CoordinatorLog struct {
	partition *Partition
	now       func() time.Time
}

// NewCoordinatorLog is the view of a coordinator on p.
func NewCoordinatorLog(p *Partition, now func() time.Time) CoordinatorLog {
	return CoordinatorLog{partition: p, now: now}
}

// Append appends one batch where this replica has led without a break since epoch, without waiting for it to be
// committed.
func (c CoordinatorLog) Append(ctx context.Context, batch record.Batch, epoch protocol.LeaderEpoch) (protocol.Offset, error) {
	v, err := c.partition.Validate(batch, record.FromCoordinator, 0, c.now())
	if err != nil {
		return protocol.NoOffset, err
	}
	appended, err := c.partition.AppendIn(ctx, v, epoch)
	return appended.Last, err
}

// WaitCommitted is [Partition.Wait].
func (c CoordinatorLog) WaitCommitted(ctx context.Context, epoch protocol.LeaderEpoch, end protocol.Offset) error {
	return c.partition.Wait(ctx, epoch, end)
}

// LedSince reports whether this replica leads, without a break since the start of epoch.
func (c CoordinatorLog) LedSince(epoch protocol.LeaderEpoch) bool {
	return term(c.partition.term.Load()).covers(epoch)
}

// Read copies whole batches from the one that holds offset from, up to the log end.
func (c CoordinatorLog) Read(from protocol.Offset, maxBytes int) ([]byte, error) {
	slice, err := c.partition.Read(from, maxBytes, c.partition.Bounds().End, true)
	if err != nil || slice.Length == 0 {
		return nil, err
	}
	defer slice.Release()
	batches := make([]byte, slice.Length)
	return batches, slice.ReadInto(batches)
}

// Bounds are the log start offset and the log end offset.
func (c CoordinatorLog) Bounds() (start, end protocol.Offset) {
	b := c.partition.Bounds()
	return b.Start, b.End
}

// HighWatermark is the offset below which records are committed.
func (c CoordinatorLog) HighWatermark() protocol.Offset { return c.partition.Bounds().HighWatermark }
