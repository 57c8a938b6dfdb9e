package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// logDirsFlags are the flags of barnabas log dirs.
type logDirsFlags struct {
	brokers  []int32
	topics   []string
	replicas bool
}

// DescribeLogDirs to every broker. SIZE is in bytes, of all segments; TOTAL and USABLE are those of the file
// system (KIP-827), nothing where the broker does not say. A replica on the move is listed twice, the copy with
// future set and the number of offsets that it is behind.
func logDirsCommand(c *common) *cobra.Command {
	var flags logDirsFlags
	command := &cobra.Command{
		Use:   "dirs",
		Short: "Show the log directories of the brokers, with --replicas what is in them",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				return runLogDirs(ctx, c, client, flags)
			})
		},
	}
	f := command.Flags()
	f.Int32SliceVar(&flags.brokers, "broker", nil, "only these brokers")
	f.StringSliceVar(&flags.topics, "topic", nil, "only replicas of these topics")
	f.BoolVar(&flags.replicas, "replicas", false, "list the replicas")
	return command
}

func runLogDirs(ctx context.Context, c *common, client *admin.Client, flags logDirsFlags) error {
	var topics []admin.Topic
	if len(flags.topics) > 0 {
		var err error
		if topics, err = client.Topics(ctx, flags.topics...); err != nil {
			return err
		}
		if err := missingTopic(topics); err != nil {
			return err
		}
	}
	dirs, err := client.LogDirs(ctx, flags.brokers, topics)
	if err != nil {
		return err
	}
	return c.print(logDirs(dirs, flags.replicas))
}

func logDirs(dirs []admin.LogDir, replicas bool) *report {
	r := &report{}
	list := r.list("dirs", "broker", "dir", "replicas", "size", "total", "usable", "error")
	for _, d := range dirs {
		_, code, _ := outcomeOf("", d.Err)
		list.add(d.Broker, d.Path, len(d.Replicas), d.Size(), known(d.Total), known(d.Usable), code)
	}
	if !replicas {
		return r
	}
	list = r.list("replicas", "broker", "topic", "partition", "size", "lag", "future", "dir")
	for _, d := range dirs {
		for _, replica := range d.Replicas {
			list.add(d.Broker, replica.Topic, replica.Partition, replica.Size, replica.OffsetLag, replica.Future, d.Path)
		}
	}
	return r
}
