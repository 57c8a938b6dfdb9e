package record

import (
	"errors"
	"fmt"
	"math"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// holdMax is the largest record that validation holds as a whole, in bytes; larger ones stream by.
const holdMax = 256 << 10

// errRecord says that the fields of a record do not fill it.
var errRecord = errors.New("fields of a record do not fill it")

// walker is the state of one walk over the records of a batch that is being validated. It is apart from the
// ways to get at the records (in place, as they stream by, while they are copied), so that they are judged
// alike.
type walker struct {
	// baseTimestamp is what the timestamp deltas count from.
	baseTimestamp int64
	// now, before and after bound timestamps, in ms; timeless is set where the topic has LogAppendTime
	// and they are the producer's business.
	now, before, after int64
	timeless           bool
	// needKeys is set for compacted topics, which could never compact a record without a key.
	needKeys  bool
	partition protocol.TopicPartition

	// maxTimestamp is the largest timestamp so far, and maxIndex the first record that has it: clients
	// ask for that record's offset (KIP-734).
	maxTimestamp int64
	maxIndex     int32
	// shuffled is set where the offset deltas are not 0 to count-1.
	shuffled bool
	// lateCount counts the rejections for timestamps, allCount all of them; rejected names the first.
	allCount, lateCount int
	rejected            []RecordError
}

func (v *Validation) walker(b Batch) walker {
	w := walker{
		baseTimestamp: b.BaseTimestamp(), now: v.Now.UnixMilli(),
		before: milliseconds(v.BeforeMax), after: milliseconds(v.AfterMax),
		timeless: v.TimestampType == LogAppendTime, needKeys: v.Compacted, partition: v.Partition,
	}
	w.reset()
	if b.TimestampType() == LogAppendTime {
		w.appendTimed(b)
	}
	return w
}

// reset begins another walk over the same batch.
func (w *walker) reset() {
	w.maxTimestamp, w.maxIndex, w.shuffled = NoTimestamp, -1, false
	w.rejected, w.allCount, w.lateCount = w.rejected[:0], 0, 0
}

// appendTimed judges a batch that claims to have the broker's time already, as only brokers write it. On a
// topic with CreateTime it is taken, with the times of the records, if the time that it claims is a fair one.
func (w *walker) appendTimed(b Batch) {
	if !w.timeless && b.MaxTimestamp() != NoTimestamp && !w.outOfRange(b.MaxTimestamp()) {
		return
	}
	for i := range min(b.Count(), RecordErrorsMax) {
		w.reject(i, true, "Producer must not set the timestamp type LogAppendTime")
	}
}

// outOfRange compares a timestamp with the limits. The differences wrap around as Java's do.
// The limits are those of KIP-937; both count from the time of the append.
func (w *walker) outOfRange(timestamp int64) bool {
	age := w.now - timestamp
	return age > w.before || -age > w.after
}

// see judges one record. Of several faults the first counts, the missing key before the timestamp, as in
// Kafka.
func (w *walker) see(index int32, s *skimmed) {
	if s.offsetDelta != index {
		w.shuffled = true
	}
	timestamp := w.baseTimestamp + s.timestampDelta
	// Strictly above: of several records with the largest timestamp the first is the answer.
	if timestamp > w.maxTimestamp {
		w.maxTimestamp, w.maxIndex = timestamp, index
	}
	if s.nullKey && w.needKeys {
		w.reject(index, false, "Record without a key on the compacted topic "+w.partition.Topic)
		return
	}
	if !w.timeless && timestamp != NoTimestamp && w.outOfRange(timestamp) {
		w.reject(index, true, "")
		w.describeTime(timestamp)
	}
}

// describeTime words the last rejection, if it is among those that are named.
func (w *walker) describeTime(timestamp int64) {
	if w.allCount > len(w.rejected) {
		return
	}
	oldest, newest := int64(math.MinInt64), int64(math.MaxInt64)
	if w.before != math.MaxInt64 {
		oldest = w.now - w.before
	}
	if w.after != math.MaxInt64 {
		newest = w.now + w.after
	}
	w.rejected[len(w.rejected)-1].Message = fmt.Sprintf(
		"Timestamp %d is out of range: the topic takes %d to %d", timestamp, oldest, newest)
}

// reject notes a record that is refused. The rest of the batch is looked at all the same: a client gets to
// know all of its bad records at once, up to a limit that keeps the response smaller than the request.
func (w *walker) reject(index int32, late bool, message string) {
	w.allCount++
	if late {
		w.lateCount++
	}
	if len(w.rejected) < RecordErrorsMax {
		w.rejected = append(w.rejected, RecordError{Index: index, Message: message})
	}
}

// rejection is the error for the batch if records of it were refused. A bad timestamp is what the client is
// told about where there are other faults too.
func (w *walker) rejection(v *Validation) error {
	if w.allCount == 0 {
		return nil
	}
	reason := &protocol.Error{
		Code:    protocol.InvalidRecord,
		Message: fmt.Sprintf("%d records refused in a batch for %s, first: %s", w.allCount, v.Partition, w.rejected[0].Message),
	}
	if w.lateCount > 0 {
		reason.Code = protocol.InvalidTimestamp
	}
	return &RejectedError{Reason: reason, Records: w.rejected}
}

// plain walks uncompressed records in place. It allocates nothing unless a record is refused.
func (w *walker) plain(b Batch) error {
	rest := []byte(b[HeaderSize:])
	var s skimmed
	for i := range b.Count() {
		n := skim(rest, &s)
		if n == 0 {
			return explain(b, rest)
		}
		w.see(i, &s)
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return invalid(b.BaseOffset(), "%d bytes behind the last of %d records", len(rest), b.Count())
	}
	return nil
}

// explain says what is wrong with the record at the start of rest, which skim refused: skim has no words, so
// that it stays fast, and scan must come to the same judgement.
func explain(b Batch, rest []byte) error {
	f := frameOf(b)
	_, err := f.scan(rest, new(Record))
	if err == nil {
		invariant.Fail("skim refuses a record that scan takes: %x", rest[:min(len(rest), 64)])
	}
	return err
}

// compressed walks compressed records as they stream by.
func (w *walker) compressed(b Batch, d *Decompressor) error {
	if b.Count() == 0 {
		return nil
	}
	s, err := d.open(b.Codec(), b[HeaderSize:], guarded)
	if err != nil {
		return b.damaged(err)
	}
	defer d.close(s)
	var r skimmed
	for i := range b.Count() {
		if err := s.skimNext(&r); err != nil {
			return b.damaged(err)
		}
		w.see(i, &r)
	}
	return b.finish(s)
}

// skimNext skims the next record of a stream: out of the chunk where it lies there as a whole, which is the
// rule; out of a copy where it lies across chunks; and piece by piece where it is large.
func (s *stream) skimNext(r *skimmed) error {
	if n := skim(s.chunk, r); n > 0 {
		s.chunk = s.chunk[n:]
		return nil
	}
	size, _, err := s.varint()
	switch {
	case err != nil:
		return unexpected(err)
	case size <= 0:
		return errRecord
	case int(size) > s.recordMax:
		return errTooLarge
	case size > holdMax:
		return s.skimLarge(int(size), r)
	}
	body, err := s.take(int(size))
	if err == nil && !skimBody(body, r) {
		err = errRecord
	}
	return err
}
