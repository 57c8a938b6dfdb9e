package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// produceFlags are the flags of barnabas produce.
type produceFlags struct {
	recordFlags
	sinkFlags
}

// Metadata first, so that a topic that does not exist is an error before any input is read, then Produce. With --acks
// all, which is the default, the producer is idempotent: retries neither lose nor repeat nor reorder. It ends with the
// first record that fails; those behind it are not sent. Exit 0 means that every record is acknowledged, as far
// as --acks asks for it.
//
// Running it again writes the records again.
func produceCommand(c *common) *cobra.Command {
	var flags produceFlags
	command := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write records from standard input",
		Long: `Write records from standard input, by default one a line.

With --key-separator the text before it is the key. With --input json each line is an object as
'barnabas consume -o json' prints it. With -f the layout is in the words of rpk and kcl, such as '%k %v\n'.`,
		Example: `  printf 'a:1\nb:2\n' | barnabas produce orders --key-separator :
  barnabas consume orders -e -o json | barnabas produce copy --input json`,
		Args:              exactly(1, "one topic"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, args []string) error {
			return runProduce(command.Context(), c, flags, args[0])
		},
	}
	flags.recordFlags.register(command)
	flags.sinkFlags.register(command)
	return command
}

func runProduce(ctx context.Context, c *common, flags produceFlags, topic string) error {
	next, err := flags.reader(c.in)
	if err != nil {
		return err
	}
	options, err := flags.options()
	if err != nil {
		return err
	}
	client, err := c.connect(append(options, kgo.DefaultProduceTopic(topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := requireTopics(ctx, client, topic); err != nil {
		return err
	}
	producer := client.NewProducer()
	began := time.Now()
	progress := c.progress()
	inputErr := sendAll(ctx, producer, topic, progress, next)
	progress.end()
	written, err := producer.Flush(ctx)
	if inputErr != nil {
		err = inputErr
	}
	failed, _ := producer.Failed()
	return c.printWritten(written, failed, time.Since(began), err)
}

// sendAll sends what the input has. It stops at the first record that failed: what comes behind it may
// depend on it.
func sendAll(
	ctx context.Context, producer *admin.Producer, topic string, progress *progress, next func() (*kgo.Record, error),
) error {
	for number := 1; ; number++ {
		record, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("record %d of the input: %w", number, err)
		}
		record.Topic = topic
		producer.Send(ctx, record)
		progress.show("%d records sent", number)
		if _, err := producer.Failed(); err != nil {
			return nil
		}
	}
}

// printWritten tells what was written; as text only to a person who waits.
func (c *common) printWritten(written []admin.Written, failed int64, took time.Duration, err error) error {
	r := &report{}
	list := r.list("partitions", "topic", "partition", "records", "first_offset", "last_offset")
	var records int64
	for _, w := range written {
		list.add(w.Topic, w.Partition, w.Records, w.FirstOffset, w.LastOffset)
		records += w.Records
	}
	_, code, message := outcomeOf("", err)
	r.object("total").set("records", records).set("failed", failed).set("error", code).set("message", message)
	if c.format != formatText {
		if printed := c.print(r); printed != nil {
			return printed
		}
	} else if err == nil && isTerminal(c.err) {
		fmt.Fprintf(c.err, "%d records written in %s\n", records, took.Round(time.Millisecond))
	}
	switch {
	case err != nil && c.format == formatJSON:
		return failure{int(max(failed, 1)), int(records + failed)}
	case err != nil && failed > 0:
		return fmt.Errorf("%d records written, %d failed: %w", records, failed, err)
	}
	return err
}

// requireTopics says which topic does not exist before anything else happens.
func requireTopics(ctx context.Context, client *admin.Client, names ...string) error {
	topics, err := client.Topics(ctx, names...)
	if err != nil {
		return err
	}
	return missingTopic(topics)
}

func missingTopic(topics []admin.Topic) error {
	for _, t := range topics {
		switch {
		case admin.CodeName(t.Err) == "UNKNOWN_TOPIC_OR_PARTITION":
			return fmt.Errorf("topic %s does not exist (barnabas topic create %[1]s): %w", t.Name, t.Err)
		case t.Err != nil:
			return fmt.Errorf("topic %s: %w", t.Name, t.Err)
		}
	}
	return nil
}
