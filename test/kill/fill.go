package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The small volume of a fill, and what lies on it beside the broker's data until there is to be space again.
const (
	volume = "size=48m"
	filler = 16 << 20
)

// fill runs a broker on a small volume of its own (which needs root) until that is full. What must hold: the
// client is told so by an error; all that was acknowledged can be read, also after a kill and a start on the
// full volume; topics can be deleted; and once there is space, records are taken again without a restart.
func fill(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "barnabas-fill-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(dir) }() // an empty mount point by then
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", volume, "tmpfs", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("mounting a small volume: %w: %s", err, output)
	}
	defer func() { _ = exec.Command("umount", dir).Run() }() // the directory stays where this fails
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, filler), 0o600); err != nil {
		return err
	}
	b := newBroker(o.program, dir)
	defer b.Kill()
	if err := b.Start(); err != nil {
		return err
	}
	f := &filling{address: b.Address}
	if err := f.untilFull(ctx); err != nil {
		return err
	}
	if err := f.readBack(ctx); err != nil {
		return fmt.Errorf("on the full volume: %w", err)
	}
	b.Kill()
	if err := b.Start(); err != nil {
		return fmt.Errorf("a start on the full volume: %w", err)
	}
	if err := f.readBack(ctx); err != nil {
		return fmt.Errorf("after a start on the full volume: %w", err)
	}
	before := f.acked
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if err := f.once(ctx, 3*time.Minute); err != nil {
		return fmt.Errorf("with space again: %w", err)
	}
	if err := f.readBack(ctx); err != nil {
		return fmt.Errorf("with space again: %w", err)
	}
	fmt.Printf("full after %d records of 64 KiB: refused with %v, read back in place, started again, %d more once there was space\n",
		before, f.refused, f.acked-before)
	return nil
}

// filling is a client that fills a volume.
//
// Records are 64 KiB and not compressed, so that few of them fill the volume; the client gives up after three
// tries, as it would otherwise retry for as long as the disk is full.
type filling struct {
	address string
	acked   int
	refused error
}

const (
	filled = "filled"
	spare  = "spare"
)

// client makes a client that gives up soon.
func (f *filling) client() (*kgo.Client, error) {
	return newClient(f.address, kgo.DefaultProduceTopic(filled), kgo.DisableIdempotentWrite(), kgo.RecordRetries(3),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ConsumeTopics(filled), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

// untilFull writes until the broker refuses to take more.
func (f *filling) untilFull(ctx context.Context) error {
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, topic := range []string{filled, spare} {
		if _, err := admin.CreateTopic(ctx, 1, 1, nil, topic); err != nil {
			return err
		}
	}
	for f.refused == nil {
		if f.refused = client.ProduceSync(ctx, f.record()).FirstErr(); f.refused == nil {
			f.acked++
		}
	}
	if !errors.Is(f.refused, kerr.KafkaStorageError) {
		return fmt.Errorf("the client was told %w", f.refused)
	}
	_, err = admin.DeleteTopic(ctx, spare)
	return err
}

func (f *filling) record() *kgo.Record {
	value := make([]byte, 64<<10)
	copy(value, fmt.Sprint(f.acked))
	return &kgo.Record{Value: value}
}

// once writes one record, and tries for so long.
func (f *filling) once(ctx context.Context, limit time.Duration) error {
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.Close()
	for deadline := time.Now().Add(limit); ; {
		err := client.ProduceSync(ctx, f.record()).FirstErr()
		if err == nil {
			f.acked++
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// readBack reads all records and compares them with what was acknowledged.
func (f *filling) readBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.Close()
	for next := 0; next < f.acked; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			want := fmt.Sprint(next)
			if r.Offset != int64(next) || string(r.Value[:len(want)]) != want || r.Value[len(want)] != 0 {
				return fmt.Errorf("at offset %d stands %.20q, want %s at %d", r.Offset, r.Value, want, next)
			}
			next++
		}
	}
	ends, err := offsetsOf(kadm.NewClient(client).ListEndOffsets(ctx, filled))
	if err == nil && ends[0] != int64(f.acked) {
		err = fmt.Errorf("the log ends at %d, acknowledged were %d records", ends[0], f.acked)
	}
	return err
}
