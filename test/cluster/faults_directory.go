package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// secondDirectory is a link to where the second log directory's files are. While something else than a folder is in its
// place, whatever the broker opens in it fails, as on a disk that is gone.
const secondDirectory = "second"

func (b *broker) linkDirectory() error {
	if err := os.MkdirAll(filepath.Join(b.Dir, "second-disk"), 0o755); err != nil {
		return err
	}
	return os.Symlink("second-disk", filepath.Join(b.Dir, secondDirectory))
}

func (b *broker) breakDirectory() error {
	path := filepath.Join(b.Dir, secondDirectory)
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

func (b *broker) mendDirectory() error {
	if err := os.Remove(filepath.Join(b.Dir, secondDirectory)); err != nil {
		return err
	}
	return b.linkDirectory()
}

// directoryFails is a round in which the second log directory fails of the last broker in sync. What is in it has no leader
// from then on, also when the others are back, since they may lack records; what is in the first one is served throughout.
// When the broker comes back with a directory that works nothing is lost.
func directoryFails(ctx context.Context, t *trial, _ int) error {
	last, err := t.lastOne(ctx)
	if err != nil {
		return err
	}
	failed := t.inSecond(last)
	if len(failed) == 0 || len(failed) == t.settings.partitions {
		return fmt.Errorf("of %d partitions %d lie in the second directory", t.settings.partitions, len(failed))
	}
	if err := last.breakDirectory(); err != nil {
		return err
	}
	t.fault("directory failed")
	if err := t.parted(ctx, last, failed, 1); err != nil {
		return err
	}
	if err := start(t.others(last)); err != nil {
		return err
	}
	if err := t.parted(ctx, last, failed, 3); err != nil {
		return err
	}
	if err := t.explained(ctx, last, fmt.Sprintf("the log directory of %d has failed", last.id)); err != nil {
		return err
	}
	t.kill(last)
	if err := errors.Join(last.mendDirectory(), last.Start()); err != nil {
		return err
	}
	return t.servedAgain(ctx, "the directory works again")
}

// inSecond lists the partitions of orders in the second directory of a broker.
func (t *trial) inSecond(b *broker) (partitions []int) {
	for p := range t.settings.partitions {
		if exists(filepath.Join(b.Dir, secondDirectory, topicPartition{orders, int32(p)}.String())) {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// parted waits until nobody leads those partitions of orders, only broker last may, and so many are in sync with the others.
func (t *trial) parted(ctx context.Context, last *broker, failed []int, inSync int) error {
	return t.load.until(ctx, "partitions in a failed directory without a leader", func(ctx context.Context) error {
		states, err := t.states(ctx, orders, t.settings.partitions)
		if err != nil {
			return err
		}
		for p, s := range states {
			alone := slices.Equal(s.ISR, []protocol.BrokerID{protocol.BrokerID(last.id)})
			leaderless := s.Leader == protocol.NoBroker && alone
			if slices.Contains(failed, p) != leaderless || !leaderless && len(s.ISR) != inSync {
				return fmt.Errorf("%s-%d has leader %d and in-sync replicas %v; %v lie in the failed directory of broker %d", orders, p, s.Leader, s.ISR, failed, last.id)
			}
		}
		return nil
	})
}
