package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// pair are two offsets that do not fit together.
type pair struct{ first, second protocol.Offset }

// dumpLog prints a segment.
//
//	Log starting offset: 0
//	baseOffset: 0 lastOffset: 1 count: 2 ... position: 0 CreateTime: 1700000000000 size: 83 magic: 2 ... isvalid: true
//	| offset: 0 CreateTime: 1700000000000 keySize: 1 valueSize: 3 sequence: -1 headerKeys: [] key: a payload: one
//	Found 17 invalid bytes at the end of 00000000000000000000.log
//
// Scripts parse these lines, so words, order and spaces are Kafka's. A bad CRC is told in its line and the walk goes
// on; only a header that cannot be true ends it. One batch is held at a time.
func (d *dumper) dumpLog(base protocol.Offset) error {
	d.printf("Log starting offset: %d\n", base)
	f, whole, err := d.open(d.path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := whole
	if d.options.MaxBytes > 0 {
		size = min(size, d.options.MaxBytes)
	}
	last := protocol.NoOffset
	var gaps []pair
	var large []byte
	var decompressor record.Decompressor
	w := walk(f, 0, size, scanBytes(size))
	for {
		h, err := w.next()
		if ended(err) || errors.Is(err, record.ErrShort) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s at position %d: %w", d.path, w.pos, err)
		}
		b, err := w.whole(&h, &large)
		if err != nil {
			return err
		}
		e := record.Entry{Header: h, Bytes: b}
		d.printBatch(e, w.pos)
		if !d.options.DeepIteration && !d.options.PrintDataLog {
			continue
		}
		for r, err := range e.Records(&decompressor) {
			if err != nil {
				return fmt.Errorf("%s at position %d: %w", d.path, w.pos, err)
			}
			if last >= 0 && r.Offset != last+1 {
				gaps = append(gaps, pair{last, r.Offset})
			}
			last = r.Offset
			d.printRecord(e, &r)
		}
	}
	if trailing := size - w.pos; trailing > 0 && size == whole {
		d.printf("Found %d invalid bytes at the end of %s\n", trailing, filepath.Base(d.path))
	}
	d.complainPairs("Non-consecutive offsets in %s\n", "  %d is followed by %d\n", gaps)
	return nil
}

// complainPairs lists pairs, the last first, as Kafka's tool does.
func (d *dumper) complainPairs(title, line string, pairs []pair) {
	if len(pairs) == 0 {
		return
	}
	d.complain(title, d.path)
	for i := len(pairs) - 1; i >= 0; i-- {
		d.complain(line, pairs[i].first, pairs[i].second)
	}
}

// printBatch prints the line of a batch, or of a message of formats 0 and 1.
func (d *dumper) printBatch(e record.Entry, position int64) {
	if e.Magic < magicBatch {
		d.printf("offset: %d", e.LastOffset)
	} else {
		horizon := optional(e.HasDeleteHorizon(), e.BaseTimestamp)
		d.printf("baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d "+
			"partitionLeaderEpoch: %d isTransactional: %t isControl: %t deleteHorizonMs: %s",
			e.BaseOffset, e.LastOffset, e.Count, e.BaseSequence, e.LastSequence(), e.ProducerID, e.ProducerEpoch,
			e.LeaderEpoch, e.Transactional(), e.Control(), horizon)
	}
	d.printf(" position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %t\n",
		position, timestampName(e), e.MaxTimestamp, e.Size, e.Magic, e.Codec(), e.CRC, e.ValidCRC())
}

// timestampName is Java's name of a batch's timestamp type.
func timestampName(e record.Entry) string {
	if e.Magic == 0 {
		return "NoTimestampType"
	}
	return e.TimestampType().String()
}

// printRecord prints the line of a record.
func (d *dumper) printRecord(e record.Entry, r *record.Record) {
	prefix := "| "
	if d.options.SkipRecordMetadata && e.Control() {
		return
	}
	if !d.options.SkipRecordMetadata {
		d.printf("%soffset: %d %s: %d keySize: %d valueSize: %d", prefix, r.Offset, timestampName(e), r.Timestamp, sizeOf(r.Key), sizeOf(r.Value))
		prefix = " "
		if e.Magic < magicBatch {
			d.printf(" isValid: true crc: %d", messageCRC(e.Magic, r))
		} else {
			d.printf(" sequence: %d headerKeys: %s", sequenceOf(e, r), headerKeys(r))
		}
		if e.Control() {
			d.printControl(r)
		}
	}
	if d.options.PrintDataLog && !e.Control() {
		key, value := d.options.Decode(r.Key, r.Value)
		if key != nil {
			d.printf("%skey: %s", prefix, *key)
		}
		if value != nil {
			d.printf(" payload: %s", *value)
		}
	}
	d.printf("\n")
}

// sizeOf is a length as Kafka prints it: -1 for null.
func sizeOf(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// sequenceOf is the sequence number of a record, which wraps to 0 behind the largest.
func sequenceOf(e record.Entry, r *record.Record) int32 {
	if e.BaseSequence < 0 {
		return record.NoSequence
	}
	return int32((int64(e.BaseSequence) + int64(r.Offset-e.BaseOffset)) & (1<<31 - 1))
}

// headerKeys prints the keys of the headers; their values are not shown.
func headerKeys(r *record.Record) string {
	var keys []string
	for key := range r.Headers.All() {
		keys = append(keys, javaText(key))
	}
	return "[" + strings.Join(keys, ",") + "]"
}

// printControl prints what a control record marks. Kafka's tool prints the contents of those of KRaft too.
func (d *dumper) printControl(r *record.Record) {
	kind, err := record.ControlTypeOf(*r)
	if err != nil {
		d.printf(" controlType: UNKNOWN(-1)")
		return
	}
	if m, ok, err := record.ParseEndTxnMarker(*r); ok && err == nil {
		d.printf(" endTxnMarker: %s coordinatorEpoch: %d", m.Type, m.CoordinatorEpoch)
		return
	}
	d.printf(" controlType: %s(%d)", kind, int16(kind))
}

// messageCRC is the checksum of a message of format 0 or 1, computed from what is in it.
func messageCRC(magic int8, r *record.Record) uint32 {
	b := []byte{byte(magic), byte(r.Attributes)}
	if magic > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Timestamp))
	}
	for _, part := range [][]byte{r.Key, r.Value} {
		b = binary.BigEndian.AppendUint32(b, uint32(sizeOf(part)))
		b = append(b, part...)
	}
	return crc32.ChecksumIEEE(b)
}
