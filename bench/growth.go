package main

import (
	"fmt"

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
		{"partitions", "1 GB in batches of 64 KiB over 1, 10, 100 and 1,000 new partitions that have one batch each, 4 connections, acks=1: " +
			"of 1,000 each gets 1 MB, which is the beginning of a log; the floor has as many files", false,
			func(c *comparison, s *scenario) error { return runGrowth(c, s, "partitions", []int{1, 10, 100, 1000}) }},
		{"connections", "1 GB in batches of 64 KiB over 1, 10, 100 and 500 connections to 6 partitions, acks=1", false,
			func(c *comparison, s *scenario) error { return runGrowth(c, s, "connections", []int{1, 10, 100, 500}) }},
		{"log-size", "one partition of 1 MB and of 4 GB (50 GB with -scale 12.5): fetches of one batch of 16 KiB at random offsets, one at a time, " +
			"and 10,000 appends of one at its end", false, runLogSize},
		{"tail", "200 records a second of 16 KiB in one partition to 1, 10 and 100 consumers at its tail; what 10 and 100 take is compared with what one does",
			false, runTail},
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
				measure{name: fmt.Sprintf("broker CPU, %d %s", width, of), unit: "s/GB", value: k.cpu * 1e9 / float64(m.Bytes), goals: []results.Goal{results.AtMost(1.2, floored)}},
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
			measure{name: "rate", unit: "requests/s", more: true, value: m.RecordsPerSecond(), goals: []results.Goal{results.AtLeast(goal, results.Kafka)}},
			measure{name: "request p50", unit: "ms", value: m.Quantile(0.5)},
			measure{name: "request p99", unit: "ms", value: m.Quantile(0.99)},
			measure{name: "broker CPU", unit: "µs/request", value: k.cpu * 1e6 / float64(m.Records)})
		return nil
	})
}
