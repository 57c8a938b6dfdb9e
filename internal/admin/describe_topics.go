package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeTopics are the named topics with their eligible leader replicas (KIP-966), where the broker
// tells them. A topic that does not exist is in the result with its error.
//
// Answers come in pages of at most 2000 partitions. The next page begins at the cursor, and names only topics
// from there on: brokers refuse a cursor outside of what is asked for.
func (c *Client) DescribeTopics(ctx context.Context, names ...string) ([]Topic, error) {
	r := kmsg.NewPtrDescribeTopicPartitionsRequest()
	for _, name := range slices.Sorted(slices.Values(names)) {
		t := kmsg.NewDescribeTopicPartitionsRequestTopic()
		t.Topic = name
		r.Topics = append(r.Topics, t)
	}
	var topics []Topic
	for {
		response, err := request[*kmsg.DescribeTopicPartitionsResponse](ctx, c, r)
		if err != nil {
			// Brokers before 3.8 have no such request.
			return c.Topics(ctx, names...)
		}
		topics = appendDescribed(topics, response.Topics)
		if response.NextCursor == nil {
			break
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = response.NextCursor.Topic, response.NextCursor.Partition
		r.Cursor = &cursor
		r.Topics = slices.DeleteFunc(r.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool { return t.Topic < r.Cursor.Topic })
	}
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics, nil
}

// appendDescribed adds a page; a topic may go on from the page before.
func appendDescribed(topics []Topic, page []kmsg.DescribeTopicPartitionsResponseTopic) []Topic {
	for i := range page {
		t := &page[i]
		name := ""
		if t.Topic != nil {
			name = *t.Topic
		}
		if len(topics) == 0 || topics[len(topics)-1].Name != name {
			topics = append(topics, Topic{Name: name, ID: t.TopicID, Internal: t.IsInternal, Err: codeError(t.ErrorCode, nil)})
		}
		last := &topics[len(topics)-1]
		for _, p := range t.Partitions {
			last.Partitions = append(last.Partitions, Partition{
				Number: p.Partition, Leader: p.LeaderID, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR,
				Offline: p.OfflineReplicas, Eligible: p.EligibleLeaderReplicas, LastEligible: p.LastKnownELR, Err: codeError(p.ErrorCode, nil),
			})
		}
		slices.SortFunc(last.Partitions, func(a, b Partition) int { return cmp.Compare(a.Number, b.Number) })
	}
	return topics
}
