package record

import (
	"encoding/binary"
	"math"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// BuilderOptions are the header of the batch to build. The zero value is a plain, uncompressed batch at
// offset 0 with the producer's timestamps.
type BuilderOptions struct {
	// Codec and Level compress the records; Level 0 is the codec's default. Compressor lends buffers, and
	// may be nil.
	Codec      Codec
	Level      int
	Compressor *Compressor
	// BaseOffset is the offset of the batch.
	BaseOffset protocol.Offset
	// LeaderEpoch stamps the batch; whoever appends it stamps it again.
	LeaderEpoch protocol.LeaderEpoch
	// ProducerID, ProducerEpoch and BaseSequence are written as they are, except that three zeros mean
	// the -1 of a plain producer, unless Idempotent or Transactional is set.
	ProducerID    protocol.ProducerID
	ProducerEpoch protocol.ProducerEpoch
	BaseSequence  int32
	Idempotent    bool
	// Transactional and Control set the bits of the attributes.
	Transactional bool
	Control       bool
	// TimestampType LogAppendTime makes AppendTime the time of all records.
	TimestampType TimestampType
	AppendTime    int64
	// DeleteHorizon, in ms, becomes the base timestamp where it is above 0 (KIP-534).
	DeleteHorizon int64
}

// Builder builds a batch of format 2 record by record. It is for one goroutine. It holds the records
// uncompressed until Build, since batches of coordinators are small and those of the cleaner are bounded by
// the ones that it read.
type Builder struct {
	options BuilderOptions
	// buffer is the batch so far: room for the header, then the records.
	buffer []byte
	// body is the record that is being written, apart since its length stands in front of it.
	body []byte
	// lastOffset is that of the last record, or what SetLastOffset made it.
	lastOffset protocol.Offset
	// maxTimestamp is the largest so far; NoTimestamp stays where no record has a time.
	maxTimestamp int64
	// baseTime is what the timestamp deltas count from; the first record sets it.
	baseTime int64
	count    int32
}

// NewBuilder starts a batch. A batch without records can be built too; the log cleaner does not, since what
// it keeps of an emptied batch is [Batch.Emptied].
func NewBuilder(options BuilderOptions) *Builder {
	if !options.Idempotent && !options.Transactional &&
		options.ProducerID == 0 && options.ProducerEpoch == 0 && options.BaseSequence == 0 {
		options.ProducerID, options.ProducerEpoch = protocol.NoProducerID, protocol.NoProducerEpoch
		options.BaseSequence = NoSequence
	}
	return &Builder{
		options: options, buffer: make([]byte, HeaderSize, 512),
		lastOffset: options.BaseOffset - 1, maxTimestamp: NoTimestamp, baseTime: NoTimestamp,
	}
}

// Append adds a record at the next offset. A nil key or value is null, timestamp is in ms.
func (w *Builder) Append(timestamp int64, key, value []byte, headers ...RecordHeader) {
	w.begin(w.lastOffset+1, timestamp, key, value)
	w.body = appendVarint(w.body, int64(len(headers)))
	for _, h := range headers {
		w.body = appendVarint(w.body, int64(len(h.Key)))
		w.body = append(w.body, h.Key...)
		w.body = appendBytes(w.body, h.Value)
	}
	w.end()
}

// AppendRecord adds a copy of r at r's own offset, which must be above those before it: the log cleaner
// keeps offsets.
func (w *Builder) AppendRecord(r Record) {
	if r.Offset <= w.lastOffset {
		invariant.Fail("record at offset %d appended after offset %d", r.Offset, w.lastOffset)
	}
	w.begin(r.Offset, r.Timestamp, r.Key, r.Value)
	w.body = appendVarint(w.body, int64(r.Headers.count))
	w.body = append(w.body, r.Headers.raw...)
	w.end()
}

// Count is the number of records so far.
func (w *Builder) Count() int { return int(w.count) }

// Size is the size of the batch so far in bytes, before compression.
func (w *Builder) Size() int { return len(w.buffer) }

// SetLastOffset makes the batch span offsets up to offset, which the log cleaner keeps when it takes
// records out.
func (w *Builder) SetLastOffset(offset protocol.Offset) {
	if offset < w.lastOffset {
		invariant.Fail("last offset %d below that of the last record, %d", offset, w.lastOffset)
	}
	w.lastOffset = offset
}

// begin writes the body of a record up to its headers. Deltas may be negative: producers give timestamps in
// any order, and the first record's is the base whatever follows. With a delete horizon the base is the
// horizon, and the deltas count from there.
//
//	w.body    attributes 0 | timestamp delta | offset delta | key | value | headers   (built here)
//	w.buffer  header, records so far, | len(w.body) varint | w.body                   (added by end)
//
// The length stands in front and is a varint, so its own size is known only when the body is: hence two buffers.
func (w *Builder) begin(offset protocol.Offset, timestamp int64, key, value []byte) {
	if w.count == 0 {
		w.baseTime = timestamp
		if w.options.DeleteHorizon > 0 {
			w.baseTime = w.options.DeleteHorizon
		}
	}
	delta := offset - w.options.BaseOffset
	if delta < 0 || delta > math.MaxInt32 {
		invariant.Fail("record at offset %d in a batch at %d", offset, w.options.BaseOffset)
	}
	w.lastOffset = offset
	w.maxTimestamp = max(w.maxTimestamp, timestamp)
	w.body = append(w.body[:0], 0)
	w.body = appendVarint(w.body, timestamp-w.baseTime)
	w.body = appendVarint(w.body, int64(delta))
	w.body = appendBytes(w.body, key)
	w.body = appendBytes(w.body, value)
}

// end adds the record in body to the batch.
func (w *Builder) end() {
	w.buffer = appendVarint(w.buffer, int64(len(w.body)))
	w.buffer = append(w.buffer, w.body...)
	w.count++
}

// appendBytes appends a nullable byte string.
func appendBytes(dst, value []byte) []byte {
	if value == nil {
		return append(dst, 1) // -1 in zig-zag
	}
	dst = appendVarint(dst, int64(len(value)))
	return append(dst, value...)
}

// Build finishes the batch, which is the caller's; the builder must not be used afterwards.
func (w *Builder) Build() Batch {
	if w.options.Codec != None {
		w.buffer = w.compress()
	}
	// The deltas keep the producer's times; readers replace them by the maximum (see frame.useAppendTime).
	if w.options.TimestampType == LogAppendTime {
		w.maxTimestamp = w.options.AppendTime
	}
	putHeader(w.buffer, &w.options, headerTail{
		lastOffsetDelta: int32(w.lastOffset - w.options.BaseOffset),
		baseTimestamp:   w.baseTime, maxTimestamp: w.maxTimestamp, count: w.count,
	})
	b := Batch(w.buffer)
	b.sealCRC()
	return b
}

// compress returns the batch with its records compressed. An empty batch has no payload at all.
func (w *Builder) compress() []byte {
	if w.count == 0 {
		return w.buffer
	}
	header := make([]byte, HeaderSize, len(w.buffer)/2+HeaderSize)
	return w.options.Compressor.Compress(header, w.buffer[HeaderSize:], w.options.Codec, w.options.Level)
}

// headerTail is the part of a header that only the records tell.
type headerTail struct {
	lastOffsetDelta             int32
	baseTimestamp, maxTimestamp int64
	count                       int32
}

// attributes packs the flags.
func (o *BuilderOptions) attributes() Attributes {
	a := Attributes(o.Codec)
	if o.TimestampType == LogAppendTime {
		a |= logAppendTimeBit
	}
	if o.Transactional {
		a |= transactionalBit
	}
	if o.Control {
		a |= controlBit
	}
	if o.DeleteHorizon > 0 {
		a |= deleteHorizonBit
	}
	return a
}

// putHeader fills in all of a batch's header but the CRC, which is sealed when nothing changes any more.
func putHeader(b []byte, o *BuilderOptions, tail headerTail) {
	Batch(b).SetBaseOffset(o.BaseOffset)
	binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-LogOverhead))
	Batch(b).SetLeaderEpoch(o.LeaderEpoch)
	b[magicAt] = 2
	Batch(b).setAttributes(o.attributes())
	binary.BigEndian.PutUint32(b[lastOffsetDeltaAt:], uint32(tail.lastOffsetDelta))
	binary.BigEndian.PutUint64(b[baseTimestampAt:], uint64(tail.baseTimestamp))
	Batch(b).setMaxTimestamp(tail.maxTimestamp)
	binary.BigEndian.PutUint64(b[producerIDAt:], uint64(o.ProducerID))
	binary.BigEndian.PutUint16(b[producerEpochAt:], uint16(o.ProducerEpoch))
	binary.BigEndian.PutUint32(b[baseSequenceAt:], uint32(o.BaseSequence))
	binary.BigEndian.PutUint32(b[countAt:], uint32(tail.count))
}
