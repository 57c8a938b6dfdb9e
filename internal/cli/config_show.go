package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/config"
)

// configShowFlags are the flags of barnabas config show.
type configShowFlags struct {
	configFlags
	all bool
}

// It is start without the start: the same files, variables, flags and checks. What start would refuse is told
// on standard error; the exit is 0 all the same, since values can be shown.
func configShowCommand(c *common) *cobra.Command {
	var flags configShowFlags
	command := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show what a broker would be configured with here, and where each value comes from",
		Long: `Show the effective values that 'barnabas start' would have with this file, this environment (KAFKA_...) and
these overrides, and where each comes from. Nothing is connected to. Secrets are not shown.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("show takes one file, got %d", len(args))}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runConfigShow(c, flags, args) },
	}
	flags.add(command)
	command.Flags().BoolVar(&flags.all, "all", false, "show what has its default too")
	return command
}

func runConfigShow(c *common, flags configShowFlags, args []string) error {
	loaded, warnings, err := flags.load(args)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(c.err, "barnabas: %s: %s\n", w.Key, w.Message)
	}
	for _, err := range loaded.Unsupported() {
		fmt.Fprintf(c.err, "barnabas: a start would stop: %v\n", err)
	}
	return c.print(configSettings(loaded.Values(), flags.all))
}

// configSettings lists settings, those with their default only where all are asked for.
func configSettings(settings []config.Setting, all bool) *report {
	r := &report{}
	list := r.list("configs", "name", "value", "origin")
	for _, s := range settings {
		if !all && s.Origin == config.OriginDefault {
			continue
		}
		var value any = s.Value
		if s.Key.Sensitive() && s.Value == nil {
			value = "(hidden)"
		}
		list.add(s.Key.Name, value, s.Origin.String())
	}
	return r
}
