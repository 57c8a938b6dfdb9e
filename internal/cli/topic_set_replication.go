package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/balance"
)

// New replicas go to racks that a partition does not use and to brokers that hold least; what is taken away is out of
// sync, on a rack that has another replica, or on the broker that holds most.
func topicSetReplicationCommand(c *common) *cobra.Command {
	var flags movesFlags
	command := &cobra.Command{
		Use:   "set-replication NAME REPLICAS",
		Short: "Give the partitions of a topic another number of replicas; shows the plan first",
		Long:  "Give the partitions of a topic another number of replicas, while it is used." + movesHelp,
		Example: `  barnabas topic set-replication orders 3 --yes
  barnabas topic set-replication orders 3 --throttle 50000000`,
		Args:              exactly(2, "a topic and a number of replicas"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, args []string) error {
			factor, err := strconv.Atoi(args[1])
			if err != nil || factor < 1 {
				return usageError{fmt.Errorf("%q is no number of replicas", args[1])}
			}
			if err := flags.check(); err != nil {
				return err
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				partitions, err := choosePartitions(ctx, client, args[:1])
				if err != nil {
					return err
				}
				return mover{common: c, client: client, flags: flags, fill: resize(partitions, factor)}.move(ctx)
			})
		},
	}
	flags.add(command)
	return command
}

func resize(partitions []admin.TopicPartition, factor int) planner {
	return func(_ *admin.Layout, plan *balance.Cluster) (string, error) {
		err := plan.Resize(among(partitions), factor)
		if errors.As(err, new(*balance.RoomError)) {
			err = fmt.Errorf("%w: start more", err)
		}
		return "", err
	}
}
