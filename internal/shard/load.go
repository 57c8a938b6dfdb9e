package shard

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/barnabas-mq/barnabas/internal/planted"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// How a shard is loaded:
//
//	end := log end, when leadership began        what is behind it nobody but this shard may write
//	replay [log start, end)                      in chunks of LoadBytes, whole batches, CRC checked
//	wait until the watermark is at end           before that, what was replayed may still be lost
//	open
//
// Batches of aborted or undecided transactions are replayed too, with their producer: the machine keeps them
// apart until their marker comes. Compaction may take records away while this runs (KAFKA-19862): a gap in
// offsets, a chunk that is empty before the end, and a log start that has moved are all no errors.

// load starts to load a shard after a delay.
func (r *Runtime[M]) load(s *shard[M], delay time.Duration) {
	r.mu.RLock()
	closed := r.mu.closed
	if !closed {
		r.loading.Add(1)
	}
	r.mu.RUnlock()
	if closed {
		return
	}
	go func() {
		defer r.loading.Done()
		if s.await(delay) {
			s.loadOrRetry()
		}
	}()
}

// await waits for a delay; false where the shard is dropped before that.
func (s *shard[M]) await(delay time.Duration) bool {
	if delay == 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.context.Done():
		return false
	}
}

// loadOrRetry loads the shard and opens it; where that fails the shard is replaced by one that tries again
// later, for as long as the partition is led.
func (s *shard[M]) loadOrRetry() {
	begin := s.runtime.clock.now().Mono
	machine, stats, err := s.replayLog()
	if err == nil && !planted.In(planted.OpenShard) {
		err = s.log.WaitCommitted(s.context, s.epoch, s.end)
	}
	if err == nil {
		s.runtime.logger.Debug("coordinator loaded", "partition", s.partition, "epoch", s.epoch,
			"records", stats.records, "bytes", stats.bytes, "took", s.runtime.clock.now().Mono-begin)
		s.open(machine)
		return
	}
	if s.context.Err() != nil {
		return
	}
	s.runtime.logger.Warn("coordinator not loaded", "partition", s.partition, "epoch", s.epoch,
		"failures", s.failures+1, "error", err)
	s.lock <- struct{}{}
	s.abandon(err)
	<-s.lock
}

// loaded counts what a load has read.
type loaded struct {
	records, bytes int
}

// replayLog reads the log up to the shard's end into a new machine, in bounded memory.
func (s *shard[M]) replayLog() (machine M, stats loaded, err error) {
	select {
	case s.runtime.slots <- struct{}{}:
		defer func() { <-s.runtime.slots }()
	case <-s.context.Done():
		return machine, stats, s.context.Err()
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("bug while loading: %v\n%s", cause, debug.Stack())
		}
	}()
	machine = s.runtime.options.Machine(s.partition)
	from, _ := s.log.Bounds()
	for from < s.end {
		if err := s.context.Err(); err != nil {
			return machine, stats, err
		}
		chunk, err := s.log.Read(from, s.runtime.config().LoadBytes)
		if start, _ := s.log.Bounds(); errors.Is(err, protocol.OffsetOutOfRange) && start > from {
			from = start // records were deleted meanwhile
			continue
		}
		if err != nil {
			return machine, stats, err
		}
		if len(chunk) == 0 {
			break // compaction has left nothing up to the end
		}
		if from, err = s.replayChunk(machine, chunk, from, &stats); err != nil {
			return machine, stats, err
		}
	}
	return machine, stats, nil
}

// replayChunk applies whole batches and returns where to go on. Batches may skip offsets, where compaction
// has taken records out.
func (s *shard[M]) replayChunk(machine M, chunk []byte, from protocol.Offset, stats *loaded) (protocol.Offset, error) {
	for entry, err := range record.Entries(chunk) {
		if err != nil {
			return from, fmt.Errorf("loading %s-%d behind offset %d: %w", s.runtime.options.Topic, s.partition, from, err)
		}
		if entry.NextOffset() <= from {
			continue
		}
		if !entry.ValidCRC() {
			return from, protocol.Errorf(protocol.CorruptMessage, "loading %s-%d: CRC of the batch at offset %d is wrong",
				s.runtime.options.Topic, s.partition, entry.BaseOffset)
		}
		if err := s.replayEntry(machine, entry, stats); err != nil {
			return from, fmt.Errorf("loading %s-%d: batch at offset %d: %w", s.runtime.options.Topic, s.partition, entry.BaseOffset, err)
		}
		from = entry.NextOffset()
	}
	stats.bytes += len(chunk)
	return from, nil
}

// replayEntry applies one batch of the log, or a message of the formats before batches.
//
// A record that the machine cannot read is the machine's to skip; one whose batch is damaged fails the load,
// for nobody can tell what else was in it.
func (s *shard[M]) replayEntry(machine M, entry record.Entry, stats *loaded) error {
	producer := protocol.NoProducerID
	if entry.Transactional() {
		producer = entry.ProducerID
	}
	for r, err := range entry.Records(&s.runtime.codecs) {
		if err != nil {
			return err
		}
		stats.records++
		if !entry.Control() {
			machine.Replay(Replayed{Offset: r.Offset, Timestamp: r.Timestamp, ProducerID: producer, Key: r.Key, Value: r.Value})
			continue
		}
		commit, ends, err := markerOf(r)
		if err != nil {
			return err
		}
		if ends {
			machine.EndTransaction(entry.ProducerID, commit)
		}
	}
	return nil
}
