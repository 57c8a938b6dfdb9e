package log

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// Where the fields are that emptying a batch changes.
const (
	baseTimestampAt = 27
	countAt         = 57
)

// kept is what filtering a batch came to.
type kept struct {
	bytes   []byte // the batch as it goes into the cleaned segment; nil where nothing of it stays
	records int    // in it
	aborted aborted
	marker  bool // aborted belongs into the transaction index of the cleaned segment
}

// filter decides what stays of a batch. The rules are those of Kafka's Cleaner.
//
//	batch                                          records                       the batch itself
//	data, not of an aborted transaction            the newest of each key        kept as it is, or rewritten
//	data of an aborted transaction                 none                          see below
//	marker, its transaction has records left       its one                       kept as it is
//	marker, its transaction has none left          its one until the horizon     rewritten once, with the horizon
//	nothing left of it                             none                          dropped, unless retainEmpty
//	nothing left, but it is a producer's last,     none                          emptied: header only
//	or ends the part that is cleaned
//
// A delete horizon (KIP-534) is the time from which tombstones and markers of a batch may go. The first pass that
// meets them sets it, delete.retention.ms ahead, in place of the base timestamp: a consumer that has begun to read
// has that long to see them. Before, the time counted from the last change of the newest clean segment, so
// that on quiet topics tombstones lived for ever (KAFKA-8522).
func (c *cleaning) filter(e record.Entry) (kept, error) {
	var out kept
	if e.Magic < magicBatch {
		return c.filterMessage(e)
	}
	var discard bool // the records may go, whatever their keys
	emptyTxn := false
	if e.Control() {
		m, ok, err := readMarker(record.Batch(e.Bytes))
		if err != nil {
			return out, err
		}
		emptyTxn, out.aborted, out.marker = c.txns.control(&e.Header, m, ok)
		discard = emptyTxn && e.HasDeleteHorizon() && e.BaseTimestamp <= c.now
	} else {
		discard = c.txns.data(&e.Header)
	}
	retainEmpty := c.isLast(&e.Header) || e.NextOffset() == c.to
	if discard && !retainEmpty {
		return out, nil
	}
	f, err := c.filterRecords(e, discard)
	if err != nil {
		return out, err
	}
	needsHorizon := (f.tombstones || emptyTxn) && !e.HasDeleteHorizon()
	out.records = f.retained
	switch {
	case f.retained == 0 && !retainEmpty:
	case f.retained == 0:
		out.bytes = emptied(e)
	case f.dropped == 0 && !needsHorizon:
		out.bytes = e.Bytes
	default:
		out.bytes, err = c.rewrite(e, needsHorizon)
	}
	return out, err
}

// passOver reports whether nothing of a batch stays, where its header and the offsets that stay tell: it need not be read
// again. filter would come to the same.
func (c *cleaning) passOver(h *record.Header) bool {
	if c.newest == nil || h.Magic < magicBatch || h.Control() || h.Transactional() || c.isLast(h) || h.NextOffset() == c.to {
		return false
	}
	if h.BaseOffset < c.from || h.LastOffset > c.known || c.newest.has(h.BaseOffset, h.LastOffset) {
		return false
	}
	c.stats.RecordsRead += int64(h.Count)
	return true
}

// isLast reports whether the batch holds the last that an active producer wrote: its sequence numbers, or
// the epoch of its last marker, must not be lost.
//
// It goes by what the producers were when the pass began. One that has written since is still right: its newer
// batches are behind the part that is cleaned.
func (c *cleaning) isLast(h *record.Header) bool {
	if h.ProducerID < 0 {
		return false
	}
	last, active := c.lasts[h.ProducerID]
	if !active {
		return false
	}
	if last.offset >= 0 {
		return h.LastOffset == last.offset
	}
	return h.Control() && h.ProducerEpoch == last.epoch
}

// filtered counts what filterRecords found.
type filtered struct {
	retained, dropped int
	tombstones        bool // among those retained
}

// filterRecords counts which records of a batch stay.
func (c *cleaning) filterRecords(e record.Entry, discard bool) (filtered, error) {
	var f filtered
	for r, err := range e.Records(&c.decompressor) {
		if err != nil {
			return f, err
		}
		if discard || !c.stays(&e.Header, &r) {
			f.dropped++
			continue
		}
		f.retained++
		f.tombstones = f.tombstones || r.Value == nil && !e.Control()
	}
	c.stats.RecordsRead += int64(f.retained + f.dropped)
	c.stats.RecordsWritten += int64(f.retained)
	return f, nil
}

// stays reports whether a record is the newest of its key, and not a tombstone past its horizon. Control
// records are not matched by key (BR-080).
func (c *cleaning) stays(h *record.Header, r *record.Record) bool {
	if h.Control() || r.Offset > c.known {
		return true
	}
	if r.Key == nil || !c.isNewest(h, r) {
		return false
	}
	return r.Value != nil || !h.HasDeleteHorizon() || c.now < h.BaseTimestamp
}

// isNewest reports whether a record of a batch, which has a key, is the newest with it.
func (c *cleaning) isNewest(h *record.Header, r *record.Record) bool {
	if c.newest != nil && h.LastOffset >= c.from && r.Offset >= c.from {
		return c.newest.has(r.Offset, r.Offset)
	}
	return r.Offset >= c.keys.get(r.Key)
}

// rewrite copies the records of a batch that stay into a new batch, which spans the same offsets and has the
// same sequence numbers.
func (c *cleaning) rewrite(e record.Entry, needsHorizon bool) ([]byte, error) {
	o := optionsOf(&e.Header)
	o.Codec, o.Compressor = e.Codec(), &c.compressor
	if e.HasDeleteHorizon() {
		o.DeleteHorizon = e.BaseTimestamp
	} else if needsHorizon {
		o.DeleteHorizon = c.horizon
	}
	b := record.NewBuilder(o)
	for r, err := range e.Records(&c.decompressor) {
		if err != nil {
			return nil, err
		}
		if c.stays(&e.Header, &r) {
			b.AppendRecord(r)
		}
	}
	b.SetLastOffset(e.LastOffset)
	return b.Build(), nil
}

// optionsOf are the fields of a header that a rewritten batch keeps.
func optionsOf(h *record.Header) record.BuilderOptions {
	return record.BuilderOptions{
		BaseOffset: h.BaseOffset, LeaderEpoch: h.LeaderEpoch,
		ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, BaseSequence: h.BaseSequence,
		Idempotent: h.ProducerID >= 0, Transactional: h.Transactional(), Control: h.Control(),
		TimestampType: h.TimestampType(), AppendTime: h.MaxTimestamp,
	}
}

// emptied is the batch without its records: it spans the same offsets and sequence numbers (BR-119).
func emptied(e record.Entry) []byte {
	b := append([]byte(nil), e.Bytes[:record.HeaderSize]...)
	keep := uint16(e.Attributes) &^ 0x47 // no codec, no delete horizon
	binary.BigEndian.PutUint32(b[batchLengthAt:], record.HeaderSize-record.LogOverhead)
	binary.BigEndian.PutUint16(b[batchCRCFrom:], keep)
	binary.BigEndian.PutUint64(b[baseTimestampAt:], math.MaxUint64) // NoTimestamp
	binary.BigEndian.PutUint32(b[countAt:], 0)
	binary.BigEndian.PutUint32(b[batchCRCAt:], crc32.Checksum(b[batchCRCFrom:], castagnoli))
	return b
}

// filterMessage drops messages of formats 0 and 1 whole, once nothing in them is the newest of its key;
// what is left is copied as it is.
func (c *cleaning) filterMessage(e record.Entry) (kept, error) {
	newest := false
	n := 0
	for r, err := range e.Records(&c.decompressor) {
		if err != nil {
			return kept{}, err
		}
		n++
		newest = newest || r.Offset > c.known || r.Key != nil && r.Offset >= c.keys.get(r.Key)
	}
	c.stats.RecordsRead += int64(n)
	if !newest && e.NextOffset() != c.to {
		return kept{}, nil
	}
	c.stats.RecordsWritten += int64(n)
	return kept{bytes: e.Bytes, records: n}, nil
}
