package cli

import (
	"context"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// ranges are what --from, --until, --exit and --partition say for each partition, and the bounds that it
// follows from. With --tail they begin at the end.
func (f *consumeFlags) ranges(
	ctx context.Context, client *admin.Client, names []string, now time.Time,
) (admin.Ranges, *bounds, error) {
	topics, err := client.Topics(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	if err := missingTopic(topics); err != nil {
		return nil, nil, err
	}
	partitions, leaders, err := f.chosen(topics)
	if err != nil {
		return nil, nil, err
	}
	b := &bounds{client: client, partitions: partitions}
	from, err := f.begins(ctx, b, now)
	if err != nil {
		return nil, nil, err
	}
	to, err := f.ends(ctx, b, now)
	if err != nil {
		return nil, nil, err
	}
	ranges := make(admin.Ranges, len(partitions))
	for i, at := range partitions {
		ranges[at] = admin.Range{From: from[i], To: to[i], Leader: leaders[i]}
	}
	return ranges, b, nil
}

// chosen are the partitions to read with their leaders.
func (f *consumeFlags) chosen(topics []admin.Topic) (partitions []admin.TopicPartition, leaders []int32, err error) {
	for _, t := range topics {
		for _, wanted := range f.partitions {
			if wanted < 0 || int(wanted) >= len(t.Partitions) {
				return nil, nil, unknownPartition(t.Name, wanted)
			}
		}
		for _, p := range t.Partitions {
			if len(f.partitions) == 0 || slices.Contains(f.partitions, p.Number) {
				partitions = append(partitions, admin.TopicPartition{Topic: t.Name, Partition: p.Number})
				leaders = append(leaders, p.Leader)
			}
		}
	}
	return partitions, leaders, nil
}

// begins are the first offsets of the partitions.
func (f *consumeFlags) begins(ctx context.Context, b *bounds, now time.Time) ([]int64, error) {
	if f.tail > 0 {
		return b.at(ctx, admin.AtEnd)
	}
	from, err := parsePoint("--from", f.from, now)
	if err != nil {
		return nil, err
	}
	return b.of(ctx, from)
}

// ends are the offsets to stop before, -1 where there is no end.
//
// Ends are high watermarks, taken once before the reading begins: a topic that is written to all the time ends
// where it was, not where it will be.
func (f *consumeFlags) ends(ctx context.Context, b *bounds, now time.Time) ([]int64, error) {
	switch {
	case f.until != "":
		until, err := parsePoint("--until", f.until, now)
		if err != nil {
			return nil, err
		}
		return b.of(ctx, until)
	case f.exit || f.tail > 0:
		return b.of(ctx, point{kind: pointEnd})
	}
	ends := make([]int64, len(b.partitions))
	for i := range ends {
		ends[i] = -1
	}
	return ends, nil
}

// bounds finds the offsets of points in the same partitions, asking for each kind of point once.
//
// A --from in the past and an --exit need three lists of offsets at most: start, end, and that of the time.
// Each is one ListOffsets to every leader, however many partitions there are.
type bounds struct {
	client     *admin.Client
	partitions []admin.TopicPartition
	known      map[int64][]int64
}

// at are the offsets at a point as admin.Client.Offsets takes it; -1 where there is no record.
func (b *bounds) at(ctx context.Context, where int64) ([]int64, error) {
	if offsets, ok := b.known[where]; ok {
		return offsets, nil
	}
	found, err := b.client.Offsets(ctx, where, b.partitions)
	if err != nil {
		return nil, err
	}
	offsets := make([]int64, len(found))
	for i, o := range found {
		if o.Err != nil {
			return nil, o.Err
		}
		offsets[i] = o.Offset
	}
	if b.known == nil {
		b.known = map[int64][]int64{}
	}
	b.known[where] = offsets
	return offsets, nil
}

// of are the offsets of a point. An offset beyond a partition is moved to its nearer bound, and a time
// behind the last record is the end.
func (b *bounds) of(ctx context.Context, p point) ([]int64, error) {
	switch p.kind {
	case pointStart:
		return b.at(ctx, admin.AtStart)
	case pointEnd:
		return b.at(ctx, admin.AtEnd)
	case pointOffset:
		if p.offset < 0 {
			return b.back(ctx, -p.offset)
		}
		return b.clamp(ctx, slices.Repeat([]int64{p.offset}, len(b.partitions)))
	}
	found, err := b.at(ctx, p.time.UnixMilli())
	if err != nil {
		return nil, err
	}
	end, err := b.at(ctx, admin.AtEnd)
	if err != nil {
		return nil, err
	}
	offsets := slices.Clone(found)
	for i := range offsets {
		if offsets[i] < 0 {
			offsets[i] = end[i]
		}
	}
	return offsets, nil
}

// back are the offsets so many before the end.
func (b *bounds) back(ctx context.Context, n int64) ([]int64, error) {
	end, err := b.at(ctx, admin.AtEnd)
	if err != nil {
		return nil, err
	}
	offsets := make([]int64, len(end))
	for i := range end {
		offsets[i] = end[i] - n
	}
	return b.clamp(ctx, offsets)
}

// clamp holds offsets between the partitions' start and end.
func (b *bounds) clamp(ctx context.Context, offsets []int64) ([]int64, error) {
	start, err := b.at(ctx, admin.AtStart)
	if err != nil {
		return nil, err
	}
	end, err := b.at(ctx, admin.AtEnd)
	if err != nil {
		return nil, err
	}
	held := make([]int64, len(offsets))
	for i := range offsets {
		held[i] = min(max(offsets[i], start[i]), end[i])
	}
	return held, nil
}
