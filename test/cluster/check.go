package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// finalRead reads the topics of the load from their beginning to their end.
func (l *load) finalRead(ctx context.Context) (map[topicPartition][]identity, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	ends, err := l.admin.ListEndOffsets(ctx, orders, moved)
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, err
	}
	reader, err := l.newClient("reader", kgo.ConsumeTopics(orders, moved), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	found := map[topicPartition][]identity{}
	for left := -1; left != 0; {
		left = 0
		for topic, partitions := range ends {
			for partition, end := range partitions {
				if int64(len(found[topicPartition{topic, partition}])) < end.Offset {
					left++
				}
			}
		}
		if left == 0 {
			break
		}
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the final read did not reach the ends of %d partitions: %w", left, ctx.Err())
		}
		for _, r := range fetches.Records() {
			tp := topicPartition{r.Topic, r.Partition}
			if r.Offset != int64(len(found[tp])) {
				return nil, fmt.Errorf("%v: offset %d follows %d", tp, r.Offset, len(found[tp])-1)
			}
			id, err := identify(r.Value)
			if err != nil {
				return nil, fmt.Errorf("%v, offset %d: %w", tp, r.Offset, err)
			}
			found[tp] = append(found[tp], id)
		}
	}
	return found, nil
}

// compare holds what is there against what clients were told.
func (h *history) compare(found map[topicPartition][]identity) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	acked, records := 0, 0
	for tp, a := range h.accounts {
		n, err := a.missing(found[tp])
		if err != nil {
			return "", fmt.Errorf("%v: %w", tp, err)
		}
		acked += n
	}
	seen := map[identity]topicPartition{}
	for tp, all := range found {
		records += len(all)
		if err := h.order(tp, all, seen); err != nil {
			return "", fmt.Errorf("%v: %w", tp, err)
		}
	}
	return fmt.Sprintf("%d acknowledged records in place among %d, none twice, none that was refused", acked, records), nil
}

// missing looks for a record that was acknowledged or read and is not where it was. It returns how many were
// acknowledged.
func (a *account) missing(found []identity) (acked int, err error) {
	for offset, id := range a.acked {
		if id == none {
			continue
		}
		acked++
		if got := at(found, int64(offset)); got != id {
			return 0, fmt.Errorf("%+v was acknowledged at offset %d, where there is %+v", id, offset, got)
		}
	}
	for offset, id := range a.read {
		if got := at(found, int64(offset)); id != none && got != id {
			return 0, fmt.Errorf("%+v was read at offset %d, where there is %+v", id, offset, got)
		}
	}
	return acked, nil
}

// order looks for records that are there twice or should not be there at all, and at the order of each producer's.
//
// A plain producer waits for each answer or for its own deadline: after the latter its next records may overtake
// those that are still under way.
func (h *history) order(tp topicPartition, found []identity, seen map[identity]topicPartition) error {
	last := map[uint32]uint64{}
	for offset, id := range found {
		if where, twice := seen[id]; twice {
			return fmt.Errorf("%+v at offset %d is in %v as well", id, offset, where)
		}
		if h.refused[id] {
			return fmt.Errorf("%+v at offset %d was refused", id, offset)
		}
		if idempotent(id.producer) && id.sequence <= last[id.producer] {
			return fmt.Errorf("%+v at offset %d of an idempotent producer comes after %d", id, offset, last[id.producer])
		}
		seen[id], last[id.producer] = tp, id.sequence
	}
	return nil
}

// checkLogs holds the logs of all replicas against each other, batch by batch and byte by byte, and against what
// was read from the leaders. It needs brokers that have stopped. replicas are where each partition lies.
func checkLogs(brokers []*broker, replicas map[topicPartition][]int32, found map[topicPartition][]identity) (string, error) {
	copies := 0
	for tp := range found {
		if len(replicas[tp]) == 0 {
			return "", fmt.Errorf("nobody says where %v lies", tp)
		}
	}
	for tp, ids := range replicas {
		var first map[int64]record.Batch
		for _, id := range ids {
			batches, err := readLog(brokers[id].folder(tp))
			if err != nil {
				return "", err
			}
			n, err := holds(batches, found[tp])
			if err != nil {
				return "", fmt.Errorf("%v on broker %d: %w", tp, id, err)
			}
			copies += n
			if first == nil {
				first = batches
			}
			if err := sameBatches(first, batches); err != nil {
				return "", fmt.Errorf("%v on brokers %d and %d: %w", tp, ids[0], id, err)
			}
		}
	}
	return fmt.Sprintf("%d copies in the logs of all replicas agree byte by byte", copies), nil
}

// sameBatches compares two logs.
func sameBatches(one, other map[int64]record.Batch) error {
	for base, batch := range one {
		if !bytes.Equal(batch, other[base]) {
			return fmt.Errorf("the batches at offset %d differ: epoch %d and %d bytes, %s", base, batch.LeaderEpoch(), len(batch), describe(other[base]))
		}
	}
	if len(one) != len(other) {
		return fmt.Errorf("%d batches and %d", len(one), len(other))
	}
	return nil
}

func describe(b record.Batch) string {
	if b == nil {
		return "and none"
	}
	return fmt.Sprintf("epoch %d and %d bytes", b.LeaderEpoch(), len(b))
}

// holds compares the records of a log with those that were read.
func holds(batches map[int64]record.Batch, found []identity) (int, error) {
	n := 0
	for _, batch := range batches {
		for r, err := range batch.Records(nil) {
			if err != nil {
				return 0, err
			}
			id, err := identify(r.Value)
			if err != nil {
				return 0, err
			}
			if want := at(found, int64(r.Offset)); want != id {
				return 0, fmt.Errorf("offset %d holds %+v, read was %+v", r.Offset, id, want)
			}
			n++
		}
	}
	if n != len(found) {
		return 0, fmt.Errorf("%d records, read were %d", n, len(found))
	}
	return n, nil
}

// readLog reads the batches of one replica, by base offset.
func readLog(folder string) (map[int64]record.Batch, error) {
	segments, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("there is no log in %s", folder)
	}
	all := map[int64]record.Batch{}
	for _, segment := range segments {
		content, err := os.ReadFile(segment)
		if err != nil {
			return nil, err
		}
		for batch, err := range record.Batches(content) {
			if err != nil || !batch.ValidCRC() {
				return nil, errors.Join(fmt.Errorf("damage in %s", segment), err)
			}
			all[int64(batch.BaseOffset())] = batch
		}
	}
	return all, nil
}

// placement is which brokers hold the partitions of some topics, or of all.
func (l *load) placement(ctx context.Context, of ...string) (map[topicPartition][]int32, error) {
	topics, err := l.admin.ListTopicsWithInternal(ctx, of...)
	if err = errors.Join(err, topics.Error()); err != nil {
		return nil, err
	}
	replicas := map[topicPartition][]int32{}
	for name, topic := range topics {
		for _, p := range topic.Partitions {
			replicas[topicPartition{name, p.Partition}] = p.Replicas
		}
	}
	return replicas, nil
}
