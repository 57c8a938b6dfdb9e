package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// ListGroups to every broker, since each knows only the groups that it coordinates. The filters go with the
// request (versions 4 and 5); groups without members that keep offsets only are listed with an empty protocol.
func groupListCommand(c *common) *cobra.Command {
	var filter admin.GroupFilter
	command := &cobra.Command{
		Use:   "list",
		Short: "List the groups",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				groups, err := client.Groups(ctx, filter)
				if err != nil {
					return err
				}
				return c.print(groupList(groups))
			})
		},
	}
	command.Flags().StringSliceVar(&filter.States, "state", nil, "only groups in these states, such as Stable,Empty")
	command.Flags().StringSliceVar(&filter.Types, "type", nil, "only groups of these types, such as classic,consumer")
	return command
}

func groupList(groups []admin.GroupListing) *report {
	r := &report{}
	list := r.list("groups", "group", "type", "protocol", "state", "coordinator")
	for _, g := range groups {
		list.add(g.Name, orNothing(g.Type), orNothing(g.ProtocolType), orNothing(g.State), g.Coordinator)
	}
	return r
}

// orNothing is a text, or nothing where it is empty.
func orNothing(text string) any {
	if text == "" {
		return nil
	}
	return text
}
