package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// The values of --format.
const (
	formatText = "text"
	formatTSV  = "tsv"
	formatJSON = "json"
)

const bootstrapVariable = "BARNABAS_BOOTSTRAP_SERVER"

// common are the flags of every command that talks to a cluster, and where commands read and write.
//
// One is made a run and shared by all commands; cobra fills the flags before RunE, and nothing changes them
// afterwards.
type common struct {
	*streams
	bootstrap string
	format    string
	timeout   time.Duration
}

// formatFlag adds --format.
func (c *common) formatFlag(command *cobra.Command) {
	command.PersistentFlags().StringVarP(&c.format, "format", "o", formatText, "text, tsv (no heading, for scripts) or "+
		"json (one object)")
	completeWords(command, "format", formatText, formatTSV, formatJSON)
}

// connectFlags adds the flags that say which cluster.
func (c *common) connectFlags(commands ...*cobra.Command) {
	for _, command := range commands {
		f := command.PersistentFlags()
		f.StringVarP(&c.bootstrap, "bootstrap-server", "b", "", "address of a broker, or several with commas "+
			"(default $"+bootstrapVariable+" or 127.0.0.1:9092)")
		f.DurationVar(&c.timeout, "timeout", admin.DefaultTimeout, "how long to wait for an answer")
	}
}

// check refuses values of the common flags that make no sense.
func (c *common) check() error {
	switch c.format {
	case formatText, formatTSV, formatJSON:
		return nil
	}
	return usageError{fmt.Errorf("--format %q is none of text, tsv, json", c.format)}
}

// addresses are the brokers to begin with.
//
// The flag beats the environment, which beats the local broker. The address only has to lead to some broker:
// the client goes on with the addresses that brokers advertise.
func (c *common) addresses() []string {
	given := c.bootstrap
	if given == "" {
		given = os.Getenv(bootstrapVariable)
	}
	if given == "" {
		given = "127.0.0.1:9092"
	}
	return strings.Split(given, ",")
}

// connect makes a client of the cluster that the flags name.
func (c *common) connect(options ...kgo.Opt) (*admin.Client, error) {
	client, err := admin.New(admin.Options{
		Bootstrap: c.addresses(), ClientID: "barnabas", Version: version, Timeout: c.timeout, Client: options,
	})
	if err != nil {
		return nil, usageError{err}
	}
	return client, nil
}

// with runs an operation on the cluster that the flags name.
//
// The client is new for each command and connects with its first request. Operations bound their requests by
// --timeout, retries included; ctx ends with the process.
func (c *common) with(ctx context.Context, run func(context.Context, *admin.Client) error) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	return run(ctx, client)
}

// print writes a report in the form that --format asks for.
func (c *common) print(r *report) error { return r.write(c.out, c.format) }

// failure says that a part of the work failed; what and why is in the report that has been printed.
type failure struct{ failed, of int }

// Error counts what failed; why has been printed with each.
func (f failure) Error() string { return fmt.Sprintf("%d of %d failed", f.failed, f.of) }

// printResults reports what became of each of several things.
//
//	NAME  RESULT  ERROR  MESSAGE
//
// RESULT is the verb, or "failed" with Kafka's code and sentence. Things are independent: one that failed keeps
// none of the others from being done, and running the command again is safe for those that were.
func (c *common) printResults(section, verb string, results []admin.Result) error {
	r := &report{}
	list := r.list(section, "name", "result", "error", "message")
	failed := 0
	for _, result := range results {
		outcome, code, message := outcomeOf(verb, result.Err)
		if result.Err != nil {
			failed++
		}
		list.add(result.Name, outcome, code, message)
	}
	if err := c.print(r); err != nil {
		return err
	}
	if failed > 0 {
		return failure{failed, len(results)}
	}
	return nil
}

// outcomeOf are the three columns that tell how something went: nil where there is nothing to say.
func outcomeOf(verb string, err error) (outcome string, code, message any) {
	if err == nil {
		return verb, nil, nil
	}
	if name := admin.CodeName(err); name != "" {
		code = name
	}
	return "failed", code, admin.Message(err)
}

// reportError tells a failed command's error: in JSON on standard output, so that the command's output is
// one object whatever happens, else on standard error. What sums up a report is not told again in JSON.
func (c *common) reportError(err error) {
	printed := errors.As(err, new(failure)) || errors.As(err, new(unhealthy)) || errors.As(err, new(cannotStop))
	switch {
	case c.format != formatJSON:
		fmt.Fprintf(c.err, "barnabas: %v\n", err)
	case !printed:
		r := &report{}
		_, code, message := outcomeOf("", err)
		r.object("error").set("code", code).set("message", message)
		_ = r.write(c.out, formatJSON) // the error itself is told all the same
	}
}
