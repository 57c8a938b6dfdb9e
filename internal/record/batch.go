package record

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

const (
	// HeaderSize is the size of the header of a batch of format 2, in bytes.
	HeaderSize = 61
	// LogOverhead is the size of the base offset and length fields, which the length does not count.
	LogOverhead = 12
)

// Where the fields of a batch of format 2 are.
//
// Why the CRC covers only what stands behind it: the leader sets base offset and leader epoch of a batch that a
// client has sealed, and followers check the client's CRC without any of them computing one anew. Magic is in
// front of it because it says how the CRC is to be computed.
const (
	lengthAt          = 8
	leaderEpochAt     = 12
	magicAt           = 16
	crcAt             = 17
	attributesAt      = 21
	lastOffsetDeltaAt = 23
	baseTimestampAt   = 27
	maxTimestampAt    = 35
	producerIDAt      = 43
	producerEpochAt   = 51
	baseSequenceAt    = 53
	countAt           = 57
)

// castagnoli is the CRC polynomial of format 2; it is constant, and the processor has an instruction for it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is a view on the bytes of one complete batch of format 2, as [Batches], [Validate] or a [Builder]
// give it out: the accessors rely on its being whole. It is as safe for concurrent use as its bytes.
type Batch []byte

// BaseOffset is the offset of the first record that the batch had when it was written.
func (b Batch) BaseOffset() protocol.Offset { return protocol.Offset(binary.BigEndian.Uint64(b)) }

// LastOffset is the offset of the last record that the batch had when it was written.
func (b Batch) LastOffset() protocol.Offset {
	return b.BaseOffset() + protocol.Offset(b.LastOffsetDelta())
}

// NextOffset is the offset after the batch.
// It is not base offset plus count: compaction takes records out and leaves the offsets that the batch spans, so
// that a fetch at a removed offset still finds its place and a producer's sequence numbers still add up.
func (b Batch) NextOffset() protocol.Offset { return b.LastOffset() + 1 }

// Length is the size of the whole batch in bytes, base offset and length field included.
func (b Batch) Length() int { return LogOverhead + int(b.int32At(lengthAt)) }

// LeaderEpoch is the epoch of the leader that appended the batch; before that it is the client's guess.
func (b Batch) LeaderEpoch() protocol.LeaderEpoch {
	return protocol.LeaderEpoch(b.int32At(leaderEpochAt))
}

// Magic is the message format: 2.
func (b Batch) Magic() int8 { return int8(b[magicAt]) }

// CRC is the checksum that the batch claims to have.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[crcAt:]) }

// Attributes are the flags.
func (b Batch) Attributes() Attributes { return Attributes(binary.BigEndian.Uint16(b[attributesAt:])) }

// Codec is how the records are compressed.
func (b Batch) Codec() Codec { return b.Attributes().Codec() }

// TimestampType says whose clock the timestamps are from.
func (b Batch) TimestampType() TimestampType { return b.Attributes().TimestampType() }

// Transactional reports whether the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b.Attributes().Transactional() }

// Control reports whether the batch holds control records.
func (b Batch) Control() bool { return b.Attributes().Control() }

// HasDeleteHorizon reports whether BaseTimestamp is the delete horizon.
func (b Batch) HasDeleteHorizon() bool { return b.Attributes().HasDeleteHorizon() }

// LastOffsetDelta is LastOffset minus BaseOffset.
func (b Batch) LastOffsetDelta() int32 { return b.int32At(lastOffsetDeltaAt) }

// BaseTimestamp is what the timestamp deltas of the records count from, in ms.
func (b Batch) BaseTimestamp() int64 { return b.int64At(baseTimestampAt) }

// MaxTimestamp is the largest timestamp of the records in ms, or the append time.
func (b Batch) MaxTimestamp() int64 { return b.int64At(maxTimestampAt) }

// ProducerID names the idempotent producer, or is NoProducerID.
func (b Batch) ProducerID() protocol.ProducerID { return protocol.ProducerID(b.int64At(producerIDAt)) }

// ProducerEpoch is the epoch of the producer id.
func (b Batch) ProducerEpoch() protocol.ProducerEpoch {
	return protocol.ProducerEpoch(binary.BigEndian.Uint16(b[producerEpochAt:]))
}

// BaseSequence is the producer's sequence number of the first record, or NoSequence.
func (b Batch) BaseSequence() int32 { return b.int32At(baseSequenceAt) }

// LastSequence is the sequence number of the last record, or NoSequence; sequences wrap to 0.
// Duplicates are told by first and last sequence number, so it counts what the producer sent and not what
// compaction has left.
func (b Batch) LastSequence() int32 { return lastSequence(b.BaseSequence(), b.LastOffsetDelta()) }

// Count is the number of records in the batch; after compaction it is smaller than the offsets it spans.
func (b Batch) Count() int32 { return b.int32At(countAt) }

// SetBaseOffset gives the batch its place in the log. It is outside the CRC.
// The batch must not be visible to readers yet: nothing orders this store with their loads.
func (b Batch) SetBaseOffset(offset protocol.Offset) { binary.BigEndian.PutUint64(b, uint64(offset)) }

// SetLeaderEpoch stamps the batch with the epoch of the leader that appends it. It is outside the CRC.
func (b Batch) SetLeaderEpoch(epoch protocol.LeaderEpoch) {
	binary.BigEndian.PutUint32(b[leaderEpochAt:], uint32(epoch))
}

// ValidCRC reports whether the checksum is right.
func (b Batch) ValidCRC() bool { return crc32.Checksum(b[attributesAt:], castagnoli) == b.CRC() }

// sealCRC computes the checksum anew, after a change to what it covers.
func (b Batch) sealCRC() {
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attributesAt:], castagnoli))
}

// setAttributes, setMaxTimestamp and the like change what the CRC covers: seal it afterwards.
func (b Batch) setAttributes(a Attributes) { binary.BigEndian.PutUint16(b[attributesAt:], uint16(a)) }

func (b Batch) setMaxTimestamp(ms int64) { binary.BigEndian.PutUint64(b[maxTimestampAt:], uint64(ms)) }

func (b Batch) int32At(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }

func (b Batch) int64At(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }

// lastSequence adds delta to a sequence number, which wraps from the largest int32 to 0.
func lastSequence(base, delta int32) int32 {
	if base == NoSequence {
		return NoSequence
	}
	// Not int32 arithmetic that overflows: it would go on with negative numbers, of which -1 means "none".
	if base > math.MaxInt32-delta {
		return delta - (math.MaxInt32 - base) - 1
	}
	return base + delta
}
