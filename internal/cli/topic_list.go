package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// One Metadata request for all topics; those that the user may not describe are not in the answer.
func topicListCommand(c *common) *cobra.Command {
	var internal bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the topics",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				topics, err := client.Topics(ctx)
				if err != nil {
					return err
				}
				return c.print(topicList(topics, internal))
			})
		},
	}
	command.Flags().BoolVar(&internal, "internal", false, "list the internal topics too")
	return command
}

func topicList(topics []admin.Topic, internal bool) *report {
	r := &report{}
	list := r.list("topics", "name", "partitions", "replication_factor", "internal")
	for _, t := range topics {
		if internal || !t.Internal {
			list.add(t.Name, len(t.Partitions), t.ReplicationFactor(), t.Internal)
		}
	}
	return r
}
