package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/perf"
)

// perfProduceFlags are the flags of barnabas perf produce.
type perfProduceFlags struct {
	sinkFlags
	load perf.Load
}

// Latency counts from when a record is handed to the client to its acknowledgement, the time that it waits there for a
// batch included. With --rate it counts from when the record was due: a stall of the broker shows as latency of the
// records that were due meanwhile, too. At full speed a sample of the records is timed.
func perfProduceCommand(c *common) *cobra.Command {
	var flags perfProduceFlags
	command := &cobra.Command{
		Use:               "produce TOPIC",
		Short:             "Write records as fast as they go, or at a rate, and tell the time to their acknowledgement",
		Args:              exactly(1, "one topic"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, args []string) error {
			return runPerfProduce(command.Context(), c, flags, args[0])
		},
	}
	f := command.Flags()
	f.Int64VarP(&flags.load.Records, "records", "n", 1_000_000, "how many records")
	f.IntVarP(&flags.load.Size, "size", "s", 100, "bytes of a value")
	f.Float64VarP(&flags.load.Rate, "rate", "r", 0, "records a second; 0 is as fast as they go")
	flags.sinkFlags.register(command)
	return command
}

func runPerfProduce(ctx context.Context, c *common, flags perfProduceFlags, topic string) error {
	if flags.load.Records < 1 || flags.load.Size < 0 || flags.load.Rate < 0 {
		return usageError{errors.New("--records must be positive, --size and --rate not negative")}
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
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	progress := c.progress()
	flags.load.Topic, flags.load.Intended, flags.load.Patience = topic, true, client.Timeout()
	flags.load.Each = func(m *perf.Measured) {
		progress.show("%d records, %.0f a second, p99 %.1f ms", m.Records, m.RecordsPerSecond(), m.Quantile(0.99))
	}
	measured, err := perf.Produce(ctx, flags.load, client.Kafka())
	progress.end()
	if err != nil {
		return client.Explain(err)
	}
	return c.print(producedReport(measured))
}

func producedReport(m *perf.Measured) *report {
	r := &report{}
	r.object("produced").set("records", m.Records).set("bytes", m.Bytes).set("seconds", rounded(m.Elapsed.Seconds())).
		set("records_per_second", rounded(m.RecordsPerSecond())).set("mb_per_second", rounded(m.MegabytesPerSecond())).
		set("latency_avg_ms", rounded(m.Mean())).set("latency_p50_ms", rounded(m.Quantile(0.5))).
		set("latency_p95_ms", rounded(m.Quantile(0.95))).set("latency_p99_ms", rounded(m.Quantile(0.99))).
		set("latency_p999_ms", rounded(m.Quantile(0.999))).set("latency_max_ms", rounded(m.Max())).
		set("latency_p9999_ms", rounded(m.Quantile(0.9999)))
	return r
}

// rounded keeps three decimals.
func rounded(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }
