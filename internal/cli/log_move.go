package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// movePoll is how often a move that is waited for is looked at.
const movePoll = 500 * time.Millisecond

// logMoveFlags are the flags of barnabas log move.
type logMoveFlags struct {
	broker int32
	to     string
	wait   bool
}

// AlterReplicaLogDirs (KIP-113) to one broker, which answers when it has taken the order, not when the copy is there;
// --wait polls DescribeLogDirs until every partition is in the directory and is no copy any more. Replicas serve all
// the while. Where --broker is left out the cluster must have one broker only.
func logMoveCommand(c *common) *cobra.Command {
	var flags logMoveFlags
	command := &cobra.Command{
		Use:     "move TOPIC[:PARTITION,...]... --to DIR",
		Short:   "Move replicas of a broker into another of its log directories, while they are served",
		Example: `  barnabas log move orders:0,1 --to /data2 --wait`,
		Args:    atLeast(1, "topic"),
		RunE: func(command *cobra.Command, args []string) error {
			if flags.to == "" {
				return usageError{errors.New("--to says into which directory")}
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				return runLogMove(ctx, c, client, flags, args)
			})
		},
	}
	f := command.Flags()
	f.StringVar(&flags.to, "to", "", "the directory, as 'barnabas log dirs' shows it")
	f.Int32Var(&flags.broker, "broker", -1, "the broker whose replicas move (default: the only one)")
	f.BoolVar(&flags.wait, "wait", false, "wait until they have arrived")
	return command
}

func runLogMove(ctx context.Context, c *common, client *admin.Client, flags logMoveFlags, args []string) error {
	broker, err := chooseBroker(ctx, client, flags.broker)
	if err != nil {
		return err
	}
	partitions, err := choosePartitions(ctx, client, args)
	if err != nil {
		return err
	}
	results, err := client.MoveReplicas(ctx, broker, flags.to, partitions)
	if err != nil {
		return err
	}
	verb := "moving"
	if flags.wait && !slices.ContainsFunc(results, func(r admin.PartitionResult) bool { return r.Err != nil }) {
		if err := awaitMove(ctx, c, client, broker, flags.to, partitions); err != nil {
			return err
		}
		verb = "moved"
	}
	return c.printPartitionResults(verb, results)
}

// chooseBroker is the broker that was named, or the only one of the cluster.
func chooseBroker(ctx context.Context, client *admin.Client, given int32) (int32, error) {
	if given >= 0 {
		return given, nil
	}
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return 0, err
	}
	if len(cluster.Brokers) != 1 {
		return 0, usageError{fmt.Errorf("there are %d brokers: name one with --broker", len(cluster.Brokers))}
	}
	return cluster.Brokers[0].ID, nil
}

// awaitMove waits until the partitions are in the directory, and tells a person how many are.
func awaitMove(ctx context.Context, c *common, client *admin.Client, broker int32, dir string, partitions []admin.TopicPartition) error {
	progress := c.progress()
	defer progress.end()
	tick := time.NewTicker(movePoll)
	defer tick.Stop()
	for {
		dirs, err := client.LogDirs(ctx, []int32{broker}, nil)
		if err != nil {
			return err
		}
		arrived := 0
		for _, d := range dirs {
			for _, replica := range d.Replicas {
				if d.Path == dir && !replica.Future && slices.Contains(partitions, replica.TopicPartition) {
					arrived++
				}
			}
		}
		if arrived == len(partitions) {
			return nil
		}
		progress.show("%d of %d replicas moved", arrived, len(partitions))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
