package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The points in a partition that are no times.
const (
	AtEnd          int64 = -1
	AtStart        int64 = -2
	AtMaxTimestamp int64 = -3
	// AtStable is the last stable offset: where a reader of committed transactions stops.
	AtStable int64 = -100
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Compare orders partitions by topic and number.
func (t TopicPartition) Compare(u TopicPartition) int {
	return cmp.Or(cmp.Compare(t.Topic, u.Topic), cmp.Compare(t.Partition, u.Partition))
}

// Positions are offsets by partition.
type Positions map[TopicPartition]int64

// PartitionOffset is an offset of one partition.
type PartitionOffset struct {
	TopicPartition
	// Offset is -1 where the partition has no record at the point asked for.
	Offset int64
	// Timestamp is that of the record in ms, and -1 where no record was looked for.
	Timestamp int64
	Err       error
}

// PartitionsOf lists the partitions of topics in order; topics with an error have none.
func PartitionsOf(topics []Topic) []TopicPartition {
	var all []TopicPartition
	for _, t := range topics {
		for _, p := range t.Partitions {
			all = append(all, TopicPartition{t.Name, p.Number})
		}
	}
	return all
}

// Offsets are the offsets of the partitions at a point, which is one of the constants above or a time in
// ms: the first record of that time or later. The result has the order of the partitions.
//
// One ListOffsets to each leader. A partition whose leader does not answer has the error in its place; only
// where no leader answers at all is there an error of the whole.
func (c *Client) Offsets(ctx context.Context, point int64, partitions []TopicPartition) ([]PartitionOffset, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	found := make(map[TopicPartition]PartitionOffset, len(partitions))
	var failed error
	for _, shard := range c.kafka.RequestSharded(ctx, offsetsRequest(point, partitions)) {
		if shard.Err != nil {
			failed = c.Explain(shard.Err)
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				at := TopicPartition{t.Topic, p.Partition}
				found[at] = PartitionOffset{at, p.Offset, p.Timestamp, codeError(p.ErrorCode, nil)}
			}
		}
	}
	if len(found) == 0 && failed != nil {
		return nil, failed
	}
	offsets := make([]PartitionOffset, 0, len(partitions))
	for _, at := range partitions {
		o, ok := found[at]
		if !ok {
			o = PartitionOffset{at, -1, -1, cmp.Or(failed, errNoAnswer)}
		}
		offsets = append(offsets, o)
	}
	return offsets, nil
}

func offsetsRequest(point int64, partitions []TopicPartition) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	if point == AtStable {
		r.IsolationLevel, point = 1, AtEnd
	}
	for _, at := range partitions {
		i := slices.IndexFunc(r.Topics, func(t kmsg.ListOffsetsRequestTopic) bool { return t.Topic == at.Topic })
		if i < 0 {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = at.Topic
			r.Topics, i = append(r.Topics, t), len(r.Topics)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = at.Partition, point
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, p)
	}
	return r
}
