package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// writing is a load that is written as fast as it goes.
type writing struct {
	records    int64
	size       int
	partitions int
	values     func(size int, seed uint64) func(int64) []byte
	options    []kgo.Opt
	writeback  bool // counts only what comes when the kernel has begun to write
	sides      []string
	perRecord  bool // tells records and CPU a record, not bytes and CPU a GB
	cpu, rate  []results.Goal
}

var withFloors = []string{results.Kafka, results.Barnabas, discard, floored}

func produceScenarios() []*scenario {
	idempotent := []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}
	compressed := func(codec kgo.CompressionCodec) writing {
		return writing{
			records: 1_000_000, size: 1 << 10, partitions: 6, values: perf.JSON,
			options: []kgo.Opt{kgo.ProducerBatchCompression(codec)}, sides: []string{results.Kafka, results.Barnabas},
			cpu: []results.Goal{results.AtMost(0.5, results.Kafka)},
		}
	}
	p1k := writing{
		records: 1_000_000, size: 1 << 10, partitions: 6, values: perf.Noise, options: idempotent, sides: withFloors,
		cpu:  []results.Goal{results.AtMost(0.45, results.Kafka), results.AtMost(1.3, floored)},
		rate: []results.Goal{results.AtLeast(1.8, results.Kafka), results.AtLeast(0.85, floored)},
	}
	above := p1k
	above.records, above.writeback = 3_000_000, true
	above.cpu = []results.Goal{results.AtMost(0.6, results.Kafka)}
	above.rate = nil
	above.sides = []string{results.Kafka, results.Barnabas, floored}
	return []*scenario{
		{"p1k", "produce 1 KiB, acks=all, idempotent, 6 partitions, as fast as it goes", true, p1k.run},
		{"p100", "produce 100 B, acks=1, 6 partitions, as fast as it goes", true, writing{
			records: 8_000_000, size: 100, partitions: 6, values: perf.Noise, options: acksOne(), sides: withFloors, perRecord: true,
			cpu:  []results.Goal{results.AtMost(0.5, results.Kafka)},
			rate: []results.Goal{results.AtLeast(1.2, results.Kafka), results.AtLeast(0.85, floored)},
		}.run},
		{"p1k-lz4", "produce 1 KiB of JSON in batches of lz4, acks=all, idempotent", true, compressed(kgo.Lz4Compression()).run},
		{"p1k-zstd", "produce 1 KiB of JSON in batches of zstd, acks=all, idempotent", true, compressed(kgo.ZstdCompression()).run},
		{"p1k-writeback", "as p1k, 3 GB behind twice as much as the kernel lets be dirty before it begins to write", false, above.run},
	}
}

// run measures the load on every side in turns.
func (w writing) run(c *comparison, s *scenario) error {
	return c.inTurns(w.sides, func(side string, server *servers.Server, round int) error {
		topic, err := c.newTopic(server, w.partitions, nil)
		if err != nil {
			return err
		}
		measured, k, err := w.write(c, server, topic, c.profiled(s, side, round))
		if err != nil {
			return err
		}
		if w.writeback && k.dirty < k.limit*3/4 { // where the kernel writes as fast as is produced, it stays about the threshold
			return fmt.Errorf("this is to be measured where the kernel writes, and that had nothing to do: %s", k.state())
		}
		c.add(s, side, round, k, throughput(measured, k, w.perRecord, w.cpu, w.rate)...)
		return c.dropTopic(server, topic)
	})
}

// write writes the load to a topic.
func (w writing) write(c *comparison, server *servers.Server, topic string, around func(func() error) error) (*perf.Measured, cost, error) {
	producer, err := client(server, w.options...)
	if err != nil {
		return nil, cost{}, err
	}
	defer producer.Close()
	if err := c.fillPageCache(); err != nil {
		return nil, cost{}, err
	}
	load := perf.Load{Topic: topic, Value: w.values(w.size, 0), Patience: patience}
	if w.writeback {
		load.Records = 2 * threshold() / int64(w.size)
		if _, err := perf.Produce(c.ctx, load, producer); err != nil {
			return nil, cost{}, err
		}
	}
	load.Records = c.size(w.records)
	var measured *perf.Measured
	k, err := c.measure(server, func() error {
		return around(func() (err error) {
			measured, err = perf.Produce(c.ctx, load, producer)
			return err
		})
	})
	if err == nil && measured.Records != load.Records {
		err = fmt.Errorf("%d of %d records were acknowledged", measured.Records, load.Records)
	}
	return measured, k, err
}

// throughput are the rate and the cost of what was moved. Megabytes have 1,000,000 bytes.
func throughput(m *perf.Measured, k cost, perRecord bool, cpu, rate []results.Goal) []measure {
	var all []measure
	if perRecord {
		all = []measure{
			{name: "broker CPU", unit: "µs/record", value: k.cpu * 1e6 / float64(m.Records), goals: cpu},
			{name: "rate", unit: "records/s", more: true, value: m.RecordsPerSecond(), goals: rate},
		}
	} else {
		all = []measure{
			{name: "broker CPU", unit: "s/GB", value: k.cpu * 1e9 / float64(m.Bytes), goals: cpu},
			{name: "rate", unit: "MB/s", more: true, value: float64(m.Bytes) / 1e6 / m.Elapsed.Seconds(), goals: rate},
		}
	}
	return append(all, measure{
		name: "memory, peak", unit: "MB", value: float64(k.peak) / 1e6, goals: []results.Goal{results.AtMost(170, "")},
	})
}
