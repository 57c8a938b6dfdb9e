package cluster

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// loadPartitions is how many partitions a loaded topic has.
const loadPartitions = 6

// Produce writes records of size bytes with acks=all, as fast as one idempotent client can, into six partitions.
func (s *Stage) Produce(ctx context.Context, size int, records int64) ([]Figure, error) {
	c := s.cluster
	topic, err := loadTopic(ctx, c)
	if err != nil {
		return nil, err
	}
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	before, err := c.Usage()
	if err != nil {
		return nil, err
	}
	m, err := perf.Produce(ctx, perf.Load{Topic: topic, Records: records, Size: size, Patience: patience}, client)
	if err != nil {
		return nil, err
	}
	after, err := c.Usage()
	if err != nil {
		return nil, err
	}
	gigabytes := float64(m.Bytes) / 1e9
	return []Figure{
		{"rate", "records/s", true, m.RecordsPerSecond()},
		{"throughput", "MB/s", true, 1000 * gigabytes / m.Elapsed.Seconds()},
		{"CPU of the brokers", "s/GB", false, (after.CPU - before.CPU) / gigabytes},
		{"peak memory of the brokers", "MB", false, float64(after.Peak) / 1e6},
	}, nil
}

// newClient is one with franz-go's defaults.
func newClient(c *servers.Cluster, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(c.Bootstrap()...), kgo.DisableClientMetrics(),
		kgo.AllowIdempotentProduceCancellation())...)
}

// loadTopic creates a topic and waits until it can be written to.
func loadTopic(ctx context.Context, c *servers.Cluster) (string, error) {
	s, err := NewStage(ctx, c)
	if err != nil {
		return "", err
	}
	defer s.Close()
	if _, err := s.Create(ctx, loadPartitions); err != nil {
		return "", err
	}
	return s.asker.topics[0], nil
}

// Latency writes rate records of 100 bytes a second with acks=all, each by itself, and reads them with a consumer. Times
// count from when a record was due. The first two seconds do not count.
func (s *Stage) Latency(ctx context.Context, rate float64, of time.Duration) ([]Figure, error) {
	c := s.cluster
	topic, err := loadTopic(ctx, c)
	if err != nil {
		return nil, err
	}
	producer, err := newClient(c, kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	consumer, err := newClient(c)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	before, err := c.Usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	l, err := perf.EndToEnd(ctx, perf.Stream{
		Topic: topic, Rate: rate, Size: 100, Records: int64(rate * of.Seconds()), Warmup: int64(2 * rate),
	}, producer, consumer)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(began)
	after, err := c.Usage()
	if err != nil {
		return nil, err
	}
	return []Figure{
		{"end to end, p50", "ms", false, l.Received.Quantile(.5)},
		{"end to end, p99", "ms", false, l.Received.Quantile(.99)},
		{"end to end, p99.9", "ms", false, l.Received.Quantile(.999)},
		{"CPU of the brokers", "% of a core", false, 100 * (after.CPU - before.CPU) / elapsed.Seconds()},
		{"records lost or failed", "", false, float64(l.Lost + l.Failed)},
	}, nil
}
