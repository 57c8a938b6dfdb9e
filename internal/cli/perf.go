package cli

import "github.com/spf13/cobra"

func perfCommand(c *common) *cobra.Command {
	command := group("perf", "Measure how fast records are written and read")
	clients := []*cobra.Command{perfProduceCommand(c), perfConsumeCommand(c), perfEndToEndCommand(c)}
	c.connectFlags(clients...)
	command.AddCommand(clients...)
	return command
}
