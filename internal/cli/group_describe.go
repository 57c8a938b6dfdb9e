package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// For each group: FindCoordinator, DescribeGroups (or ConsumerGroupDescribe for groups of KIP-848), OffsetFetch, and
// ListOffsets twice to the leaders of its partitions. Lag is the end less the committed offset, as Kafka's tool counts
// it: what retention has taken away meanwhile is in it, and start_offset shows how much that is. Members are
// printed even where a partition's leader does not answer; its row then has an error.
func groupDescribeCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:               "describe GROUP...",
		Short:             "Show the members of groups, their offsets and lag",
		Args:              atLeast(1, "group"),
		ValidArgsFunction: completeGroups(c),
		RunE: func(command *cobra.Command, names []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				return runGroupDescribe(ctx, c, client, names)
			})
		},
	}
}

func runGroupDescribe(ctx context.Context, c *common, client *admin.Client, names []string) error {
	groups, err := client.DescribeGroups(ctx, names...)
	if err != nil {
		return err
	}
	lags := make([][]admin.Lag, len(groups))
	failed := 0
	for i := range groups {
		switch {
		case noGroup(groups[i]) || groups[i].Err != nil:
			failed++
		default:
			if lags[i], groups[i].Err = client.Lag(ctx, groups[i]); groups[i].Err != nil {
				failed++
			}
		}
	}
	if err := c.print(groupDescription(groups, lags)); err != nil {
		return err
	}
	if failed > 0 {
		return failure{failed, len(groups)}
	}
	return nil
}

// groupDescription lists groups, then their members, then their partitions; lags has the groups' order.
func groupDescription(groups []admin.Group, lags [][]admin.Lag) *report {
	r := &report{}
	list := r.list("groups", "group", "type", "state", "assignor", "coordinator", "members", "lag", "error")
	for i, g := range groups {
		_, code, _ := outcomeOf("", g.Err)
		if g.State == "Dead" {
			code = "GROUP_ID_NOT_FOUND"
		}
		if code != nil {
			list.add(g.Name, nil, nil, nil, nil, nil, nil, code)
			continue
		}
		list.add(g.Name, g.Type, g.State, orNothing(g.Assignor), g.Coordinator.ID, len(g.Members), totalLag(lags[i]), nil)
	}
	members := r.list("members", "group", "member", "instance", "client", "host", "partitions")
	for _, g := range groups {
		for _, m := range g.Members {
			members.add(g.Name, m.ID, m.InstanceID, m.ClientID, m.Host, len(m.Assigned))
		}
	}
	partitions := r.list("partitions", "group", "topic", "partition", "committed", "start_offset", "end_offset", "lag", "member", "error")
	for i, g := range groups {
		for _, l := range lags[i] {
			_, code, _ := outcomeOf("", l.Err)
			var member any
			if l.Member != nil {
				member = l.Member.ID
			}
			partitions.add(g.Name, l.Topic, l.Partition, known(l.Committed), known(l.Start), known(l.End), known(l.Lag), member, code)
		}
	}
	return r
}

// known is nothing for the -1 that stands for it.
func known(offset int64) any {
	if offset < 0 {
		return nil
	}
	return offset
}

func totalLag(lags []admin.Lag) int64 {
	var total int64
	for _, l := range lags {
		total += max(l.Lag, 0)
	}
	return total
}
