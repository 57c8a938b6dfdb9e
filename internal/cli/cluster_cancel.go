package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// AlterPartitionReassignments without replicas, which takes each partition back to what it had before, and the end of
// the throttles. What has ended by then, or is about to, stays where it is.
func clusterCancelCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:               "cancel [TOPIC[:PARTITION,...]...]",
		Short:             "Take back the moves that are under way, or those of some partitions",
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, args []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				return runClusterCancel(ctx, c, client, args)
			})
		},
	}
}

func runClusterCancel(ctx context.Context, c *common, client *admin.Client, args []string) error {
	ongoing, err := client.Reassignments(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		partitions, err := choosePartitions(ctx, client, args)
		if err != nil {
			return err
		}
		ongoing = slices.DeleteFunc(ongoing, func(o admin.Ongoing) bool { return !slices.Contains(partitions, o.TopicPartition) })
	}
	var back []admin.Reassignment
	for _, o := range ongoing {
		back = append(back, admin.Reassignment{TopicPartition: o.TopicPartition})
	}
	var results []admin.PartitionResult
	if len(back) > 0 {
		if results, err = client.Reassign(ctx, back); err != nil {
			return err
		}
	}
	ending, err := client.AwaitEnds(ctx, partitionsOf(results))
	if err != nil {
		return err
	}
	if err := client.Unthrottle(ctx); err != nil {
		return err
	}
	if err := c.printPartitionResults("taken back", results); err != nil || len(ending) == 0 {
		return err
	}
	return fmt.Errorf("the throttles stay until %d moves have ended, the first is %s-%d: give the command again then", len(ending), ending[0].Topic, ending[0].Partition)
}

func partitionsOf(results []admin.PartitionResult) []admin.TopicPartition {
	var all []admin.TopicPartition
	for _, r := range results {
		all = append(all, r.TopicPartition)
	}
	return all
}
