package record

import (
	"errors"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Origin says who wrote a batch, and so how far it is trusted.
type Origin int8

const (
	// FromClient is a produce request: every rule applies.
	FromClient Origin = iota
	// FromCoordinator is a coordinator of this broker, which writes control batches too.
	FromCoordinator
	// FromLeader is replication: the leader has validated the batch, only its header and CRC are
	// checked, and nothing in it changes.
	FromLeader
)

// Validation says what is asked of a batch: mostly properties of its topic. It is read only, and one may
// serve many calls at once.
type Validation struct {
	// Partition is named in errors.
	Partition protocol.TopicPartition
	// Origin says who wrote the batch.
	Origin Origin
	// ProduceVersion is the version of the produce request, or 0 where there is none: zstd needs 7.
	ProduceVersion int16
	// Recompress is set where compression.type names a codec, Codec and Level; otherwise batches keep
	// their producer's. Level 0 is the codec's default.
	Recompress bool
	Codec      Codec
	Level      int
	// TimestampType is message.timestamp.type.
	TimestampType TimestampType
	// BeforeMax and AfterMax are message.timestamp.before.max.ms and after.max.ms: how far a record's
	// timestamp may be from Now. 0 is a limit like others; negative is none.
	BeforeMax, AfterMax time.Duration
	// MaxMessageBytes is max.message.bytes, the limit for a whole batch; 0 is none.
	MaxMessageBytes int32
	// SegmentBytes is segment.bytes, which a batch must fit into; 0 is no limit.
	SegmentBytes int32
	// Compacted is set where cleanup.policy includes compact: records need keys.
	Compacted bool
	// Now is the time of the append.
	Now time.Time
	// Decompressor and Compressor lend their buffers; nil costs fresh ones.
	Decompressor *Decompressor
	Compressor   *Compressor
}

// Validated is a batch that may be appended once it has its base offset and leader epoch.
type Validated struct {
	// Batch is the batch, in the bytes given to Validate where Rewritten is false. Its base offset is
	// still the client's.
	Batch Batch
	// Count is the number of its records.
	Count int
	// MaxTimestamp is the largest timestamp of the records in ms, or the append time; -1 if none has one.
	MaxTimestamp int64
	// OffsetOfMaxTimestamp is the first record with that timestamp, counted from the base offset; 0 for
	// the append time, -1 if there is none.
	OffsetOfMaxTimestamp int32
	// AppendTime is the time of the append in ms on topics with LogAppendTime, -1 on others.
	AppendTime int64
	// Rewritten is set where Batch is a new buffer: another codec was asked for, or inner offsets were
	// out of order.
	Rewritten bool
}

// RecordError says why one record of a batch was refused.
type RecordError struct {
	// Index is the record's place in the batch, from 0.
	Index int32
	// Message says what is wrong with it.
	Message string
}

// RecordErrorsMax is how many records of a batch are named at most when it is refused.
const RecordErrorsMax = 1000

// RejectedError refuses a whole batch for some of its records.
type RejectedError struct {
	// Reason is the error of the batch.
	Reason *protocol.Error
	// Records are the refused ones, RecordErrorsMax at most.
	Records []RecordError
}

// Error is the error of the batch.
func (e *RejectedError) Error() string { return e.Reason.Error() }

// Unwrap makes the *protocol.Error and its code reachable.
func (e *RejectedError) Unwrap() error { return e.Reason }

// RecordErrorsOf is what a produce response lists as record errors for an error of Validate.
func RecordErrorsOf(err error) []RecordError {
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		return rejected.Records
	}
	return nil
}
