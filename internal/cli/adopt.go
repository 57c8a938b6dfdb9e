package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/adopt"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// adoptFlags are the flags of barnabas adopt.
type adoptFlags struct {
	yes, allowMissing         bool
	tree, configs, properties string
}

// It never connects to anything: it reads and writes directories, whose locks it holds from the plan to the
// end, so that neither Kafka nor a broker can start between what was shown and what is done.
//
//	without --yes, no terminal      the plan; exit 0, nothing changed
//	without --yes, a terminal       the plan and a question; anything but y or yes changes nothing
//	--yes                           carries the plan out and prints what was done
//	adopted before                  says so; exit 0
//
// It may be repeated: what a run that was cut off has left is finished by the next.
func adoptCommand(c *common) *cobra.Command {
	var flags adoptFlags
	command := &cobra.Command{
		Use:   "adopt DIR...",
		Short: "Take over the log directories of a Kafka broker; shows the plan first",
		Long: `Take over the log directories of a single broker of Apache Kafka, 3.9 with ZooKeeper or 4.4 with KRaft.

The broker must be stopped. Name all directories of its log.dirs. Nothing of Kafka's files is changed; what the
old cluster knew of topics is written into the built-in store beside them, and 'barnabas start' serves them.
Without --yes it asks on a terminal, and only shows the plan elsewhere.`,
		Example: `  barnabas adopt /var/lib/kafka/data --server-properties /etc/kafka/server.properties
  barnabas adopt /var/lib/kafka/data --zookeeper-tree tree.jsonl --yes`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 && flags.properties == "" {
				return usageError{fmt.Errorf("%s needs a directory", command.CommandPath())}
			}
			return nil
		},
		RunE: func(command *cobra.Command, dirs []string) error { return runAdopt(command.Context(), c, flags, dirs) },
	}
	f := command.Flags()
	f.BoolVar(&flags.yes, "yes", false, "carry the plan out without asking")
	f.StringVar(&flags.tree, "zookeeper-tree", "", "dump of the ZooKeeper tree, one znode a line in JSON")
	f.StringVar(&flags.configs, "configs", "", "what 'kafka-configs --describe' printed of topics and brokers")
	f.StringVar(&flags.properties, "server-properties", "", "the old broker's server.properties, for its defaults (and its log.dirs)")
	f.BoolVar(&flags.allowMissing, "allow-missing", false, "adopt although partitions are in none of the directories")
	return command
}

func runAdopt(ctx context.Context, c *common, flags adoptFlags, dirs []string) (err error) {
	line := c.progress()
	adoption, err := adopt.Open(ctx, adopt.Options{
		Dirs: dirs, ZooKeeperTree: flags.tree, Configs: flags.configs, ServerProperties: flags.properties,
		AllowMissing: flags.allowMissing, Logger: newLogger(c.err, "text", "warn"),
		Progress: func(done, of int) { line.show("looking at partitions: %d of %d", done, of) },
	})
	line.end()
	if err != nil {
		return err
	}
	defer func() {
		if closed := adoption.Close(); err == nil {
			err = closed
		}
	}()
	plan := adoption.Plan()
	switch {
	case plan.Done:
		return c.printAdoption(plan, "adopted before")
	case !flags.yes && !(c.format == formatText && c.interactive()):
		if err := c.printAdoption(plan, "planned"); err != nil {
			return err
		}
		return c.nothingChanged()
	case !flags.yes:
		if err := c.printAdoption(plan, "planned"); err != nil {
			return err
		}
		if !c.agree("Carry this out?") {
			return c.nothingChanged()
		}
	}
	if err := adoption.CarryOut(ctx); err != nil {
		return fmt.Errorf("%w (nothing is lost: run the command again to finish)", err)
	}
	if !flags.yes {
		_, err = fmt.Fprintf(c.out, "Adopted. Now run: %s\n", plan.Start)
		return err
	}
	return c.printAdoption(plan, "adopted")
}

// nothingChanged says so to people.
func (c *common) nothingChanged() error {
	if c.format == formatText {
		fmt.Fprintln(c.err, "Nothing has been changed: add --yes to do it.")
	}
	return nil
}

// interactive reports whether a person can be asked.
func (c *common) interactive() bool {
	in, ok := c.in.(*os.File)
	return ok && isTerminal(in) && isTerminal(c.out)
}

// agree asks a question that is answered with yes or no, and means no where nothing is said.
func (c *common) agree(question string) bool {
	fmt.Fprintf(c.out, "\n%s [y/N] ", question)
	answer, err := bufio.NewReader(io.LimitReader(c.in, 100)).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(c.out)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// printAdoption reports a plan, or what became of it.
func (c *common) printAdoption(plan *adopt.Plan, result string) error {
	r := &report{}
	head := r.object("adoption").set("result", result).set("cluster", plan.Cluster).set("broker", int32(plan.Broker)).
		set("directories", plan.Dirs).set("metadata_directory", plan.MetadataDir)
	if plan.Source != "" {
		head.set("source", plan.Source).set("broker_defaults", plan.Defaults).set("broker_properties", plan.BrokerConfig)
	}
	if plan.ProducerIDs != protocol.NoProducerID {
		head.set("next_producer_id", int64(plan.ProducerIDs))
	}
	head.set("start", plan.Start)
	topics := r.list("topics", "topic", "id", "partitions", "was_replicated", "leader_epoch", "properties")
	for _, t := range plan.Topics {
		var replicated any
		if t.WasReplicated > 0 {
			replicated = t.WasReplicated
		}
		topics.add(t.Name, t.ID.String(), len(t.Partitions), replicated, int32(t.LeaderEpoch()), t.Config)
	}
	notices := r.list("notices", "subject", "names", "meaning")
	for _, n := range plan.Notices {
		names := n.Names
		if few := 5; c.format == formatText && len(names) > few {
			names = append(slices.Clone(names[:few]), fmt.Sprintf("and %d more", len(names)-few))
		}
		notices.add(n.Subject, names, n.Meaning)
	}
	if len(plan.Topics) > 0 {
		back := r.list("going_back", "going_back_to_kafka")
		for _, line := range plan.GoingBack {
			back.add(line)
		}
	}
	return c.print(r)
}
