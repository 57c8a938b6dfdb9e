package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// One IncrementalAlterConfigs (KIP-339) to the broker that the resource belongs to: properties that are not
// named stay. All changes are taken or none. Set and delete may be repeated; an append of a value that is
// there, or a subtraction of one that is not, changes nothing. --dry-run has the broker check, and answers as
// it would.
func configAlterCommand(c *common) *cobra.Command {
	var changes configChanges
	var dryRun bool
	command := &cobra.Command{
		Use:       "alter topic|broker|broker-default|group [NAME]",
		Short:     "Change the properties of a resource",
		Example:   "  barnabas config alter broker-default --set log.retention.ms=86400000",
		Args:      atLeast(1, "type of resource"),
		ValidArgs: resourceTypes,
		RunE: func(command *cobra.Command, args []string) error {
			kind, name, err := parseResource(args)
			if err != nil {
				return err
			}
			ops, err := changes.ops()
			if err != nil {
				return err
			}
			if len(ops) == 0 {
				return usageError{errors.New("there is nothing to change: give --set or --delete-config")}
			}
			verb := "altered"
			if dryRun {
				verb = "would be altered"
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				err := client.AlterConfigs(ctx, kind, name, ops, dryRun)
				return c.printResults("resources", verb, []admin.Result{{Name: args[len(args)-1], Err: err}})
			})
		},
	}
	changes.register(command.Flags(), "set", "s")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only say whether it would be taken")
	return command
}
