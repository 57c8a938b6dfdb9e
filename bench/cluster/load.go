package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// loadPartitions is how many partitions a loaded topic has.
const loadPartitions = 6

// Produce writes records of size bytes with acks=all, as fast as one idempotent client can, into six new partitions.
func (s *Stage) Produce(ctx context.Context, size int, records int64) ([]Figure, error) {
	c := s.cluster
	topic, err := s.loadTopic(ctx)
	if err != nil {
		return nil, err
	}
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	before, err := usageFromHere(c)
	if err != nil {
		return nil, err
	}
	m, err := perf.Produce(ctx, perf.Load{Topic: topic, Records: records, Size: size, Patience: patience}, client)
	if err == nil && m.Records != records { // it ends early with ctx, which is no error there
		err = fmt.Errorf("%d of %d records were acknowledged", m.Records, records)
	}
	if err != nil {
		return nil, err
	}
	after, err := c.Usage()
	if err != nil {
		return nil, err
	}
	gigabytes := float64(m.Bytes) / 1e9
	return []Figure{
		{Name: produceRate, Unit: "records/s", More: true, Value: m.RecordsPerSecond()},
		{Name: "throughput", Unit: "MB/s", More: true, Value: 1000 * gigabytes / m.Elapsed.Seconds()},
		{Name: brokerCPU, Unit: "s/GB", Value: (after.CPU - before.CPU) / gigabytes},
		{Name: "peak memory of the brokers", Unit: "MB", Value: float64(after.Peak) / 1e6},
	}, nil
}

// newClient is one that compresses nothing, as those of the loads on one broker: franz-go's default is snappy.
func newClient(c *servers.Cluster, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(c.Bootstrap()...), kgo.DisableClientMetrics(),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.AllowIdempotentProduceCancellation())...)
}

// usageFromHere is what the brokers have taken until now; their peaks begin anew.
func usageFromHere(c *servers.Cluster) (servers.Usage, error) {
	for _, b := range c.Brokers {
		if err := b.ResetPeak(); err != nil {
			return servers.Usage{}, err
		}
	}
	return c.Usage()
}

// loadTopic creates the topic of a stage that has none, and waits until it can be written to.
func (s *Stage) loadTopic(ctx context.Context) (string, error) {
	if _, err := s.Create(ctx, loadPartitions); err != nil {
		return "", err
	}
	return s.asker.topics[0], nil
}

// Latency writes rate records of 100 bytes a second with acks=all, each by itself, and reads them with a consumer. Times
// count from when a record was due. The first two seconds do not count. A record that is refused or lost is an error.
func (s *Stage) Latency(ctx context.Context, rate float64, of time.Duration) ([]Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := s.cluster
	topic, err := s.loadTopic(ctx)
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
	if l.Lost != 0 { // those that were refused are an error already
		return nil, fmt.Errorf("of %d records that were acknowledged %d have come", l.Acknowledged.Records, l.Received.Records)
	}
	elapsed := time.Since(began)
	after, err := c.Usage()
	if err != nil {
		return nil, err
	}
	at := func(name string, q float64) Figure {
		return Figure{Name: name, Unit: "ms", Value: l.Received.Quantile(q)}
	}
	return []Figure{
		at(latencyP50, .5), at(latencyP99, .99), at("end to end, p99.9", .999),
		{Name: brokerCPU, Unit: "% of a core", Value: 100 * (after.CPU - before.CPU) / elapsed.Seconds()},
	}, nil
}
