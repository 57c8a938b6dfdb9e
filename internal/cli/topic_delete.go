package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// One DeleteTopics for all names. A topic that does not exist is an error, so that a second run exits with 1.
// Files are gone some time after the answer (file.delete.delay.ms).
func topicDeleteCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME...",
		Short:             "Delete topics with all their records",
		Args:              atLeast(1, "name"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, names []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				results, err := client.DeleteTopics(ctx, names)
				if err != nil {
					return err
				}
				return c.printResults("topics", "deleted", results)
			})
		},
	}
}
