package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readLimit bounds reading everything back.
const readLimit = 2 * time.Minute

// identity is what a record says of itself.
type identity struct {
	producer uint32
	sequence uint64
}

// history is what was read back.
type history struct {
	at     map[place]identity
	counts map[identity]int
	last   map[int32]map[uint32]uint64 // partition, idempotent producer: its last sequence
	next   map[int32]int64             // offset that must come next
}

// check reads the topic from its beginning and compares it with what the load was told.
func check(ctx context.Context, address string, l *load) (string, error) {
	select {
	case err := <-l.failed:
		return "", err
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	h, err := readAll(ctx, address, l)
	if err != nil {
		return "", err
	}
	acked, duplicates := 0, 0
	for _, p := range l.producers {
		for sequence, where := range p.acked {
			acked++
			if got, ok := h.at[where]; !ok {
				return "", fmt.Errorf("acknowledged record %d of producer %d is not at %v", sequence, p.number, where)
			} else if got != (identity{p.number, sequence}) {
				return "", fmt.Errorf("at %v stands %v, acknowledged was record %d of producer %d", where, got, sequence, p.number)
			}
		}
	}
	for id, n := range h.counts {
		if n > 1 && l.producers[id.producer].idempotent {
			return "", fmt.Errorf("record %d of idempotent producer %d is there %d times", id.sequence, id.producer, n)
		}
		duplicates += n - 1
	}
	return fmt.Sprintf("%d records acknowledged, all %d read back in place, %d duplicates from plain producers", acked, len(h.at), duplicates), nil
}

// readAll consumes every partition up to its present end.
func readAll(ctx context.Context, address string, l *load) (*history, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	h := &history{at: map[place]identity{}, counts: map[identity]int{}, last: map[int32]map[uint32]uint64{}, next: map[int32]int64{}}
	for int64(len(h.at)) < left {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read %d of %d records: %w", len(h.at), left, ctx.Err())
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

// add takes one record in the order of its partition.
func (h *history) add(r *kgo.Record, l *load) error {
	if len(r.Value) < 12 {
		return errors.New("a record is shorter than every one that was written")
	}
	if r.Offset != h.next[r.Partition] {
		return fmt.Errorf("partition %d: offset %d follows %d", r.Partition, r.Offset, h.next[r.Partition]-1)
	}
	h.next[r.Partition] = r.Offset + 1
	id := identity{binary.BigEndian.Uint32(r.Value), binary.BigEndian.Uint64(r.Value[4:])}
	h.at[place{r.Partition, r.Offset}] = id
	h.counts[id]++
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
