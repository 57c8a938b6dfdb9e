package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/balance"
)

// It moves as few replicas as make all brokers hold the same number, give or take one, keeps every partition on as many
// racks as it is on, and puts those on more that can be. Leaders are evened by changing the order of replicas, which
// copies nothing, and first replicas that do not lead, as after restarts, are elected. A second run finds nothing to do.
func clusterRebalanceCommand(c *common) *cobra.Command {
	var flags movesFlags
	command := &cobra.Command{
		Use:   "rebalance",
		Short: "Spread replicas and leaders evenly over all brokers, as after one has joined; shows the plan first",
		Long:  "Spread replicas and leaders evenly over brokers and racks with as few moves as possible." + movesHelp,
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				spread := func(_ *admin.Layout, plan *balance.Cluster) (string, error) {
					plan.Spread()
					return "", nil
				}
				return mover{common: c, client: client, flags: flags, fill: spread, elects: true}.move(ctx)
			})
		},
	}
	flags.add(command)
	return command
}
