package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// tailGrowth is how much further back to look where too few records were found: offsets may have no record
// any more, and a filter may drop most.
const tailGrowth = 8

// consumeTail prints the last records of all the partitions together, in the order of their timestamps,
// and with --follow goes on behind them.
//
// The ends do not move while windows grow: --follow goes on exactly where the last window ended, so that no
// record is printed twice or left out.
func consumeTail(ctx context.Context, c *common, flags consumeFlags, b *bounds, ranges admin.Ranges, p *printer) error {
	last, err := c.lastRecords(ctx, flags, b, ranges, p.keep)
	if err != nil {
		return err
	}
	for _, record := range last {
		if err := p.print(record); err != nil {
			return ignoreStop(err)
		}
	}
	if !flags.follow {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	for at, r := range ranges {
		ranges[at] = admin.Range{From: r.To, To: -1, Leader: r.Leader}
	}
	return c.read(ctx, flags, ranges, admin.Sink{Each: p.print, Batch: p.out.Flush})
}

// lastRecords reads ever larger ranges before the ends until there are enough records, or no more.
func (c *common) lastRecords(
	ctx context.Context, flags consumeFlags, b *bounds, ranges admin.Ranges, keep func(*kgo.Record) bool,
) ([]*kgo.Record, error) {
	start, err := b.at(ctx, admin.AtStart)
	if err != nil {
		return nil, err
	}
	for window := flags.tail; ; window *= tailGrowth {
		from, err := b.back(ctx, window)
		if err != nil {
			return nil, err
		}
		whole := true
		for i, at := range b.partitions {
			r := ranges[at]
			r.From = from[i]
			ranges[at] = r
			whole = whole && from[i] <= start[i]
		}
		t := tail{keep: keep, most: int(flags.tail)}
		if err := c.read(ctx, flags, ranges, admin.Sink{Each: t.take, Batch: func() error { return nil }}); err != nil {
			return nil, err
		}
		if records := t.last(); whole || len(records) == t.most || ctx.Err() != nil {
			return records, nil
		}
	}
}

// tail keeps the last records by timestamp.
type tail struct {
	keep    func(*kgo.Record) bool
	most    int
	records []*kgo.Record
}

// trimAt is how many records may be held beyond those wanted, so that sorting is rare.
const trimAt = 4096

func (t *tail) take(record *kgo.Record) error {
	if !t.keep(record) {
		return nil
	}
	t.records = append(t.records, record)
	if len(t.records) > t.most+trimAt {
		t.records = append(t.records[:0:0], t.last()...)
	}
	return nil
}

// last sorts what has come and returns as many as are wanted.
func (t *tail) last() []*kgo.Record {
	slices.SortStableFunc(t.records, func(a, b *kgo.Record) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp),
			cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return t.records[max(0, len(t.records)-t.most):]
}
