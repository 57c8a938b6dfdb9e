package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// Metadata, ListOffsets twice (start and end), DescribeConfigs:
//
//	topics       NAME   ID  PARTITIONS  REPLICATION-FACTOR  INTERNAL  CONFIGS  ERROR
//	partitions   TOPIC  PARTITION  LEADER  EPOCH  REPLICAS  ISR  START-OFFSET  END-OFFSET  ERROR
//
// CONFIGS are the topic's own, not what it inherits. The end is the high watermark. A partition without a
// leader has no offsets, and the rest is printed all the same.
func topicDescribeCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:               "describe NAME...",
		Short:             "Show topics with their partitions, offsets and own properties",
		Args:              atLeast(1, "name"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, names []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				return runTopicDescribe(ctx, c, client, names)
			})
		},
	}
}

func runTopicDescribe(ctx context.Context, c *common, client *admin.Client, names []string) error {
	topics, err := client.Topics(ctx, names...)
	if err != nil {
		return err
	}
	partitions := admin.PartitionsOf(topics)
	start, err := client.Offsets(ctx, admin.AtStart, partitions)
	if err != nil {
		return err
	}
	end, err := client.Offsets(ctx, admin.AtEnd, partitions)
	if err != nil {
		return err
	}
	configs, err := client.TopicConfigs(ctx, names...)
	if err != nil {
		return err
	}
	if err := c.print(topicDescription(topics, start, end, configs)); err != nil {
		return err
	}
	failed := 0
	for _, t := range topics {
		if t.Err != nil {
			failed++
		}
	}
	if failed > 0 {
		return failure{failed, len(topics)}
	}
	return nil
}

// topicDescription lists the topics, then their partitions; start and end have the partitions' order.
func topicDescription(topics []admin.Topic, start, end []admin.PartitionOffset, configs []admin.Resource) *report {
	r := &report{}
	own := map[string]map[string]string{}
	for _, resource := range configs {
		own[resource.Name] = resource.Own()
	}
	list := r.list("topics", "name", "id", "partitions", "replication_factor", "internal", "configs", "error")
	for _, t := range topics {
		if t.Err != nil {
			_, code, _ := outcomeOf("", t.Err)
			list.add(t.Name, nil, nil, nil, nil, nil, code)
			continue
		}
		list.add(t.Name, admin.TopicID(t.ID), len(t.Partitions), t.ReplicationFactor(), t.Internal, own[t.Name], nil)
	}
	// Both lists of offsets were asked for in the order of the partitions.
	list = r.list("partitions", "topic", "partition", "leader", "epoch", "replicas", "isr", "start_offset", "end_offset", "error")
	i := 0
	for _, t := range topics {
		for _, p := range t.Partitions {
			_, code, _ := outcomeOf("", p.Err)
			list.add(t.Name, p.Number, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR, offsetOf(start[i]), offsetOf(end[i]), code)
			i++
		}
	}
	return r
}

// offsetOf is nothing where the offset is not known.
func offsetOf(o admin.PartitionOffset) any {
	if o.Err != nil || o.Offset < 0 {
		return nil
	}
	return o.Offset
}
