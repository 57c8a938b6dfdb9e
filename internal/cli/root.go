package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a command line that makes no sense.
type usageError struct{ err error }

// Error is what is wrong, without advice.
func (e usageError) Error() string { return e.err.Error() }

// Unwrap gives the cause to errors.As.
func (e usageError) Unwrap() error { return e.err }

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the command line arguments, the program's name first, and returns the exit code. Under the name
// of one of Kafka's tools it is that tool.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	s := &streams{in: in, out: out, err: errs}
	if name, rest, ok := kafkaTool(args); ok {
		return runKafkaTool(s, name, rest)
	}
	return runCommand(&common{streams: s, format: formatText}, args[1:])
}

// runCommand runs one of our own commands.
//
// The three codes are the whole contract with scripts: 2 means that nothing was sent, so that a caller may tell
// its own mistake from one of the cluster. A command that did a part of its work returns 1 with a report that
// names each thing and its outcome; nothing is rolled back.
func runCommand(c *common, args []string) int {
	root := newRoot(c)
	root.SetArgs(args)
	err := root.Execute()
	switch {
	case err == nil:
		return exitOK
	case isUsage(err):
		fmt.Fprintf(c.err, "barnabas: %v\nSee 'barnabas --help'.\n", err)
		return exitUsage
	}
	c.reportError(err)
	return exitFailed
}

// isUsage tells a wrong command line. Cobra has no type for an unknown command, only for what it calls.
func isUsage(err error) bool {
	return errors.As(err, new(usageError)) || strings.HasPrefix(err.Error(), "unknown command ") ||
		strings.HasPrefix(err.Error(), "required flag(s) ")
}

// Cobra's own printing is silenced: errors are told once, by reportError, in the form that --format asks for.
func newRoot(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:               "barnabas",
		Short:             "A distributed commit log that speaks Apache Kafka's protocol",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return c.check() },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	c.formatFlag(root)
	clients := []*cobra.Command{topicCommand(c), produceCommand(c), consumeCommand(c), groupCommand(c), clusterCommand(c)}
	c.connectFlags(clients...)
	root.AddCommand(clients...)
	root.AddCommand(configCommand(c), logCommand(c), perfCommand(c), linkCommand(c), adoptCommand(c))
	root.AddCommand(startCommand(c.streams), devCommand(c.streams), versionCommand(c), doctorCommand(c), healthCommand(c))
	return root
}
