package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// topicAlterFlags are the flags of barnabas topic alter.
type topicAlterFlags struct {
	partitions int32
	changes    configChanges
	dryRun     bool
}

// For each topic IncrementalAlterConfigs, then CreatePartitions. --partitions is the number in all: a topic
// that has as many already is refused (INVALID_PARTITIONS), so that a second run exits with 1. Partitions are
// never taken away.
func topicAlterCommand(c *common) *cobra.Command {
	var flags topicAlterFlags
	command := &cobra.Command{
		Use:               "alter NAME...",
		Short:             "Change the properties of topics, or give them more partitions",
		Example:           "  barnabas topic alter orders --config retention.ms=3600000 --delete-config segment.bytes",
		Args:              atLeast(1, "name"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, names []string) error {
			return runTopicAlter(command.Context(), c, flags, names)
		},
	}
	f := command.Flags()
	f.Int32VarP(&flags.partitions, "partitions", "p", 0, "number of partitions in all; records with a key may go to "+
		"another one than before")
	flags.changes.register(f, "config", "c")
	f.BoolVar(&flags.dryRun, "dry-run", false, "only say whether the properties would be taken")
	return command
}

func runTopicAlter(ctx context.Context, c *common, flags topicAlterFlags, names []string) error {
	ops, err := flags.changes.ops()
	if err != nil {
		return err
	}
	switch {
	case len(ops) == 0 && flags.partitions == 0:
		return usageError{errors.New("there is nothing to change: give --partitions, --config or --delete-config")}
	case flags.dryRun && flags.partitions != 0:
		return usageError{errors.New("--dry-run does not work with --partitions")}
	}
	verb := "altered"
	if flags.dryRun {
		verb = "would be altered"
	}
	return c.with(ctx, func(ctx context.Context, client *admin.Client) error {
		results := make([]admin.Result, 0, len(names))
		for _, name := range names {
			results = append(results, admin.Result{Name: name, Err: alterTopic(ctx, client, name, flags, ops)})
		}
		return c.printResults("topics", verb, results)
	})
}

// alterTopic changes the properties first, since they are refused as a whole where one is wrong.
func alterTopic(ctx context.Context, client *admin.Client, name string, flags topicAlterFlags, ops []admin.ConfigOp) error {
	if len(ops) > 0 {
		if err := client.AlterConfigs(ctx, kmsg.ConfigResourceTypeTopic, name, ops, flags.dryRun); err != nil {
			return err
		}
	}
	if flags.partitions == 0 {
		return nil
	}
	results, err := client.CreatePartitions(ctx, flags.partitions, nil, []string{name})
	if err != nil {
		return err
	}
	return results[0].Err
}
