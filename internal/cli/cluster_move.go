package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// clusterMoveFlags are the flags of barnabas cluster move.
type clusterMoveFlags struct {
	movesFlags
	from, to []int32
}

// Replicas that lie on brokers of --to stay there. With --from only those on its brokers move.
func clusterMoveCommand(c *common) *cobra.Command {
	var flags clusterMoveFlags
	command := &cobra.Command{
		Use:   "move TOPIC[:PARTITION,...]... --to BROKER,...",
		Short: "Move partitions onto some brokers; shows the plan first",
		Long: "Move the replicas of topics, or of some of their partitions, onto some brokers, or only those on the brokers of --from." +
			movesHelp,
		Example: `  barnabas cluster move orders --to 4,5,6 --throttle 50000000
  barnabas cluster move orders:0,1 --from 1 --to 4`,
		Args:              atLeast(1, "topic"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, args []string) error {
			if len(flags.to) == 0 {
				return usageError{errors.New("--to says onto which brokers")}
			}
			if err := flags.check(); err != nil {
				return err
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				partitions, err := choosePartitions(ctx, client, args)
				if err != nil {
					return err
				}
				return mover{common: c, client: client, flags: flags.movesFlags, fill: flags.plan(partitions)}.move(ctx)
			})
		},
	}
	command.Flags().Int32SliceVar(&flags.to, "to", nil, "the brokers that may get replicas")
	command.Flags().Int32SliceVar(&flags.from, "from", nil, "move only replicas on these brokers (default: on all that --to does not name)")
	flags.add(command)
	return command
}

func (f *clusterMoveFlags) plan(partitions []admin.TopicPartition) planner {
	return func(l *admin.Layout, plan *balance.Cluster) (string, error) {
		for _, id := range f.to {
			if !l.Alive(id) {
				return "", fmt.Errorf("there is no broker %d that runs", id)
			}
		}
		receives := func(id protocol.BrokerID) bool { return slices.Contains(f.to, int32(id)) }
		leaves := func(id protocol.BrokerID) bool {
			return !receives(id) && (len(f.from) == 0 || slices.Contains(f.from, int32(id)))
		}
		return "", plan.Evacuate(among(partitions), leaves, receives)
	}
}

// among reports whether a partition is in a list.
func among(partitions []admin.TopicPartition) func(protocol.TopicPartition) bool {
	set := map[admin.TopicPartition]bool{}
	for _, at := range partitions {
		set[at] = true
	}
	return func(tp protocol.TopicPartition) bool {
		return set[admin.TopicPartition{Topic: tp.Topic, Partition: tp.Partition}]
	}
}
