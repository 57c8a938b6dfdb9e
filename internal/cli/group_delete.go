package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// DeleteGroups, or OffsetDelete with --topic, to the coordinators. A group with members is refused
// (NON_EMPTY_GROUP), as are offsets of a topic that a member subscribes to (GROUP_SUBSCRIBED_TO_TOPIC). A group
// that does not exist is an error, so that a second run exits with 1.
func groupDeleteCommand(c *common) *cobra.Command {
	var topics []string
	command := &cobra.Command{
		Use:               "delete GROUP...",
		Short:             "Delete groups that have no members, or with --topic only their offsets of a topic",
		Args:              atLeast(1, "group"),
		ValidArgsFunction: completeGroups(c),
		RunE: func(command *cobra.Command, names []string) error {
			if len(topics) > 0 && len(names) != 1 {
				return usageError{errors.New("--topic goes with one group")}
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				if len(topics) > 0 {
					return deleteOffsets(ctx, c, client, names[0], topics)
				}
				results, err := client.DeleteGroups(ctx, names)
				if err != nil {
					return err
				}
				return c.printResults("groups", "deleted", results)
			})
		},
	}
	command.Flags().StringArrayVar(&topics, "topic", nil, "forget only the offsets of this topic, or of some of its "+
		"partitions as topic:0,1; may be repeated")
	return command
}

func deleteOffsets(ctx context.Context, c *common, client *admin.Client, group string, topics []string) error {
	partitions, err := choosePartitions(ctx, client, topics)
	if err != nil {
		return err
	}
	results, err := client.DeleteOffsets(ctx, group, partitions)
	if err != nil {
		return fmt.Errorf("group %s: %w", group, err)
	}
	return c.printPartitionResults("offset deleted", results)
}
