package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// perfConsumeFlags are the flags of barnabas perf consume.
type perfConsumeFlags struct {
	records int64
}

// Bytes are those of keys and values, uncompressed and without the overhead of batches; a megabyte is 1,048,576 bytes,
// as in Kafka's tools. Time counts from before the first connection for fetching.
func perfConsumeCommand(c *common) *cobra.Command {
	var flags perfConsumeFlags
	command := &cobra.Command{
		Use:               "consume TOPIC...",
		Short:             "Read topics from their start to their present end and tell how fast that went",
		Args:              atLeast(1, "topic"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, topics []string) error {
			return runPerfConsume(command.Context(), c, flags, topics)
		},
	}
	command.Flags().Int64VarP(&flags.records, "records", "n", 0, "end after so many records; 0 reads all")
	return command
}

func runPerfConsume(ctx context.Context, c *common, flags perfConsumeFlags, topics []string) error {
	if flags.records < 0 {
		return usageError{errors.New("--records cannot be negative")}
	}
	client, err := c.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	reading := consumeFlags{from: "start", exit: true, uncommitted: true}
	ranges, _, err := reading.ranges(ctx, client, topics, time.Now())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	progress := c.progress()
	measured := &perf.Measured{}
	began := time.Now()
	err = c.read(ctx, reading, ranges, admin.Sink{
		Each: func(record *kgo.Record) error {
			measured.Records++
			measured.Bytes += int64(len(record.Key) + len(record.Value))
			if measured.Records == flags.records {
				return admin.ErrStop
			}
			return nil
		},
		Batch: func() error {
			measured.Elapsed = time.Since(began)
			progress.show("%d records, %.0f a second", measured.Records, measured.RecordsPerSecond())
			return nil
		},
	})
	progress.end()
	if err != nil {
		return err
	}
	return c.print(consumedReport(measured))
}

func consumedReport(m *perf.Measured) *report {
	r := &report{}
	r.object("consumed").set("records", m.Records).set("bytes", m.Bytes).set("seconds", rounded(m.Elapsed.Seconds())).
		set("records_per_second", rounded(m.RecordsPerSecond())).set("mb_per_second", rounded(m.MegabytesPerSecond()))
	return r
}
