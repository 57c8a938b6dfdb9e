package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// DescribeConfigs with synonyms. For a broker the request goes to that very broker, which alone knows its file
// and its environment. Values of secrets are never sent.
func configDescribeCommand(c *common) *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "describe topic|broker|broker-default|group [NAME]",
		Short: "Show the properties of a resource: what was set for it, with --all everything",
		Example: `  barnabas config describe topic orders
  barnabas config describe broker 1 --all`,
		Args:      atLeast(1, "type of resource"),
		ValidArgs: resourceTypes,
		RunE: func(command *cobra.Command, args []string) error {
			kind, name, err := parseResource(args)
			if err != nil {
				return err
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				resources, err := client.Configs(ctx, kind, name)
				if err != nil {
					return err
				}
				if err := resources[0].Err; err != nil {
					return fmt.Errorf("%s %s: %w", args[0], name, err)
				}
				return c.print(configDescription(resources[0], all))
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, "show every property with its effective value")
	return command
}

func configDescription(resource admin.Resource, all bool) *report {
	r := &report{}
	list := r.list("configs", "name", "value", "source", "read_only", "sensitive")
	own := resource.Own()
	for _, e := range resource.Entries {
		if _, set := own[e.Name]; all || set {
			list.add(e.Name, e.Value, admin.SourceName(e.Source), e.ReadOnly, e.Sensitive)
		}
	}
	return r
}
