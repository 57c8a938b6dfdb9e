package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Committed is an offset that a group has committed.
type Committed struct {
	TopicPartition
	Offset      int64
	LeaderEpoch int32
	Metadata    string
}

// Committed are all offsets of a group, sorted by partition; a group without any, or that does not
// exist, has none.
func (c *Client) Committed(ctx context.Context, group string) ([]Committed, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	responses, err := c.admin.FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, c.Explain(err)
	}
	var all []Committed
	var failed error
	responses.Each(func(o kadm.OffsetResponse) {
		switch {
		case o.Err != nil:
			failed = fmt.Errorf("%s-%d: %w", o.Topic, o.Partition, o.Err)
		case o.At >= 0:
			all = append(all, Committed{TopicPartition{o.Topic, o.Partition}, o.At, o.LeaderEpoch, o.Metadata})
		}
	})
	slices.SortFunc(all, func(a, b Committed) int { return a.Compare(b.TopicPartition) })
	return all, failed
}

// Lag is how far a group is behind in one partition.
//
// -1 stands for unknown everywhere, 0 for a group that has read everything. An offset beyond the end, as after
// a topic was made anew, is no negative lag but 0.
type Lag struct {
	TopicPartition
	// Committed is the group's offset, -1 where it has none.
	Committed int64
	// LeaderEpoch is the one committed with the offset, -1 where there is none.
	LeaderEpoch int32
	// Start and End are the partition's log start and log end offsets, -1 where they are not known.
	Start, End int64
	// Lag is the number of offsets from the committed one to the end, -1 where it is not known.
	Lag int64
	// Member has the partition; nil where none has.
	Member *Member
	// Err says why the offsets of the partition are not known.
	Err error
}

// Lag is how far a group is behind in each partition that it has committed or is assigned, sorted.
func (c *Client) Lag(ctx context.Context, group Group) ([]Lag, error) {
	committed, err := c.Committed(ctx, group.Name)
	if err != nil {
		return nil, err
	}
	rows := map[TopicPartition]*Lag{}
	for _, o := range committed {
		rows[o.TopicPartition] = &Lag{TopicPartition: o.TopicPartition, Committed: o.Offset, LeaderEpoch: o.LeaderEpoch}
	}
	for i := range group.Members {
		for _, at := range group.Members[i].Assigned {
			if rows[at] == nil {
				rows[at] = &Lag{TopicPartition: at, Committed: -1, LeaderEpoch: -1}
			}
			rows[at].Member = &group.Members[i]
		}
	}
	partitions := slices.SortedFunc(maps.Keys(rows), TopicPartition.Compare)
	if len(partitions) == 0 {
		return nil, nil
	}
	start, err := c.Offsets(ctx, AtStart, partitions)
	if err != nil {
		return nil, err
	}
	end, err := c.Offsets(ctx, AtEnd, partitions)
	if err != nil {
		return nil, err
	}
	lags := make([]Lag, 0, len(partitions))
	for i, at := range partitions {
		row := rows[at]
		row.bound(start[i], end[i])
		lags = append(lags, *row)
	}
	return lags, nil
}

// bound fills in what follows from the partition's bounds.
func (l *Lag) bound(start, end PartitionOffset) {
	l.Start, l.End, l.Lag = -1, -1, -1
	if l.Err = end.Err; l.Err == nil {
		l.End = end.Offset
	}
	if start.Err == nil {
		l.Start = start.Offset
	}
	if l.Committed >= 0 && l.End >= 0 {
		l.Lag = max(l.End-l.Committed, 0)
	}
}

// PartitionResult is what became of one partition.
type PartitionResult struct {
	TopicPartition
	Err error
}

// Commit sets offsets of a group that has no members.
//
// It is an OffsetCommit without a member (generation -1), which coordinators take only while nobody is in the
// group. The leader epoch goes as -1: that of a record that may not exist would only make consumers look for
// truncation.
func (c *Client) Commit(ctx context.Context, group string, offsets Positions) ([]PartitionResult, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	request := kadm.Offsets{}
	for at, offset := range offsets {
		request.Add(kadm.Offset{Topic: at.Topic, Partition: at.Partition, At: offset, LeaderEpoch: -1})
	}
	responses, err := c.admin.CommitOffsets(ctx, group, request)
	if err != nil {
		return nil, c.Explain(err)
	}
	var results []PartitionResult
	responses.Each(func(o kadm.OffsetResponse) {
		results = append(results, PartitionResult{TopicPartition{o.Topic, o.Partition}, o.Err})
	})
	slices.SortFunc(results, func(a, b PartitionResult) int { return a.Compare(b.TopicPartition) })
	return results, nil
}

// DeleteGroups deletes groups that have no members. The results are in the order of the names.
func (c *Client) DeleteGroups(ctx context.Context, names []string) ([]Result, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	r := kmsg.NewPtrDeleteGroupsRequest()
	r.Groups = names
	outcome := map[string]error{}
	for _, shard := range c.kafka.RequestSharded(ctx, r) {
		if shard.Err != nil {
			return nil, c.Explain(shard.Err)
		}
		for _, g := range shard.Resp.(*kmsg.DeleteGroupsResponse).Groups {
			outcome[g.Group] = codeError(g.ErrorCode, nil)
		}
	}
	return resultsOf(names, outcome), nil
}

// DeleteOffsets forgets a group's offsets of some partitions. The error of the group as a whole is the
// error; the results have the order of the partitions.
func (c *Client) DeleteOffsets(ctx context.Context, group string, partitions []TopicPartition) ([]PartitionResult, error) {
	r := kmsg.NewPtrOffsetDeleteRequest()
	r.Group = group
	for _, at := range partitions {
		i := slices.IndexFunc(r.Topics, func(t kmsg.OffsetDeleteRequestTopic) bool { return t.Topic == at.Topic })
		if i < 0 {
			t := kmsg.NewOffsetDeleteRequestTopic()
			t.Topic = at.Topic
			r.Topics, i = append(r.Topics, t), len(r.Topics)
		}
		p := kmsg.NewOffsetDeleteRequestTopicPartition()
		p.Partition = at.Partition
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, p)
	}
	response, err := request[*kmsg.OffsetDeleteResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	if err := codeError(response.ErrorCode, nil); err != nil {
		return nil, err
	}
	outcome := map[TopicPartition]error{}
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			outcome[TopicPartition{t.Topic, p.Partition}] = codeError(p.ErrorCode, nil)
		}
	}
	results := make([]PartitionResult, 0, len(partitions))
	for _, at := range partitions {
		results = append(results, PartitionResult{at, outcome[at]})
	}
	return results, nil
}
