package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// completionPatience is how long a shell waits for names: a person has pressed a key.
const completionPatience = time.Second

// completeWords lets shells complete the values of a flag.
func completeWords(command *cobra.Command, name string, words ...string) {
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc(name, complete); err != nil {
		invariant.Fail("cli: completion of --%s: %v", name, err)
	}
}

// completeNames lets shells complete arguments by names that the cluster knows. A cluster that does not
// answer at once completes nothing.
//
// Errors are not shown: they would be printed into the middle of the line that somebody is typing.
func completeNames(c *common, names func(context.Context, *admin.Client) ([]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		var found []string
		err := c.with(ctx, func(ctx context.Context, client *admin.Client) (err error) {
			found, err = names(ctx, client)
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTopics lets shells complete the names of topics.
func completeTopics(c *common) cobra.CompletionFunc {
	return completeNames(c, func(ctx context.Context, client *admin.Client) ([]string, error) {
		topics, err := client.Topics(ctx)
		var names []string
		for _, t := range topics {
			names = append(names, t.Name)
		}
		return names, err
	})
}

// completeGroups lets shells complete the names of groups.
func completeGroups(c *common) cobra.CompletionFunc {
	return completeNames(c, func(ctx context.Context, client *admin.Client) ([]string, error) {
		groups, err := client.Groups(ctx, admin.GroupFilter{})
		var names []string
		for _, g := range groups {
			names = append(names, g.Name)
		}
		return names, err
	})
}
