package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteRecords deletes the records before the offsets; -1 stands for the high watermark. The results are
// in the order of the partitions and hold the new log start offsets.
//
// Each leader gets one request for its partitions. A leader that cannot be reached fails its own partitions
// only.
func (c *Client) DeleteRecords(ctx context.Context, partitions []PartitionOffset) ([]PartitionOffset, error) {
	r := kmsg.NewPtrDeleteRecordsRequest()
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	topics := map[string]int{}
	for _, at := range partitions {
		i, ok := topics[at.Topic]
		if !ok {
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = at.Topic
			i = len(r.Topics)
			topics[at.Topic] = i
			r.Topics = append(r.Topics, t)
		}
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = at.Partition, at.Offset
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, p)
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	outcome := map[TopicPartition]PartitionOffset{}
	for _, shard := range c.kafka.RequestSharded(ctx, r) {
		if shard.Err != nil {
			for _, t := range shard.Req.(*kmsg.DeleteRecordsRequest).Topics {
				for _, p := range t.Partitions {
					at := TopicPartition{t.Topic, p.Partition}
					outcome[at] = PartitionOffset{at, -1, -1, c.Explain(shard.Err)}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.DeleteRecordsResponse).Topics {
			for _, p := range t.Partitions {
				at := TopicPartition{t.Topic, p.Partition}
				outcome[at] = PartitionOffset{at, p.LowWatermark, -1, codeError(p.ErrorCode, nil)}
			}
		}
	}
	results := make([]PartitionOffset, 0, len(partitions))
	for _, at := range partitions {
		result, ok := outcome[at.TopicPartition]
		if !ok {
			result = PartitionOffset{at.TopicPartition, -1, -1, errNoAnswer}
		}
		results = append(results, result)
	}
	return results, nil
}
