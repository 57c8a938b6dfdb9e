package shard

import (
	"context"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// Partition is the replicated log of a shard, as its leader sees it. All methods may be called
// concurrently.
type Partition interface {
	// Append appends one batch and returns the offset of its last record, without waiting for other
	// replicas. It refuses where the partition has not been led without a break since the start of epoch, checked
	// under the partition's lock, with NOT_LEADER_OR_FOLLOWER. The errors that [certain] lists mean that nothing of the batch is or will
	// ever be in the log; after any other error that is unknown. The batch's offsets and leader epoch are
	// set in place.
	Append(ctx context.Context, batch record.Batch, epoch protocol.LeaderEpoch) (last protocol.Offset, err error)
	// WaitCommitted returns nil once the high watermark is at end or above, and the partition has been led
	// without a break since the start of epoch; NOT_LEADER_OR_FOLLOWER where it has not.
	WaitCommitted(ctx context.Context, epoch protocol.LeaderEpoch, end protocol.Offset) error
	// LedSince reports whether the partition is led, without a break since the start of epoch.
	LedSince(epoch protocol.LeaderEpoch) bool
	// Read returns whole batches from the one that holds offset from, up to the log end: at least one, and
	// no more once there are maxBytes. It may return none although from is below the log end, where
	// compaction has left nothing. Below the log start it fails with OFFSET_OUT_OF_RANGE.
	Read(from protocol.Offset, maxBytes int) (batches []byte, err error)
	// Bounds are the log start offset and the log end offset.
	Bounds() (start, end protocol.Offset)
	// HighWatermark is the offset below which records are committed.
	HighWatermark() protocol.Offset
}

// certain reports whether a failed append has left nothing in the log for sure.
func certain(err error) bool {
	switch protocol.CodeOf(err) {
	case protocol.MessageTooLarge, protocol.RecordListTooLarge, protocol.NotEnoughReplicas,
		protocol.InvalidRecord, protocol.InvalidTimestamp, protocol.KafkaStorageError,
		protocol.OutOfOrderSequenceNumber, protocol.InvalidProducerEpoch, protocol.InvalidTxnState:
		return true
	}
	return false
}
