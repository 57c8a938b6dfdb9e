package main

import (
	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// reading is a backlog that is read from its beginning as fast as it goes.
type reading struct {
	backlog   writing
	sides     []string
	perRecord bool
	cpu, rate []results.Goal
}

func consumeScenarios() []*scenario {
	sides := []string{results.Kafka, results.Barnabas, floored}
	backlog := func(records int64, size int) writing {
		return writing{records: records, size: size, partitions: 6, values: perf.Noise, options: acksOne()}
	}
	return []*scenario{
		{"c1k", "catch up on 2 GB of 1 KiB records in 6 partitions, from the page cache", true, reading{
			backlog: backlog(2_000_000, 1<<10), sides: sides,
			cpu:  []results.Goal{results.AtMost(0.75, results.Kafka), results.AtMost(1.2, floored)},
			rate: []results.Goal{results.AtLeast(1.2, results.Kafka), results.AtLeast(0.85, floored)},
		}.run},
		{"c100", "catch up on 10,000,000 records of 100 B in 6 partitions, from the page cache", true, reading{
			backlog: backlog(10_000_000, 100), sides: sides, perRecord: true,
			cpu:  []results.Goal{results.AtMost(0.75, results.Kafka), results.AtMost(1.2, floored)},
			rate: []results.Goal{results.AtLeast(1.2, results.Kafka), results.AtLeast(0.85, floored)},
		}.run},
	}
}

// run fills a topic on every side, and measures the reading in turns.
func (r reading) run(c *comparison, s *scenario) error {
	topics := map[string]string{}
	err := c.inTurns(r.sides, func(side string, server *servers.Server, round int) error {
		if topics[side] == "" {
			topic, err := c.newTopic(server, r.backlog.partitions, nil)
			if err != nil {
				return err
			}
			topics[side] = topic
			if _, _, err := r.backlog.write(c, server, topics[side], unprofiled); err != nil {
				return err
			}
			if err := c.settle(); err != nil {
				return err
			}
		}
		reader, err := client(server)
		if err != nil {
			return err
		}
		defer reader.Close()
		var measured *perf.Measured
		k, err := c.measure(server, func() error {
			return c.profiled(s, side, round)(func() (err error) {
				measured, err = perf.Consume(c.ctx, topics[side], reader)
				return err
			})
		})
		if err != nil {
			return err
		}
		c.add(s, side, round, k, throughput(measured, k, r.perRecord, r.cpu, r.rate)...)
		return nil
	})
	for side, topic := range topics {
		if failed := c.dropTopic(c.sides[side], topic); err == nil {
			err = failed
		}
	}
	return err
}
