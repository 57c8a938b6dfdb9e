package log

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// producers is the producer state of a partition up to an offset: what makes retries of idempotent producers
// harmless, and what is open of transactions. All but txns is guarded by the append lock.
type producers struct {
	byID map[protocol.ProducerID]*producer // nil until the first one
	end  protocol.Offset                   // the state is that before this offset
	txns transactions
}

// check says whether a batch that the leader is about to append is in order. A batch that is already in the
// log is a duplicate, and its old place is the answer. A client's batches have a sequence; those of
// coordinators have none and are checked by their epoch alone.
//
//	the producer id here                    the batch                          answer
//	unknown                                 any sequence                       in order: state may have expired
//	same epoch, batch remembered            the same first and last sequence   duplicate, its old offsets
//	same epoch                              sequence = last + 1                in order
//	same epoch                              another sequence                   OUT_OF_ORDER_SEQUENCE_NUMBER
//	higher epoch                            sequence 0                         in order, sequences begin anew
//	higher epoch                            another sequence                   OUT_OF_ORDER_SEQUENCE_NUMBER
//	lower epoch                             any                                INVALID_PRODUCER_EPOCH
//	in a transaction                        without the transactional bit      INVALID_TXN_STATE
//	known, marker of an older coordinator   a marker                           TRANSACTION_COORDINATOR_FENCED
//
// Duplicates come first: a retry whose first copy arrived is answered with success even where the producer has
// gone on. It changes nothing; apply does, once the batch is in the log.
func (p *producers) check(f *batchFacts) (duplicate batchMeta, isDuplicate bool, err error) {
	now := p.byID[f.producer]
	if now == nil && f.epoch < protocol.NoProducerEpoch {
		return batchMeta{}, false, protocol.Errorf(protocol.InvalidProducerEpoch, "Epoch of producer %d at offset %d is %d", f.producer, f.first, f.epoch)
	}
	if now == nil {
		return batchMeta{}, false, nil // BR-021: any first sequence is accepted
	}
	fromClient := f.firstSequence >= 0 && !f.control
	if fromClient {
		if m, ok := now.duplicate(f.epoch, f.firstSequence, f.lastSequence); ok {
			return m, true, nil
		}
	}
	if f.epoch < now.epoch {
		return batchMeta{}, false, protocol.Errorf(protocol.InvalidProducerEpoch,
			"Epoch of producer %d at offset %d is %d, which is smaller than the last seen epoch %d", f.producer, f.first, f.epoch, now.epoch)
	}
	switch {
	case f.control:
		return batchMeta{}, false, now.checkMarker(f)
	case fromClient:
		err = now.checkSequence(f)
	}
	if err == nil && now.txnStart >= 0 && !f.transactional {
		err = protocol.Errorf(protocol.InvalidTxnState,
			"Expected transactional write from producer %d at offset %d", f.producer, f.first)
	}
	return batchMeta{}, false, err
}

// checkSequence holds the rules for a client's next batch.
func (p *producer) checkSequence(f *batchFacts) error {
	if f.epoch != p.epoch {
		if f.firstSequence != 0 && p.epoch != protocol.NoProducerEpoch {
			return protocol.Errorf(protocol.OutOfOrderSequenceNumber,
				"Invalid sequence number for new epoch of producer %d at offset %d: %d (request epoch), %d (seq. number), %d (current producer epoch)",
				f.producer, f.first, f.epoch, f.firstSequence, p.epoch)
		}
		return nil
	}
	if last := p.last().lastSequence; !inSequence(last, f.firstSequence) {
		return protocol.Errorf(protocol.OutOfOrderSequenceNumber,
			"Out of order sequence number for producer %d at offset %d: %d (incoming seq. number), %d (current end sequence number)",
			f.producer, f.first, f.firstSequence, last)
	}
	return nil
}

// checkMarker refuses the marker of a coordinator that has been replaced.
func (p *producer) checkMarker(f *batchFacts) error {
	if p.coordinatorEpoch > f.marker.CoordinatorEpoch {
		return protocol.Errorf(protocol.TransactionCoordinatorFenced,
			"Invalid coordinator epoch for producerId %d at offset %d: %d (zombie), %d (current)",
			f.producer, f.first, f.marker.CoordinatorEpoch, p.coordinatorEpoch)
	}
	return nil
}

// apply takes in a batch that is in the log now. If it ended a transaction that has records here, the
// transaction is returned, complete with the last stable offset that its index entry needs.
func (p *producers) apply(f *batchFacts) (completed aborted, wasAborted bool) {
	if f.producer < 0 || f.control && !f.hasMarker {
		return aborted{}, false
	}
	now := p.byID[f.producer]
	if now == nil {
		now = newProducer()
		if p.byID == nil {
			p.byID = make(map[protocol.ProducerID]*producer)
		}
		p.byID[f.producer] = now
	}
	if !f.control {
		now.setEpoch(f.epoch)
		now.add(batchMeta{
			lastOffset: f.last, offsetDelta: int32(f.last - f.first),
			lastSequence: f.lastSequence, timestamp: f.timestamp,
		})
		now.lastTimestamp = f.timestamp
		if f.transactional && now.txnStart < 0 {
			now.txnStart = f.first
			p.txns.begin(f.producer, f.first)
		}
		return aborted{}, false
	}
	first := now.txnStart
	now.setEpoch(f.epoch)
	now.coordinatorEpoch, now.lastTimestamp, now.txnStart = f.marker.CoordinatorEpoch, f.timestamp, protocol.NoOffset
	if first < 0 {
		return aborted{}, false // a marker without records here moves nothing
	}
	stable := p.txns.complete(f.producer, first, f.last)
	return aborted{producer: f.producer, first: first, last: f.last, stable: stable}, f.marker.Type == record.EndAbort
}

// reset forgets everything and begins at end, with the producers of a snapshot.
func (p *producers) reset(end protocol.Offset, byID map[protocol.ProducerID]*producer) {
	p.byID, p.end = byID, end
	p.txns.reset()
	for id, one := range byID {
		if one.txnStart >= 0 {
			p.txns.begin(id, one.txnStart)
		}
	}
}

// expire forgets producers that wrote nothing since the given time in ms and have no open transaction.
func (p *producers) expire(before int64) (forgotten int) {
	for id, one := range p.byID {
		if one.txnStart < 0 && one.lastTimestamp <= before {
			delete(p.byID, id)
			forgotten++
		}
	}
	if len(p.byID) == 0 {
		p.byID = nil
	}
	return forgotten
}

// transactions are those that hold back the last stable offset. Its lock is short and is the only one that
// is taken under the append lock, so that watermarks move without waiting for an append's I/O.
//
//	        begin                    complete                       release
//	(none) ──────▶ open ────────────────────────▶ unreleased ─────────────────────▶ forgotten
//	      first record written     its marker written       the watermark is above the marker
//
// A decided transaction holds the last stable offset back until its marker is replicated: a leader that is elected
// without the marker would show its records as undecided again, and what a consumer has seen must not be taken
// back.
type transactions struct {
	unstable atomic.Int64 // offset of the first record that is undecided or not replicated, or NoOffset

	mu         sync.Mutex
	open       []transaction // by first offset
	unreleased []transaction // completed, with the marker not below the high watermark yet
}

// transaction is one producer's transaction in this partition; last is its marker's offset once completed.
type transaction struct {
	producer    protocol.ProducerID
	first, last protocol.Offset
}

// byFirst orders transactions by where they begin.
func byFirst(a, b transaction) int { return cmp.Compare(a.first, b.first) }

// reset forgets all transactions.
func (t *transactions) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open, t.unreleased = nil, nil
	t.unstable.Store(int64(protocol.NoOffset))
}

// begin notes a transaction that is open from first on.
func (t *transactions) begin(id protocol.ProducerID, first protocol.Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := transaction{producer: id, first: first, last: protocol.NoOffset}
	i, _ := slices.BinarySearchFunc(t.open, one, byFirst)
	t.open = slices.Insert(t.open, i, one)
	t.publishLocked()
}

// complete ends the transaction and returns the last stable offset as it will be then: the first offset of
// the next open one, or the offset after the marker.
func (t *transactions) complete(id protocol.ProducerID, first, marker protocol.Offset) protocol.Offset {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.open, func(o transaction) bool { return o.producer == id && o.first == first })
	if i < 0 {
		invariant.Fail("transaction of producer %d from offset %d is not open", id, first)
	}
	done := t.open[i]
	done.last = marker
	t.open = slices.Delete(t.open, i, i+1)
	j, _ := slices.BinarySearchFunc(t.unreleased, done, byFirst)
	t.unreleased = slices.Insert(t.unreleased, j, done)
	t.publishLocked()
	if len(t.open) > 0 {
		return t.open[0].first
	}
	return marker + 1
}

// release lets go of completed transactions whose marker is below the high watermark.
func (t *transactions) release(watermark protocol.Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unreleased = slices.DeleteFunc(t.unreleased, func(o transaction) bool { return o.last < watermark })
	if len(t.unreleased) == 0 {
		t.unreleased = nil
	}
	t.publishLocked()
}

// publishLocked shows the first unstable offset to readers.
func (t *transactions) publishLocked() {
	first := protocol.NoOffset
	if len(t.open) > 0 {
		first = t.open[0].first
	}
	if len(t.unreleased) > 0 && (first < 0 || t.unreleased[0].first < first) {
		first = t.unreleased[0].first
	}
	t.unstable.Store(int64(first))
}

// ProducerState is what DescribeProducers shows of a producer.
type ProducerState struct {
	ID protocol.ProducerID
	// Epoch and LastSequence are those of the last batch; the sequence is -1 after a marker with a new
	// epoch.
	Epoch        protocol.ProducerEpoch
	LastSequence int32
	// LastTimestamp is the largest timestamp of the last batch, in ms.
	LastTimestamp int64
	// CoordinatorEpoch is that of the coordinator that wrote the last marker, or -1.
	CoordinatorEpoch int32
	// TransactionStart is the first offset of the open transaction, or NoOffset.
	TransactionStart protocol.Offset
}

// list describes all producers in the order of their ids.
func (p *producers) list() []ProducerState {
	out := make([]ProducerState, 0, len(p.byID))
	for id, one := range p.byID {
		out = append(out, ProducerState{
			ID: id, Epoch: one.epoch, LastSequence: one.last().lastSequence, LastTimestamp: one.lastTimestamp,
			CoordinatorEpoch: one.coordinatorEpoch, TransactionStart: one.txnStart,
		})
	}
	slices.SortFunc(out, func(a, b ProducerState) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// readMarker reads the marker in a control batch; ok is false where the cleaner has emptied it, or it marks
// something else.
func readMarker(b record.Batch) (m record.EndTxnMarker, ok bool, err error) {
	for r, err := range b.Records(nil) {
		if err != nil {
			return m, false, err
		}
		return record.ParseEndTxnMarker(r)
	}
	return m, false, nil
}
