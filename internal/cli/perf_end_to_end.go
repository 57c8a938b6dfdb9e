package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/perf"
)

// perfEndToEndFlags are the flags of barnabas perf end-to-end.
type perfEndToEndFlags struct {
	sinkFlags
	rate     float64
	size     int
	duration time.Duration
	warmup   time.Duration
}

// Both latencies count from when a record was due, so that a stall shows in those that were due meanwhile, too. How
// late the generator itself was is printed with them: what is not well above that says nothing about the broker.
func perfEndToEndCommand(c *common) *cobra.Command {
	var flags perfEndToEndFlags
	command := &cobra.Command{
		Use:               "end-to-end TOPIC",
		Short:             "Write records at a rate and tell the time to their acknowledgement and to a consumer",
		Args:              exactly(1, "one topic"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, args []string) error {
			return runPerfEndToEnd(command.Context(), c, flags, args[0])
		},
	}
	flags.register(command)
	f := command.Flags()
	f.Float64VarP(&flags.rate, "rate", "r", 1000, "records a second")
	f.IntVarP(&flags.size, "size", "s", 100, "bytes of a value, at least 8")
	f.DurationVarP(&flags.duration, "duration", "d", 10*time.Second, "how long to measure")
	f.DurationVar(&flags.warmup, "warmup", time.Second, "how long to send before that")
	f.Lookup("linger").DefValue = "0s"
	_ = f.Set("linger", "0s") // it is a duration
	return command
}

func runPerfEndToEnd(ctx context.Context, c *common, flags perfEndToEndFlags, topic string) error {
	stream := perf.Stream{
		Topic: topic, Rate: flags.rate, Size: flags.size,
		Records: int64(flags.duration.Seconds() * flags.rate), Warmup: int64(flags.warmup.Seconds() * flags.rate),
	}
	if stream.Size < 8 || stream.Rate <= 0 || stream.Records < 1 || stream.Warmup < 0 {
		return usageError{errors.New("--size must be at least 8, --rate and --duration positive, --warmup not negative")}
	}
	options, err := flags.options()
	if err != nil {
		return err
	}
	producer, err := c.connect(append(options, kgo.DefaultProduceTopic(topic))...)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := requireTopics(ctx, producer, topic); err != nil {
		return err
	}
	consumer, err := c.connect()
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	latencies, err := perf.EndToEnd(ctx, stream, producer.Kafka(), consumer.Kafka())
	if err != nil {
		return producer.Explain(err)
	}
	return c.print(endToEndReport(latencies))
}

func endToEndReport(l *perf.Latencies) *report {
	r := &report{}
	r.object("streamed").set("records", l.Acknowledged.Records).set("failed", l.Failed).set("lost", l.Lost).
		set("records_per_second", rounded(l.Acknowledged.RecordsPerSecond())).set("generator_late_max_ms", rounded(float64(l.Late.Microseconds())/1000))
	list := r.list("latencies", "until", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "p9999_ms", "max_ms")
	add := func(until string, m *perf.Measured) {
		list.add(until, rounded(m.Quantile(0.5)), rounded(m.Quantile(0.9)), rounded(m.Quantile(0.99)), rounded(m.Quantile(0.999)),
			rounded(m.Quantile(0.9999)), rounded(m.Max()))
	}
	add("acknowledged", &l.Acknowledged)
	add("received", &l.Received)
	return r
}
