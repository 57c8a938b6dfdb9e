package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// perms are the orders in which three brokers can start.
var perms = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// coldStart is a round in which all brokers are killed, one has lost the tails of its logs as in a power cut, and they
// start one after the other.
func coldStart(ctx context.Context, t *trial, round int) error {
	t.kill(t.brokers...)
	unlucky := t.brokers[round/len(perms)%3]
	n, err := t.loseTails(unlucky)
	if err != nil {
		return err
	}
	t.fault("power cut")
	t.faults["batches lost"] += n
	var starting sync.WaitGroup
	errs := make([]error, 3)
	for _, i := range perms[round%len(perms)] {
		starting.Go(func() { errs[i] = t.brokers[i].Start() })
		if err := t.pause(ctx, 0, second(2)); err != nil {
			return err
		}
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return t.servedAgain(ctx, "all brokers have started")
}

// loseTails cuts the active segments of all logs of a broker somewhere behind what was synced, and lets it believe that
// the machine was booted since. It returns how many batches that cost.
func (t *trial) loseTails(b *broker) (int, error) {
	data := filepath.Join(b.Dir, "data")
	synced, err := recoveryPoints(data)
	if err != nil {
		return 0, err
	}
	folders, err := filepath.Glob(filepath.Join(data, "*-[0-9]*"))
	if err != nil {
		return 0, err
	}
	lost := 0
	for _, folder := range folders {
		segments, err := filepath.Glob(filepath.Join(folder, "*.log"))
		if err != nil || len(segments) == 0 {
			continue
		}
		n, err := t.loseTail(segments[len(segments)-1], synced[filepath.Base(folder)])
		if err != nil {
			return 0, err
		}
		lost += n
	}
	return lost, os.Remove(filepath.Join(data, ".barnabas-boot"))
}

// loseTail cuts one segment at or behind an offset, in the middle of a batch too.
func (t *trial) loseTail(segment string, synced int64) (int, error) {
	content, err := os.ReadFile(segment)
	if err != nil {
		return 0, err
	}
	kept, position := 0, 0
	var behind []int // the positions of batches that may be lost
	for batch, err := range record.Batches(content) {
		if err != nil {
			break // what follows is preallocated, or torn
		}
		if int64(batch.BaseOffset()) < synced {
			kept = position + len(batch)
		} else {
			behind = append(behind, position)
		}
		position += len(batch)
	}
	if len(behind) == 0 {
		return 0, nil
	}
	first := max(len(behind)-100, 0) // a tail, not all
	at := first + t.random.IntN(len(behind)-first)
	cut := max(behind[at]+t.random.IntN(40), kept)
	return len(behind) - at, os.Truncate(segment, int64(cut))
}

// recoveryPoints reads up to where logs were synced.
//
//	0                  version
//	2                  how many
//	orders 1 4711      topic, partition, offset
func recoveryPoints(data string) (map[string]int64, error) {
	text, err := os.ReadFile(filepath.Join(data, "recovery-point-offset-checkpoint"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing was synced yet
	}
	if err != nil {
		return nil, err
	}
	points := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		offset, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q in the recovery points of %s: %w", line, data, err)
		}
		points[fields[0]+"-"+fields[1]] = offset
	}
	return points, nil
}
