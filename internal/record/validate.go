package record

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// zstdProduceVersion is the first version of Produce whose batches may be compressed with zstd (KIP-110).
const zstdProduceVersion = 7

// Validate checks that raw is exactly one batch of format 2 that may be appended, with Kafka's rules and, but
// for the cases below, its error codes. It changes raw only where it succeeds, and there the maximum
// timestamp, the timestamp type, the delete horizon flag and the CRC where the topic or the records demand
// it. Errors carry a *protocol.Error; see also [RecordErrorsOf].
//
// Where Kafka 4.4 differs: it stores uncompressed records whose offset deltas are not 0 to count-1 as they
// are, and we number them; it stores compressed records that are shorter than their length field, which no
// client can read, and we refuse them; it answers UNKNOWN_SERVER_ERROR to what does not decompress, to
// varints without end and to codecs that do not exist, and to compressed records with other offset deltas,
// where we answer INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE, and number them; it does not answer at all
// where there are null records; and it keeps a delete horizon that a client set.
//
// The way of a batch, and the codes in the order in which they win:
//
//	cut         one whole batch of format 2?   CORRUPT_MESSAGE, INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE
//	checkBatch  header                         INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE (the CRC), ...
//	walk        every record, copied if        INVALID_RECORD where it cannot be read
//	            codec or offsets must change
//	rejection   records that break a rule      INVALID_TIMESTAMP before INVALID_RECORD (KAFKA-13710)
//	finish      size as stored, stamps         RECORD_LIST_TOO_LARGE
//
// The CRC is checked on every way in, replication included: a single path without the check let a damaged batch
// reach the disk (KAFKA-8722).
func Validate(raw []byte, v Validation) (Validated, error) {
	b, err := v.cut(raw)
	if err != nil {
		return Validated{}, err
	}
	if err := v.checkBatch(b); err != nil {
		return Validated{}, err
	}
	if v.Origin == FromLeader {
		return Validated{
			Batch: b, Count: int(b.Count()), MaxTimestamp: b.MaxTimestamp(), OffsetOfMaxTimestamp: b.LastOffsetDelta(),
			AppendTime: NoTimestamp,
		}, nil
	}
	w := v.walker(b)
	rewritten, err := v.walk(b, &w)
	if err == nil {
		err = w.rejection(&v)
	}
	if err != nil {
		return Validated{}, v.named(err)
	}
	if rewritten == nil {
		return v.finish(b, &w, false)
	}
	return v.finish(rewritten, &w, true)
}

// refuse makes an error that names the partition.
func (v *Validation) refuse(code protocol.Code, format string, args ...any) error {
	return protocol.Errorf(code, format+" in a batch for "+v.Partition.String(), args...)
}

// named makes a damaged record an error that a response can carry, with the partition in its message.
func (v *Validation) named(err error) error {
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		return protocol.Errorf(corrupt.Code, "%s in a batch for %s: %w", corrupt.Reason, v.Partition, err)
	}
	return err
}

// cut takes the one batch out of raw. What follows it and is too short for another is ignored, as Kafka does.
func (v *Validation) cut(raw []byte) (Batch, error) {
	size, err := v.frameSize(raw)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, v.refuse(protocol.InvalidRecord, "no complete batch in %d bytes", len(raw))
	}
	if raw[magicAt] != 2 {
		return nil, v.refuse(protocol.InvalidRecord, "message format %d instead of 2", raw[magicAt])
	}
	if size < HeaderSize {
		return nil, v.refuse(protocol.CorruptMessage, "%d bytes, less than a header,", size)
	}
	b := Batch(raw[:size:size])
	if v.ProduceVersion > 0 && v.ProduceVersion < zstdProduceVersion && b.Codec() == Zstd {
		return nil, v.refuse(protocol.UnsupportedCompressionType, "zstd from Produce version %d", v.ProduceVersion)
	}
	another, err := v.frameSize(raw[size:])
	if err != nil {
		return nil, err
	}
	if another > 0 {
		return nil, v.refuse(protocol.InvalidRecord, "a second batch")
	}
	return b, nil
}

// frameSize is the size of the batch or message at the start of b, of any format, or 0 where b ends before it
// does.
func (v *Validation) frameSize(b []byte) (int, error) {
	if len(b) < LogOverhead {
		return 0, nil
	}
	length := int(int32(binary.BigEndian.Uint32(b[lengthAt:])))
	if length < messageV0LengthMin {
		return 0, v.refuse(protocol.CorruptMessage, "length %d", length)
	}
	if len(b) <= magicAt {
		return 0, nil
	}
	if b[magicAt] > 2 {
		return 0, v.refuse(protocol.CorruptMessage, "magic %d", int8(b[magicAt]))
	}
	if length > len(b)-LogOverhead {
		return 0, nil
	}
	return LogOverhead + length, nil
}

// checkBatch checks the header, in Kafka's order: a batch that breaks several rules gets the same code.
func (v *Validation) checkBatch(b Batch) error {
	if v.Origin == FromClient && b.BaseOffset() != 0 {
		return v.refuse(protocol.InvalidRecord, "base offset %d instead of 0", b.BaseOffset())
	}
	if v.MaxMessageBytes > 0 && v.Origin != FromLeader && len(b) > int(v.MaxMessageBytes) {
		return v.refuse(protocol.MessageTooLarge, "%d bytes, max.message.bytes is %d,", len(b), v.MaxMessageBytes)
	}
	if !b.ValidCRC() {
		return v.refuse(protocol.CorruptMessage, "wrong CRC %#08x", b.CRC())
	}
	if !b.Codec().Known() {
		return v.refuse(protocol.UnsupportedCompressionType, "unknown compression type %d", int8(b.Codec()))
	}
	if v.Origin == FromClient {
		return v.checkClient(b)
	}
	if b.Count() < 0 || b.LastOffsetDelta() < 0 || b.BaseOffset() < 0 && v.Origin == FromLeader {
		return v.refuse(protocol.CorruptMessage, "base offset %d, last offset delta %d, count %d", b.BaseOffset(), b.LastOffsetDelta(), b.Count())
	}
	return nil
}

// checkClient checks what only clients get wrong. Sequences need no upper bound: they wrap. A transaction
// without a producer id could never be ended.
func (v *Validation) checkClient(b Batch) error {
	switch {
	case b.Count() <= 0 || int64(b.Count()) != int64(b.LastOffsetDelta())+1:
		return v.refuse(protocol.InvalidRecord, "count %d, last offset delta %d", b.Count(), b.LastOffsetDelta())
	case b.Control():
		return v.refuse(protocol.InvalidRecord, "control records from a client")
	case b.ProducerID() >= 0 && b.BaseSequence() < 0:
		return v.refuse(protocol.InvalidRecord, "sequence %d of producer id %d", b.BaseSequence(), b.ProducerID())
	case b.Transactional() && b.ProducerID() < 0:
		return v.refuse(protocol.InvalidRecord, "a transaction without a producer id")
	}
	return nil
}

// walk looks at every record of b, and gives the rewritten batch where one is needed. A batch that needs
// another codec is judged while it is copied. One whose offsets are out of order shows that only at its end,
// and is copied in a second walk: that is rare enough (no client of today sends such batches).
func (v *Validation) walk(b Batch, w *walker) (Batch, error) {
	if v.target(b) != b.Codec() {
		rewritten, err := v.rewrite(b, w, false)
		if err != nil || !w.shuffled || v.Origin != FromClient {
			return rewritten, err
		}
		return v.rewrite(b, w, true)
	}
	var err error
	if b.Codec() == None {
		err = w.plain(b)
	} else {
		err = w.compressed(b, v.Decompressor)
	}
	if err != nil || !w.shuffled || v.Origin != FromClient || len(w.rejected) > 0 {
		return nil, err
	}
	return v.rewrite(b, w, true)
}

// target is the codec that b is to be stored with. Control batches stay uncompressed, since every reader of
// transactions looks into them, and so do batches without records.
func (v *Validation) target(b Batch) Codec {
	if !v.Recompress || b.Count() == 0 || b.Control() && b.Codec() == None {
		return b.Codec()
	}
	return v.Codec
}

// finish sets what the topic and the records demand of the header. It is the only place that changes a batch
// in the caller's bytes, and nothing can fail behind it. A delete horizon is the cleaner's: from a client it
// would let tombstones go at the producer's time instead of after delete.retention.ms.
func (v *Validation) finish(b Batch, w *walker, rewritten bool) (Validated, error) {
	if v.SegmentBytes > 0 && len(b) > int(v.SegmentBytes) {
		return Validated{}, v.refuse(protocol.RecordListTooLarge, "%d bytes, segment.bytes is %d,", len(b), v.SegmentBytes)
	}
	result := Validated{
		Batch: b, Count: int(b.Count()), MaxTimestamp: w.maxTimestamp, OffsetOfMaxTimestamp: w.maxIndex,
		AppendTime: NoTimestamp, Rewritten: rewritten,
	}
	attributes := b.Attributes() &^ logAppendTimeBit
	if v.Origin == FromClient {
		attributes &^= deleteHorizonBit
	}
	if v.TimestampType == LogAppendTime {
		attributes |= logAppendTimeBit
		result.AppendTime = v.Now.UnixMilli()
		result.MaxTimestamp, result.OffsetOfMaxTimestamp = result.AppendTime, 0
	}
	if rewritten || attributes != b.Attributes() || result.MaxTimestamp != b.MaxTimestamp() {
		b.setAttributes(attributes)
		b.setMaxTimestamp(result.MaxTimestamp)
		b.sealCRC()
	}
	return result, nil
}

// milliseconds turns a limit into what timestamps are compared with; negative is none, and so is the longest
// that a Duration can be, which is how Kafka's default (the largest int64 of milliseconds) arrives.
func milliseconds(d time.Duration) int64 {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	if ms := d.Milliseconds(); d >= 0 && ms < longest {
		return ms
	}
	return math.MaxInt64
}

// inside turns an error from inside the batch into one for the client.
func (v *Validation) inside(b Batch, err error) error {
	if _, ok := errors.AsType[*CorruptError](err); ok {
		return err
	}
	if err == errLimit {
		return v.refuse(protocol.MessageTooLarge, "more than the %d of max.message.bytes when stored", v.MaxMessageBytes)
	}
	return b.damaged(err)
}
