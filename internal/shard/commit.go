package shard

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// recordOverhead is the most that a record's lengths, deltas and flags take.
const recordOverhead = 40

// carryOut appends a decision and applies it. Where the append is refused the machine may say what to do
// instead; the error is returned all the same. The shard's lock is held.
//
//	append refused, Refused set      the machine puts itself right, and its next decision is carried out instead
//	append refused, no Refused       the shard is dropped and loaded again
//	outcome unknown                  the same: the records may turn up in the log
//	leadership lost                  the shard ends; the new leader loads what was committed
func (s *shard[M]) carryOut(now Now, d Decision) error {
	var first error
	for len(d.Records) > 0 {
		err := s.append(now, d)
		if err == nil {
			return first
		}
		if first == nil {
			first = err
		}
		if d.Refused == nil || !certain(err) {
			s.runtime.logger.Warn("append failed: the coordinator's state is dropped",
				"partition", s.partition, "epoch", s.epoch, "error", err)
			s.abandon(err)
			return first
		}
		d = d.Refused(err)
	}
	if d.Applied != nil {
		d.Applied()
	}
	return first
}

// append writes the records of a decision and applies them.
func (s *shard[M]) append(now Now, d Decision) error {
	config := s.runtime.config()
	for _, chunk := range chunks(d, config.MaxBatchBytes) {
		batch := build(chunk, d.Producer, now, config)
		if len(batch) > config.MaxBatchBytes {
			return protocol.Errorf(protocol.RecordListTooLarge, "%d records in a batch of %d bytes, max.message.bytes of %s is %d",
				len(chunk), len(batch), s.runtime.options.Topic, config.MaxBatchBytes)
		}
		last, err := s.log.Append(s.runtime.context, batch, s.epoch)
		if err != nil {
			return err
		}
		s.appended(last)
		if d.Applied == nil {
			s.replay(chunk, d.Producer, now, last)
		}
	}
	if d.Applied != nil {
		d.Applied()
	}
	return nil
}

// appended moves the shard's end behind an append. Nobody else writes to the partition in this epoch.
func (s *shard[M]) appended(last protocol.Offset) {
	if last < s.end {
		invariant.Fail("%s-%d epoch %d: appended at offset %d below the shard's end %d",
			s.runtime.options.Topic, s.partition, s.epoch, last, s.end)
	}
	s.end = last + 1
}

// replay applies records that were appended, the last one at last.
func (s *shard[M]) replay(records []Record, producer *Producer, now Now, last protocol.Offset) {
	id := protocol.NoProducerID
	if producer != nil {
		id = producer.ID
	}
	offset := last - protocol.Offset(len(records)-1)
	for _, r := range records {
		s.machine.Replay(Replayed{Offset: offset, Timestamp: now.Wall, ProducerID: id, Key: r.Key, Value: r.Value})
		offset++
	}
}

// chunks cuts the records into what fits a batch, where the decision allows that.
func chunks(d Decision, maxBytes int) [][]Record {
	if !d.Split {
		return [][]Record{d.Records}
	}
	var all [][]Record
	start, size := 0, record.HeaderSize
	for i, r := range d.Records {
		bytes := len(r.Key) + len(r.Value) + recordOverhead
		if i > start && size+bytes > maxBytes {
			all = append(all, d.Records[start:i])
			start, size = i, record.HeaderSize
		}
		size += bytes
	}
	return append(all, d.Records[start:])
}

// build makes the batch as Kafka's coordinators do: no producer id, and yet sequence numbers from 0 on.
//
// A validator that wants -1 there refuses what Kafka itself writes; seen in the logs of 3.9 and 4.4.
func build(records []Record, producer *Producer, now Now, config Config) record.Batch {
	options := record.BuilderOptions{
		Codec: config.Codec, Level: config.Level, LeaderEpoch: protocol.NoLeaderEpoch,
		ProducerID: protocol.NoProducerID, ProducerEpoch: protocol.NoProducerEpoch, BaseSequence: 0,
	}
	if producer != nil {
		options.ProducerID, options.ProducerEpoch, options.Transactional = producer.ID, producer.Epoch, true
	}
	b := record.NewBuilder(options)
	for _, r := range records {
		b.Append(now.Wall, r.Key, r.Value)
	}
	return b.Build()
}

// Marker ends a producer's transaction in the partition.
type Marker struct {
	Producer
	// CoordinatorEpoch is the epoch of the transaction coordinator that decided.
	CoordinatorEpoch int32
	// Commit is false for an abort.
	Commit bool
}

// mark appends a marker and applies it. The shard's lock is held.
//
// Coordinators of older epochs are refused by the partition (TRANSACTION_COORDINATOR_FENCED), whose log knows the epoch
// of the last marker.
func (s *shard[M]) mark(now Now, m Marker) error {
	last, err := s.log.Append(s.runtime.context, markerBatch(m, now), s.epoch)
	if err != nil {
		if !certain(err) {
			s.abandon(err)
		}
		return fmt.Errorf("marker of producer %d: %w", m.ID, err)
	}
	s.appended(last)
	s.machine.EndTransaction(m.ID, m.Commit)
	return nil
}
