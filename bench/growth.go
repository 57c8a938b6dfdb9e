package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// growthScenarios ask what a byte costs as there is more of something.
func growthScenarios() []*scenario {
	fsync := func(partitions int, goal float64) func(*comparison, *scenario) error {
		return func(c *comparison, s *scenario) error { return runFsync(c, s, partitions, goal) }
	}
	return []*scenario{
		{"partitions", "batches of 64 KiB to 1, 10, 100 and 1,000 partitions in turn, 4 connections, acks=1; the floor has as many files", false,
			func(c *comparison, s *scenario) error { return runGrowth(c, s, "partitions", []int{1, 10, 100, 1000}) }},
		{"connections", "batches of 64 KiB over 1, 10, 100 and 500 connections to 6 partitions, acks=1", false,
			func(c *comparison, s *scenario) error { return runGrowth(c, s, "connections", []int{1, 10, 100, 500}) }},
		{"log-size", "fetches of one batch of 16 KiB at random offsets of a partition of 16 MB and of 4 GB, one at a time", false, runLogSize},
		{"tail", "200 records a second of 16 KiB in one partition to 1, 10 and 100 consumers at its tail", false, runTail},
		{"fsync-1", "flush.messages=1, 64 producers of one record of 1 KiB a request, acks=all, one partition", false, fsync(1, 3)},
		{"fsync-64", "flush.messages=1, 64 producers of one record of 1 KiB a request, acks=all, 64 partitions", false, fsync(64, 1.1)},
	}
}

// runGrowth sends about 1 GB in each of several widths.
func runGrowth(c *comparison, s *scenario, of string, widths []int) error {
	for _, width := range widths {
		err := c.inTurns([]string{results.Kafka, results.Barnabas, floored}, func(side string, server *servers.Server, round int) error {
			load := requests{partitions: 6, connections: 4, inFlight: 2, batch: 64 << 10, record: 1 << 10, acks: 1, count: c.size(16_000)}
			if of == "partitions" {
				load.partitions = width
			} else {
				load.connections = width
			}
			m, k, err := c.sendRequests(server, load, nil)
			if err != nil {
				return err
			}
			c.add(s, side, round, k,
				measure{name: fmt.Sprintf("broker CPU, %d %s", width, of), unit: "s/GB", value: k.cpu * 1e9 / float64(m.Bytes), goals: []results.Goal{atMost(1.3, floored)}},
				measure{name: fmt.Sprintf("rate, %d %s", width, of), unit: "MB/s", more: true, value: float64(m.Bytes) / 1e6 / m.Elapsed.Seconds()})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sendRequests sends ready-made requests to a topic of its own.
func (c *comparison) sendRequests(server *servers.Server, load requests, configs map[string]*string) (*perf.Measured, cost, error) {
	topic, err := c.newTopic(server, load.partitions, configs)
	if err != nil {
		return nil, cost{}, err
	}
	load.topic = topic
	open, err := load.open(c.ctx, server)
	if err != nil {
		return nil, cost{}, err
	}
	defer open.close()
	if err := c.fillPageCache(); err != nil {
		return nil, cost{}, err
	}
	var m *perf.Measured
	k, err := c.measure(server, func() (err error) {
		m, err = open.send()
		return err
	})
	if err != nil {
		return nil, cost{}, err
	}
	return m, k, c.dropTopic(server, topic)
}

// fill sends a load that is not measured, and has it written.
func (c *comparison) fill(server *servers.Server, load requests) error {
	open, err := load.open(c.ctx, server)
	if err != nil {
		return err
	}
	defer open.close()
	if _, err := open.send(); err != nil {
		return err
	}
	return c.settle()
}

func runFsync(c *comparison, s *scenario, partitions int, goal float64) error {
	one := "1"
	return c.inTurns([]string{results.Kafka, results.Barnabas}, func(side string, server *servers.Server, round int) error {
		load := requests{partitions: partitions, connections: 64, inFlight: 1, batch: 1 << 10, record: 1 << 10, acks: -1, count: c.size(30_000)}
		m, k, err := c.sendRequests(server, load, map[string]*string{"flush.messages": &one})
		if err != nil {
			return err
		}
		c.add(s, side, round, k,
			measure{name: "rate", unit: "requests/s", more: true, value: m.RecordsPerSecond(), goals: []results.Goal{atLeast(goal, results.Kafka)}},
			measure{name: "request p50", unit: "ms", value: m.Quantile(0.5)},
			measure{name: "request p99", unit: "ms", value: m.Quantile(0.99)},
			measure{name: "broker CPU", unit: "µs/request", value: k.cpu * 1e6 / float64(m.Records)})
		return nil
	})
}

// runLogSize fetches at random.
func runLogSize(c *comparison, s *scenario) error {
	const batch = 16 << 10
	for _, batches := range []int64{16 << 20 / batch, max(100, int64(4e9*c.scale)/batch)} {
		topics := map[string]string{}
		err := c.inTurns([]string{results.Kafka, results.Barnabas, floored}, func(side string, server *servers.Server, round int) error {
			if topics[side] == "" {
				topic, err := c.newTopic(server, 1, nil)
				if err != nil {
					return err
				}
				topics[side] = topic
				fill := requests{topic: topic, partitions: 1, connections: 1, inFlight: 4, batch: batch, record: batch, acks: 1, count: batches}
				if err := c.fill(server, fill); err != nil {
					return err
				}
			}
			m, k, err := c.fetchAtRandom(server, topics[side], batches)
			if err != nil {
				return err
			}
			name := fmt.Sprintf(" in %d MB", batches*batch>>20)
			c.add(s, side, round, k,
				measure{name: "fetch p50" + name, unit: "µs", value: m.Quantile(0.5) * 1000},
				measure{name: "fetch p99" + name, unit: "µs", value: m.Quantile(0.99) * 1000},
				measure{name: "broker CPU" + name, unit: "µs/fetch", value: k.cpu * 1e6 / float64(m.Records), goals: []results.Goal{atMost(1.3, floored)}})
			return nil
		})
		for side, topic := range topics {
			if failed := c.dropTopic(c.sides[side], topic); err == nil {
				err = failed
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchAtRandom fetches 20,000 batches of one record each, one after another.
func (c *comparison) fetchAtRandom(server *servers.Server, topic string, records int64) (*perf.Measured, cost, error) {
	f, err := newFetcher(c.ctx, server, topic, 0, time.Second, 1)
	if err != nil {
		return nil, cost{}, err
	}
	defer f.conn.Close()
	m := &perf.Measured{}
	random := rand.New(rand.NewPCG(1, 2))
	k, err := c.measure(server, func() error {
		for range c.size(20_000) {
			offset := random.Int64N(records)
			began := time.Now()
			next, size, err := f.fetch(offset)
			if err != nil {
				return err
			}
			if next != offset+1 {
				return fmt.Errorf("a fetch at %d ended at %d", offset, next)
			}
			m.Add(time.Since(began), size)
		}
		return nil
	})
	return m, k, err
}

// runTail has more and more consumers read what one producer writes.
func runTail(c *comparison, s *scenario) error {
	for _, consumers := range []int{1, 10, 100} {
		err := c.inTurns([]string{results.Kafka, results.Barnabas}, func(side string, server *servers.Server, round int) error {
			topic, err := c.newTopic(server, 1, nil)
			if err != nil {
				return err
			}
			acknowledged, delivered, k, err := c.tail(server, topic, consumers)
			if err != nil {
				return err
			}
			name := fmt.Sprintf(", %d consumers", consumers)
			c.add(s, side, round, k,
				measure{name: "broker CPU" + name, unit: "s/GB delivered", value: k.cpu * 1e9 / float64(delivered)},
				measure{name: "acknowledged p50" + name, unit: "ms", value: acknowledged.Quantile(0.5)},
				measure{name: "acknowledged p99" + name, unit: "ms", value: acknowledged.Quantile(0.99)})
			return c.dropTopic(server, topic)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tail runs one round: a producer at a rate, and consumers that each read all of it.
func (c *comparison) tail(server *servers.Server, topic string, consumers int) (*perf.Measured, int64, cost, error) {
	const rate, size = 200, 16 << 10
	records := int64(c.duration(streamTime).Seconds() * rate)
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Minute)
	defer cancel()
	producer, err := client(server)
	if err != nil {
		return nil, 0, cost{}, err
	}
	defer producer.Close()
	var all sync.WaitGroup
	sizes, errs := make([]int64, consumers), make([]error, consumers)
	var acknowledged *perf.Measured
	k, err := c.measure(server, func() (err error) {
		for i := range consumers {
			all.Go(func() { sizes[i], errs[i] = follow(ctx, server, topic, records) })
		}
		acknowledged, err = perf.Produce(ctx, perf.Load{Topic: topic, Records: records, Size: size, Rate: rate, Intended: true, Patience: patience}, producer)
		if err != nil {
			cancel()
		}
		all.Wait()
		return err
	})
	delivered := int64(0)
	for i, size := range sizes {
		if err == nil {
			err = errs[i]
		}
		delivered += size
	}
	return acknowledged, delivered, k, err
}

// follow reads so many records of a partition as they come, and tells their bytes.
func follow(ctx context.Context, server *servers.Server, topic string, records int64) (int64, error) {
	f, err := newFetcher(ctx, server, topic, 0, 500*time.Millisecond, 8<<20)
	if err != nil {
		return 0, err
	}
	defer f.conn.Close()
	total := int64(0)
	for offset := int64(0); offset < records; {
		next, size, err := f.fetch(offset)
		if err != nil {
			return total, err
		}
		offset, total = next, total+int64(size)
	}
	return total, nil
}
