package log

import (
	"math"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// batchesKept is how many batches of a producer are remembered to answer duplicates: Java's and other
// clients have at most five requests in flight.
const batchesKept = 5

// batchMeta is what is remembered of a batch that was appended.
type batchMeta struct {
	lastOffset   protocol.Offset
	timestamp    int64
	lastSequence int32
	offsetDelta  int32 // last offset less first
}

// firstOffset goes back from the last one.
func (m batchMeta) firstOffset() protocol.Offset {
	return m.lastOffset - protocol.Offset(m.offsetDelta)
}

// firstSequence goes back from the last one; sequences wrap from the largest int32 to 0.
func (m batchMeta) firstSequence() int32 {
	if m.lastSequence < 0 {
		return record.NoSequence
	}
	if m.lastSequence < m.offsetDelta {
		return math.MaxInt32 - (m.offsetDelta - m.lastSequence) + 1
	}
	return m.lastSequence - m.offsetDelta
}

// noBatch stands in for the last batch of a producer of which none is remembered.
var noBatch = batchMeta{lastOffset: protocol.NoOffset, timestamp: record.NoTimestamp, lastSequence: record.NoSequence}

// producer is the state of one producer id in this partition.
// batches is a queue of the last batches, for duplicates; epoch, sequence and offsets of the newest are what the
// next one is checked against.
type producer struct {
	lastTimestamp    int64
	txnStart         protocol.Offset // first offset of the open transaction, NoOffset without one
	coordinatorEpoch int32           // of the last marker
	epoch            protocol.ProducerEpoch
	n                int8 // how many of batches there are, oldest first
	restored         bool // from a snapshot, which has the last batch alone; see recall
	batches          [batchesKept]batchMeta
}

// newProducer is a producer that has written nothing.
func newProducer() *producer {
	return &producer{
		epoch:            protocol.NoProducerEpoch,
		coordinatorEpoch: -1,
		lastTimestamp:    record.NoTimestamp,
		txnStart:         protocol.NoOffset,
	}
}

// last is the newest batch, or noBatch.
func (p *producer) last() batchMeta {
	if p.n == 0 {
		return noBatch
	}
	return p.batches[p.n-1]
}

// add remembers a batch and forgets the oldest where there are too many.
func (p *producer) add(m batchMeta) {
	if p.n == batchesKept {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = m
	p.n++
}

// setEpoch moves to another epoch; sequences then begin anew.
func (p *producer) setEpoch(epoch protocol.ProducerEpoch) {
	if p.epoch != epoch {
		p.epoch, p.n = epoch, 0
	}
}

// duplicate finds the batch with exactly these sequences among those remembered.
func (p *producer) duplicate(epoch protocol.ProducerEpoch, first, last int32) (batchMeta, bool) {
	if epoch != p.epoch {
		return batchMeta{}, false
	}
	for _, m := range p.batches[:p.n] {
		if m.lastSequence == last && m.firstSequence() == first {
			return m, true
		}
	}
	return batchMeta{}, false
}

// inSequence reports whether next follows last.
func inSequence(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}

// batchFacts is what producer state needs to know of a batch, whether it is about to be appended, was
// replicated, or is found in the log again.
// first, last and timestamp are of the whole batch. factsOfBatch makes it for appends, factsOf for recovery.
type batchFacts struct {
	producer      protocol.ProducerID
	epoch         protocol.ProducerEpoch
	firstSequence int32
	lastSequence  int32
	first, last   protocol.Offset
	timestamp     int64 // the largest
	transactional bool
	control       bool
	marker        record.EndTxnMarker // of a control batch, where it has one
	hasMarker     bool
}

// factsOf takes them from a header; the marker of a control batch is in its record, for the caller to add.
func factsOf(h *record.Header) batchFacts {
	return batchFacts{
		producer:      h.ProducerID,
		epoch:         h.ProducerEpoch,
		firstSequence: h.BaseSequence,
		lastSequence:  h.LastSequence(),
		first:         h.BaseOffset,
		last:          h.LastOffset,
		timestamp:     h.MaxTimestamp,
		transactional: h.Transactional(),
		control:       h.Control(),
	}
}
