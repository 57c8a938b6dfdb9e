package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// groupResetFlags are the flags of barnabas group reset.
type groupResetFlags struct {
	to, toGroup string
	shift       int64
	topics      []string
	execute     bool
}

// It asks, in this order: DescribeGroups (nobody may be in the group), OffsetFetch, Metadata and ListOffsets
// for what the flags name, and with --execute one OffsetCommit as a client that is no member (generation -1).
//
//	GROUP  TOPIC  PARTITION  COMMITTED  NEW  RESULT  ERROR  MESSAGE
//
// A reset to a place may be repeated; one by --shift moves again each time. A member that joins between the
// question and the commit makes the broker refuse it, and nothing is changed. Groups that do not exist yet are
// made by the commit.
func groupResetCommand(c *common) *cobra.Command {
	var flags groupResetFlags
	command := &cobra.Command{
		Use:   "reset GROUP",
		Short: "Set the offsets of a group; shows the plan unless --execute is given",
		Example: `  barnabas group reset billing --to -2h
  barnabas group reset billing --to start --topic orders:0,1 --execute`,
		Args:              exactly(1, "one group"),
		ValidArgsFunction: completeGroups(c),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.check(command.Flags().Changed("shift")); err != nil {
				return err
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				return runGroupReset(ctx, c, client, flags, args[0])
			})
		},
	}
	f := command.Flags()
	f.StringVar(&flags.to, "to", "", "start, end, an offset (negative: before the end) or a time (2026-01-31, @ms, -90m)")
	f.Int64Var(&flags.shift, "shift", 0, "move by so many offsets, negative for back")
	f.StringVar(&flags.toGroup, "to-group", "", "the offsets of another group")
	f.StringArrayVar(&flags.topics, "topic", nil, "only this topic, or some of its partitions as topic:0,1; may be "+
		"repeated (default: all that the group has offsets of)")
	f.BoolVar(&flags.execute, "execute", false, "do it")
	return command
}

func (f *groupResetFlags) check(shifted bool) error {
	given := 0
	for _, set := range []bool{f.to != "", f.toGroup != "", shifted} {
		if set {
			given++
		}
	}
	if given != 1 {
		return usageError{errors.New("give one of --to, --shift, --to-group")}
	}
	if f.to != "" {
		_, err := parsePoint("--to", f.to, time.Now())
		return err
	}
	return nil
}

func runGroupReset(ctx context.Context, c *common, client *admin.Client, flags groupResetFlags, name string) error {
	groups, err := client.DescribeGroups(ctx, name)
	if err != nil {
		return err
	}
	g := groups[0]
	if g.Err != nil && !noGroup(g) {
		return fmt.Errorf("group %s: %w", name, g.Err)
	}
	// The broker would refuse it too, but with a code that speaks of an unknown member.
	if len(g.Members) > 0 && flags.execute {
		return fmt.Errorf("group %s is %s with %d members, which would overwrite its offsets: stop "+
			"them first", name, g.State, len(g.Members))
	}
	plan, err := flags.plan(ctx, client, name)
	if err != nil {
		return err
	}
	if len(plan.partitions) == 0 {
		return fmt.Errorf("group %s has no offsets: name its topics with --topic", name)
	}
	var results []admin.PartitionResult
	if flags.execute {
		if results, err = client.Commit(ctx, name, plan.target); err != nil {
			return fmt.Errorf("group %s: %w", name, err)
		}
	}
	return c.printReset(name, plan, flags.execute, results)
}

// printReset reports the plan, or what became of it.
func (c *common) printReset(name string, plan *resetPlan, executed bool, results []admin.PartitionResult) error {
	outcomes := map[admin.TopicPartition]error{}
	for _, result := range results {
		outcomes[result.TopicPartition] = result.Err
	}
	r := &report{}
	list := r.list("partitions", "group", "topic", "partition", "committed", "new", "result", "error", "message")
	failed := 0
	for _, at := range plan.partitions {
		verb := "planned"
		if executed {
			verb = "reset"
		}
		outcome, code, message := outcomeOf(verb, outcomes[at])
		if outcomes[at] != nil {
			failed++
		}
		list.add(name, at.Topic, at.Partition, known(plan.committedAt(at)), plan.target[at], outcome, code, message)
	}
	if err := c.print(r); err != nil {
		return err
	}
	if !executed && c.format == formatText {
		fmt.Fprintln(c.err, "Nothing has been changed: add --execute to do it.")
	}
	if failed > 0 {
		return failure{failed, len(plan.partitions)}
	}
	return nil
}
