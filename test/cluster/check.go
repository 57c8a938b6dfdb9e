package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// check reads the topic from its beginning and compares it with what was acknowledged.
func (l *load) check(ctx context.Context) (string, error) {
	defer l.client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	ends, err := l.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return "", err
	}
	reader, err := l.newClient(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return "", err
	}
	defer reader.Close()
	found, next := map[place]identity{}, map[int32]int64{}
	for left := l.partitions; left > 0; {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			return "", fmt.Errorf("read up to %v of %v: %w", next, ends[topic], ctx.Err())
		}
		for _, r := range fetches.Records() {
			if r.Offset != next[r.Partition] {
				return "", fmt.Errorf("partition %d: offset %d follows %d", r.Partition, r.Offset, next[r.Partition]-1)
			}
			next[r.Partition]++
			found[place{r.Partition, r.Offset}] = identity{binary.BigEndian.Uint32(r.Value), binary.BigEndian.Uint64(r.Value[4:])}
		}
		left = 0
		for partition, end := range ends[topic] {
			if next[partition] < end.Offset {
				left++
			}
		}
	}
	return l.compare(found, next)
}

// compare looks for every acknowledged record, and at the order and number of those of idempotent producers.
func (l *load) compare(found map[place]identity, ends map[int32]int64) (string, error) {
	for at, id := range l.mu.acked {
		if got, ok := found[at]; !ok || got != id {
			return "", fmt.Errorf("record %d of producer %d was acknowledged at %v, where there is %+v", id.sequence, id.producer, at, got)
		}
	}
	twice, seen := 0, map[identity]bool{}
	for partition, end := range ends {
		last := map[uint32]uint64{}
		for offset := range end {
			id := found[place{partition, offset}]
			if seen[id] {
				twice++
			}
			if idempotent(id.producer) && (seen[id] || id.sequence <= last[id.producer]) {
				return "", fmt.Errorf("partition %d: record %d of idempotent producer %d comes after %d", partition, id.sequence, id.producer, last[id.producer])
			}
			seen[id], last[id.producer] = true, id.sequence
		}
	}
	return fmt.Sprintf("%d records acknowledged and in place, %d there, %d of them duplicates of plain producers", len(l.mu.acked), len(found), twice), nil
}

// copyOf is one record in a replica's log.
type copyOf struct {
	epoch protocol.LeaderEpoch
	value string
	in    int
}

// compareLogs holds the logs of all replicas against each other.
func compareLogs(brokers []*broker, partitions int) (string, error) {
	records := 0
	for partition := range partitions {
		all := map[protocol.Offset]copyOf{}
		for _, b := range brokers {
			folder := filepath.Join(b.Dir, "data", fmt.Sprintf("%s-%d", topic, partition))
			err := readLog(folder, func(offset protocol.Offset, epoch protocol.LeaderEpoch, value string) error {
				one, there := all[offset]
				if there && (one.epoch != epoch || one.value != value) {
					return fmt.Errorf("partition %d, offset %d: broker %d has another record than broker %d", partition, offset, b.id, one.in)
				}
				all[offset] = copyOf{epoch, value, b.id}
				records++
				return nil
			})
			if err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%d copies in the logs agree", records), nil
}

// readLog walks the records of one replica.
func readLog(folder string, each func(protocol.Offset, protocol.LeaderEpoch, string) error) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".log") {
			continue
		}
		bytes, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		for batch, err := range record.Batches(bytes) {
			if err != nil || !batch.ValidCRC() {
				return errors.Join(fmt.Errorf("damage in %s of %s", entry.Name(), folder), err)
			}
			for r, err := range batch.Records(nil) {
				if err != nil {
					return err
				}
				if err := each(r.Offset, batch.LeaderEpoch(), string(r.Value)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
