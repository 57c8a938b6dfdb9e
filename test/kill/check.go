package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readLimit bounds reading everything back.
const readLimit = 5 * time.Minute

// identity is what a record says of itself.
type identity struct {
	producer uint32
	sequence uint64
}

// history is what was read back of one topic.
//
//	at       what stands at each place: compared with what was acknowledged there
//	counts   how often each record was seen: more than once is a duplicate, which idempotent producers must not have
//	last     order of each idempotent producer within a partition
//	next     offsets must be dense, but in the compacted topic
//	newest   the last value of each key: an acknowledged one must not be newer
type history struct {
	topic  string
	starts map[int32]int64
	at     map[place]identity
	counts map[identity]int
	last   map[int32]map[uint32]uint64 // partition, idempotent producer: its last sequence
	next   map[int32]int64             // offset that must come next
	newest map[string]uint64           // of the keys of compacted: the sequence of the last record
}

// check reads the topics from their beginnings and compares them with what the load was told.
func check(ctx context.Context, address string, l *load) (string, error) {
	select {
	case err := <-l.failed:
		return "", err
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var reports []string
	for _, topic := range []string{plain, trimmed, compacted} {
		h, err := readAll(ctx, address, topic, l)
		if err != nil {
			return "", fmt.Errorf("%s: %w", topic, err)
		}
		report, err := h.compare(l)
		if err != nil {
			return "", fmt.Errorf("%s: %w", topic, err)
		}
		reports = append(reports, topic+" "+report)
	}
	return strings.Join(reports, "; "), nil
}

// compare looks for every acknowledged record.
//
// A record may be gone from trimmed below the partition's start, and from compacted where a newer one of its key is
// there; from plain never.
func (h *history) compare(l *load) (string, error) {
	acked, gone, duplicates := 0, 0, 0
	for _, p := range l.producers {
		if p.topic != h.topic {
			continue
		}
		for sequence, where := range p.acked {
			acked++
			got, ok := h.at[where]
			if ok && got != (identity{p.number, sequence}) {
				return "", fmt.Errorf("at %v stands %v, acknowledged was record %d of producer %d", where, got, sequence, p.number)
			}
			if ok {
				continue
			}
			if !h.mayBeGone(p, sequence, where) {
				return "", fmt.Errorf("acknowledged record %d of producer %d is not at %v", sequence, p.number, where)
			}
			gone++
		}
	}
	for id, n := range h.counts {
		if n > 1 && l.producers[id.producer].idempotent {
			return "", fmt.Errorf("record %d of idempotent producer %d is there %d times", id.sequence, id.producer, n)
		}
		duplicates += n - 1
	}
	return fmt.Sprintf("%d acknowledged, %d read back in place, %d deleted or compacted, %d duplicates of plain producers",
		acked, len(h.at), gone, duplicates), nil
}

// mayBeGone reports whether an acknowledged record may have been taken away.
func (h *history) mayBeGone(p *producer, sequence uint64, where place) bool {
	switch h.topic {
	case trimmed:
		return where.offset < h.starts[where.partition]
	case compacted:
		return h.newest[string(p.record(sequence).Key)] > sequence || !p.idempotent && h.newest[string(p.record(sequence).Key)] == sequence
	}
	return false
}

// readAll consumes every partition of a topic up to its present end.
func readAll(ctx context.Context, address, topic string, l *load) (*history, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	h := &history{topic: topic, at: map[place]identity{}, counts: map[identity]int{}, last: map[int32]map[uint32]uint64{}, newest: map[string]uint64{}}
	if h.starts, err = offsetsOf(admin.ListStartOffsets(ctx, topic)); err != nil {
		return nil, err
	}
	ends, err := offsetsOf(admin.ListEndOffsets(ctx, topic))
	if err != nil {
		return nil, err
	}
	h.next = map[int32]int64{}
	for partition, start := range h.starts {
		h.next[partition] = start
		if topic != trimmed && start != 0 {
			return nil, fmt.Errorf("partition %d starts at %d", partition, start)
		}
	}
	for !h.complete(ends) {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read up to %v of %v: %w", h.next, ends, ctx.Err())
		}
		for _, e := range fetches.Errors() {
			return nil, e.Err
		}
		for _, r := range fetches.Records() {
			if err := h.add(r, l); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// complete reports whether everything below ends was read. The last record of a log is never compacted.
func (h *history) complete(ends map[int32]int64) bool {
	for partition, end := range ends {
		if h.next[partition] < end {
			return false
		}
	}
	return true
}

// add takes one record in the order of its partition.
func (h *history) add(r *kgo.Record, l *load) error {
	if len(r.Value) < 12 {
		return errors.New("a record is shorter than every one that was written")
	}
	if next := h.next[r.Partition]; r.Offset < next || r.Offset > next && h.topic != compacted {
		return fmt.Errorf("partition %d: offset %d follows %d", r.Partition, r.Offset, next-1)
	}
	h.next[r.Partition] = r.Offset + 1
	id := identity{binary.BigEndian.Uint32(r.Value), binary.BigEndian.Uint64(r.Value[4:])}
	h.at[place{r.Partition, r.Offset}] = id
	h.counts[id]++
	if h.topic == compacted {
		h.newest[string(r.Key)] = id.sequence
	}
	if int(id.producer) >= len(l.producers) || !l.producers[id.producer].idempotent {
		return nil
	}
	if h.last[r.Partition] == nil {
		h.last[r.Partition] = map[uint32]uint64{}
	}
	if last := h.last[r.Partition][id.producer]; id.sequence <= last {
		return fmt.Errorf("partition %d: record %d of producer %d comes after %d", r.Partition, id.sequence, id.producer, last)
	}
	h.last[r.Partition][id.producer] = id.sequence
	return nil
}
