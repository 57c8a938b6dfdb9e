package cli

import "github.com/spf13/cobra"

func topicCommand(c *common) *cobra.Command {
	command := group("topic", "List, describe, create, alter and delete topics")
	command.AddCommand(topicListCommand(c), topicDescribeCommand(c), topicCreateCommand(c),
		topicAlterCommand(c), topicSetReplicationCommand(c), topicDeleteCommand(c))
	return command
}
