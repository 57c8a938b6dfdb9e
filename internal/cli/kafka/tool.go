package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// kafkaVersion is the version of Kafka whose tools these are like, which scripts ask for.
const kafkaVersion = "4.4.0"

// Process is what a tool has of the process that it runs in.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	// Version is the program's version.
	Version string
	// Serve runs a broker as 'barnabas start' does with these arguments.
	Serve func(arguments []string) int
}

// tool is one of Kafka's tools.
//
//	bare set     run the tool by itself: its command line is of another kind (kafka-cluster, kafka-storage, …)
//	otherwise    parse → --version → --help or no arguments → run → fail
type tool struct {
	name    string
	summary string
	flags   []flag
	// run does the work. Its error goes through fail.
	run func(ctx context.Context, t *call) error
	// fail prints an error as the tool does and returns the exit status; nil stands for failPlainly.
	fail func(t *call, err error) int
	// helps says that help is what was asked for, not an error, where there are no arguments.
	helps bool
	// bare takes the arguments as they are, without flags.
	bare func(ctx context.Context, t *call, arguments []string) int
}

// call is one run of a tool.
type call struct {
	*Process
	*arguments
	tool *tool
}

// printf prints a line of a tool on standard output.
func (t *call) printf(format string, a ...any) { fmt.Fprintf(t.Out, format, a...) }

// usageError is a command line that makes no sense: it is told with the flags that there are.
type usageError struct{ message string }

// Error is the line above the flags.
func (e usageError) Error() string { return e.message }

// usagef makes a usageError.
func usagef(format string, a ...any) error { return usageError{fmt.Sprintf(format, a...)} }

// sentence is an error in the words of Kafka's tool.
type sentence string

// Error is the sentence as it is, without a prefix.
func (s sentence) Error() string { return string(s) }

func sentencef(format string, a ...any) error { return sentence(fmt.Sprintf(format, a...)) }

// silentError is a failure that has been told already.
type silentError struct{ status int }

// Error is never printed.
func (silentError) Error() string { return "failed" }

// tools are all tools by name.
func tools() []*tool {
	return []*tool{
		topicsTool(), consoleProducerTool(), consoleConsumerTool(), consumerGroupsTool(), getOffsetsTool(),
		deleteRecordsTool(), logDirsTool(), groupsTool(), apiVersionsTool(), clusterTool(),
		configsTool(), producerPerfTool(), consumerPerfTool(), dumpLogTool(), storageTool(), serverStartTool(),
		serverStopTool(),
	}
}

// Names are the names of all tools, without ".sh", sorted.
func Names() []string {
	var names []string
	for _, t := range tools() {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return names
}

// Known reports whether a program of this name is one of the tools.
func Known(name string) bool { return find(name) != nil }

// Links may end in .sh, as Kafka's scripts do, or in .exe.
func find(name string) *tool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".sh")
	for _, t := range tools() {
		if t.name == name {
			return t
		}
	}
	return nil
}

// Main runs the tool of a name and returns its exit status.
func Main(name string, given []string, p *Process) int {
	t := find(name)
	if t == nil {
		fmt.Fprintf(p.Err, "%s is none of Kafka's tools that there are here\n", name)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &call{Process: p, tool: t}
	if t.bare != nil {
		return t.bare(ctx, c, given)
	}
	var err error
	if c.arguments, err = parse(t.flags, given); err != nil {
		return c.failPlainly(err)
	}
	if c.has("version") {
		c.printf("%s\n", kafkaVersion)
		return 0
	}
	if t.helps && (len(given) == 0 || c.has("help")) {
		c.printf("%s\n", t.summary)
		printHelp(c.Out, t.flags)
		return 0
	}
	if len(given) == 0 || c.has("help") {
		return c.failPlainly(usageError{t.summary})
	}
	if err = t.run(ctx, c); err == nil {
		return 0
	}
	if t.fail == nil {
		return c.failPlainly(err)
	}
	return t.fail(c, err)
}

// failPlainly tells an error on standard error, and returns 1.
func (t *call) failPlainly(err error) int {
	var silent silentError
	if errors.As(err, &silent) {
		return silent.status
	}
	fmt.Fprintln(t.Err, err.Error())
	if errors.As(err, new(usageError)) {
		printHelp(t.Err, t.tool.flags)
	}
	return 1
}

// told passes on the errors that every tool tells alike.
func told(err error) bool {
	return errors.As(err, new(usageError)) || errors.As(err, new(silentError))
}
