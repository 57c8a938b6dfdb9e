package cli

import (
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

func groupCommand(c *common) *cobra.Command {
	command := group("group", "List and describe consumer groups with their lag, reset and delete offsets")
	command.AddCommand(groupListCommand(c), groupDescribeCommand(c), groupResetCommand(c), groupDeleteCommand(c))
	return command
}

// noGroup reports whether there is no such group, which brokers say in two ways.
//
// Up to version 5 of DescribeGroups a group that does not exist is Dead, from version 6 on it is an error
// (KIP-1043).
func noGroup(g admin.Group) bool {
	return g.State == "Dead" || admin.CodeName(g.Err) == "GROUP_ID_NOT_FOUND"
}
