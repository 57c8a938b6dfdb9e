package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// group is a command that only holds others.
//
// Cobra would answer an unknown subcommand with the help and status 0, which a script takes for success; noArgs
// makes it a usage error.
func group(name, short string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  noArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
}

func noArgs(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s does not know %q", command.CommandPath(), args[0])}
	}
	return nil
}

// atLeast demands arguments.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) < n {
			return usageError{fmt.Errorf("%s needs a %s", command.CommandPath(), what)}
		}
		return nil
	}
}

// exactly demands a number of arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s needs %s, got %d arguments", command.CommandPath(), what, len(args))}
		}
		return nil
	}
}
