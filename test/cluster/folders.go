package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// disks waits until every broker's disk holds the logs of its replicas and no others: what was deleted or moved away while
// its broker, or the controller, was down must not stay. Moves have ended before.
func (t *trial) disks(ctx context.Context) (string, error) {
	found := 0
	err := t.load.until(ctx, "disks that hold what the tree says", func(ctx context.Context) error {
		replicas, err := t.load.placement(ctx)
		if err != nil {
			return err
		}
		found = 0
		return each(t.brokers, func(b *broker) error {
			n, err := b.holdsOnly(replicas)
			found += n
			return err
		})
	})
	return fmt.Sprintf("%d logs on the disks, of the replicas that there are", found), err
}

// holdsOnly compares the folders of partitions on a broker's disk with where replicas are, and counts those that are there.
// A folder that is being deleted is none. The logs of brokers' own topics are made with their first records.
func (b *broker) holdsOnly(replicas map[topicPartition][]int32) (int, error) {
	folders, err := b.partitions()
	if err != nil {
		return 0, err
	}
	for tp, name := range folders {
		if ids, known := replicas[tp]; !known {
			return 0, fmt.Errorf("broker %d has %s, of a partition that there is not", b.id, name)
		} else if !slices.Contains(ids, int32(b.id)) {
			return 0, fmt.Errorf("broker %d has %s, whose replicas are on %v", b.id, name, ids)
		} else if name != tp.String() {
			return 0, fmt.Errorf("broker %d has %s, which is no log in use", b.id, name)
		}
	}
	for tp, ids := range replicas {
		if _, there := folders[tp]; !there && slices.Contains(ids, int32(b.id)) && !protocol.IsInternalTopic(tp.topic) {
			return 0, fmt.Errorf("broker %d has no log of %v, whose replicas are on %v", b.id, tp, ids)
		}
	}
	return len(folders), nil
}

// partitions are the folders of partitions on a broker's disk. Where one has several, that which is not in use is named.
//
//	orders-3             in use
//	orders-3.….-future   and -stray: not in use
//	orders-3.….-delete   on its way out, left out here
func (b *broker) partitions() (map[topicPartition]string, error) {
	var entries []os.DirEntry
	for _, dir := range b.logDirs() {
		some, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		entries = append(entries, some...)
	}
	folders := map[topicPartition]string{}
	for _, e := range entries {
		name, suffix := e.Name(), filepath.Ext(e.Name())
		if !e.IsDir() || strings.HasSuffix(suffix, "-delete") {
			continue
		}
		if strings.HasSuffix(suffix, "-future") || strings.HasSuffix(suffix, "-stray") {
			name = strings.TrimSuffix(name, suffix)
		}
		tp, err := protocol.PartitionOfDir(name)
		if err != nil {
			continue // not a partition's
		}
		if key := (topicPartition{tp.Topic, tp.Partition}); folders[key] == "" || name != e.Name() {
			folders[key] = e.Name()
		}
	}
	return folders, nil
}
