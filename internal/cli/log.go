package cli

import "github.com/spf13/cobra"

func logCommand(c *common) *cobra.Command {
	command := group("log", "Look into segment files and log directories, and move replicas between these")
	remote := []*cobra.Command{logDirsCommand(c), logMoveCommand(c)}
	c.connectFlags(remote...)
	command.AddCommand(remote...)
	command.AddCommand(logDumpCommand(c))
	return command
}
