// Package shardtest has a partition in memory for tests of coordinators: it appends, reads and commits like
// a replicated one, and fails and stalls on demand.
package shardtest

import (
	"context"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// Partition is a log in memory. All methods may be called concurrently.
type Partition struct {
	mu struct {
		sync.Mutex
		epoch   protocol.LeaderEpoch
		since   protocol.LeaderEpoch // the leadership has not been broken since it began
		batches []record.Batch
		start   protocol.Offset
		end     protocol.Offset
		mark    protocol.Offset
		held    bool
		refuse  error
		reading error
		// changed is closed and replaced whenever a waiter may go on.
		changed chan struct{}
	}
}

// New makes an empty partition that is led in epoch; whatever is appended is committed at once.
func New(epoch protocol.LeaderEpoch) *Partition {
	p := &Partition{}
	p.mu.epoch, p.mu.since = epoch, epoch
	p.mu.changed = make(chan struct{})
	return p
}

// Load fills an empty partition with the batches of a segment file.
func (p *Partition) Load(segment []byte) error {
	for b, err := range record.Batches(segment) {
		if err != nil {
			return err
		}
		p.mu.batches = append(p.mu.batches, slices.Clone(b))
		p.mu.end = b.NextOffset()
	}
	p.mu.mark = p.mu.end
	return nil
}

// Hold keeps the high watermark where it is, or lets it reach the log end again.
func (p *Partition) Hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.held = held
	p.advance()
}

// Refuse makes appends fail with err; nil ends that.
func (p *Partition) Refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.refuse = err
}

// FailReads makes reads fail with err; nil ends that.
func (p *Partition) FailReads(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.reading = err
}

// SetEpoch is a change of leadership: appends and waits of older epochs fail from now on. Where lost is set,
// what was not committed is cut off, as when another replica has led in between.
func (p *Partition) SetEpoch(epoch protocol.LeaderEpoch, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.epoch, p.mu.since = epoch, epoch
	if lost {
		p.mu.batches = slices.DeleteFunc(p.mu.batches, func(b record.Batch) bool { return b.BaseOffset() >= p.mu.mark })
		p.mu.end = p.mu.mark
	}
	p.notify()
}

// GoOn is a new epoch of the same leader, who has led without a break.
func (p *Partition) GoOn(epoch protocol.LeaderEpoch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.epoch = epoch
	p.notify()
}

// LedSince reports whether the leadership has not been broken since epoch.
func (p *Partition) LedSince(epoch protocol.LeaderEpoch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.led(epoch)
}

func (p *Partition) led(epoch protocol.LeaderEpoch) bool {
	return epoch >= p.mu.since && epoch <= p.mu.epoch
}

// Compact takes out the batches that drop says, and moves the log start to start where that is higher.
func (p *Partition) Compact(start protocol.Offset, drop func(record.Batch) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.batches = slices.DeleteFunc(p.mu.batches, func(b record.Batch) bool { return drop(b) || b.LastOffset() < start })
	p.mu.start = max(p.mu.start, start)
}

// Batches are copies of what is in the log.
func (p *Partition) Batches() []record.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]record.Batch, len(p.mu.batches))
	for i, b := range p.mu.batches {
		all[i] = slices.Clone(b)
	}
	return all
}

// advance lets the watermark reach the log end, unless it is held.
func (p *Partition) advance() {
	if !p.mu.held {
		p.mu.mark = p.mu.end
	}
	p.notify()
}

func (p *Partition) notify() {
	close(p.mu.changed)
	p.mu.changed = make(chan struct{})
}

// Append appends a batch at the log end, unless the leadership has been broken since epoch.
func (p *Partition) Append(_ context.Context, batch record.Batch, epoch protocol.LeaderEpoch) (protocol.Offset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.led(epoch) {
		return 0, protocol.NotLeaderOrFollower
	}
	if p.mu.refuse != nil {
		return 0, p.mu.refuse
	}
	b := slices.Clone(batch)
	b.SetBaseOffset(p.mu.end)
	b.SetLeaderEpoch(p.mu.epoch)
	p.mu.batches = append(p.mu.batches, b)
	p.mu.end = b.NextOffset()
	p.advance()
	return b.LastOffset(), nil
}

// WaitCommitted waits for the watermark, unless the leadership has been broken since epoch.
func (p *Partition) WaitCommitted(ctx context.Context, epoch protocol.LeaderEpoch, end protocol.Offset) error {
	for {
		p.mu.Lock()
		led, done, changed := p.led(epoch), p.mu.mark >= end, p.mu.changed
		p.mu.Unlock()
		switch {
		case !led:
			return protocol.NotLeaderOrFollower
		case done:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Read returns whole batches from the one that holds offset from.
func (p *Partition) Read(from protocol.Offset, maxBytes int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.reading != nil {
		return nil, p.mu.reading
	}
	if from < p.mu.start || from > p.mu.end {
		return nil, protocol.Errorf(protocol.OffsetOutOfRange, "offset %d is not in [%d, %d]", from, p.mu.start, p.mu.end)
	}
	var chunk []byte
	for _, b := range p.mu.batches {
		if b.LastOffset() < from {
			continue
		}
		if len(chunk) > 0 && len(chunk)+len(b) > maxBytes {
			break
		}
		chunk = append(chunk, b...)
	}
	return chunk, nil
}

// Bounds are log start and log end.
func (p *Partition) Bounds() (start, end protocol.Offset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.start, p.mu.end
}

// HighWatermark is the offset below which records are committed.
func (p *Partition) HighWatermark() protocol.Offset {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.mark
}
