package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// tailed is what a round of runTail has measured.
type tailed struct {
	acknowledged *perf.Measured
	delivered    int64 // bytes, to all consumers
	switches     int64
	cost
}

// perGB is the CPU for a GB delivered.
func (t tailed) perGB() float64 { return t.cpu * 1e9 / float64(t.delivered) }

// runTail has more and more consumers read what one producer writes. What several cost is told as a part of what one did
// in the round of the same number as well.
func runTail(c *comparison, s *scenario) error {
	type key struct {
		side  string
		round int
	}
	one := map[key]tailed{}
	for _, consumers := range []int{1, 10, 100} {
		err := c.inTurns([]string{results.Kafka, results.Barnabas}, func(side string, server *servers.Server, round int) error {
			topic, err := c.newTopic(server, 1, nil)
			if err != nil {
				return err
			}
			t, err := c.tail(server, topic, consumers)
			if err != nil {
				return err
			}
			name := fmt.Sprintf(", %d consumers", consumers)
			c.add(s, side, round, t.cost,
				measure{name: "broker CPU" + name, unit: "s/GB delivered", value: t.perGB()},
				measure{name: "context switches" + name, unit: "per record delivered", value: float64(t.switches) / float64(t.acknowledged.Records*int64(consumers))},
				measure{name: "acknowledged p50" + name, unit: "ms", value: t.acknowledged.Quantile(0.5)},
				measure{name: "acknowledged p99" + name, unit: "ms", value: t.acknowledged.Quantile(0.99)})
			if consumers == 1 {
				one[key{side, round}] = t
			} else {
				c.add(s, side, round, t.cost, t.beside(one[key{side, round}], name)...)
			}
			return c.dropTopic(server, topic)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// beside tells what several consumers take as a part of what one does: a GB gets cheaper with each, and the producer does
// not notice them.
func (t tailed) beside(one tailed, name string) []measure {
	return []measure{
		{name: "growth of broker CPU a GB" + name, unit: "times that of 1", value: t.perGB() / one.perGB(), goals: []results.Goal{results.AtMost(1, "")}},
		{name: "growth of acknowledged p99" + name, unit: "times that of 1", value: t.acknowledged.Quantile(0.99) / one.acknowledged.Quantile(0.99), goals: []results.Goal{results.AtMost(1.2, "")}},
	}
}

// tail runs one round: a producer at a rate, and consumers that each read all of it.
func (c *comparison) tail(server *servers.Server, topic string, consumers int) (tailed, error) {
	const rate, size = 200, 16 << 10
	records := int64(c.duration(streamTime).Seconds() * rate)
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Minute)
	defer cancel()
	producer, err := client(server)
	if err != nil {
		return tailed{}, err
	}
	defer producer.Close()
	var t tailed
	var all sync.WaitGroup
	sizes, errs := make([]int64, consumers), make([]error, consumers)
	before := contextSwitches(server.Pid())
	k, err := c.measure(server, func() (err error) {
		for i := range consumers {
			all.Go(func() { sizes[i], errs[i] = follow(ctx, server, topic, records) })
		}
		t.acknowledged, err = perf.Produce(ctx, perf.Load{Topic: topic, Records: records, Size: size, Rate: rate, Intended: true, Patience: patience}, producer)
		if err != nil {
			cancel()
		}
		all.Wait()
		return err
	})
	t.cost, t.switches = k, contextSwitches(server.Pid())-before
	for i, size := range sizes {
		if err == nil {
			err = errs[i]
		}
		t.delivered += size
	}
	return t, err
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

// contextSwitches is how often the threads that a process has were switched to another, of themselves or not. Those of
// threads that have ended are not in it.
func contextSwitches(pid int) int64 {
	total := int64(0)
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is a good one
	for _, file := range files {
		for _, name := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
			n, _ := strconv.ParseInt(field(file, name), 10, 64) // "unknown" of a thread that has just ended
			total += n
		}
	}
	return total
}
