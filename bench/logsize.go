package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

const (
	// logBatch is a batch, of one record, in the logs of runLogSize.
	logBatch = 16 << 10
	// logFetches and logAppends are how many a round has, at most.
	logFetches, logAppends = 20_000, 10_000
	// togetherAtMost is how large logs may be of which every side keeps one at a time.
	togetherAtMost = 8e9
)

// sizedLog is what runLogSize measures in a log of one size.
type sizedLog struct {
	scenario *scenario
	size     int64             // bytes
	topics   map[string]string // of the sides that have one
	ends     map[string]int64  // their log end offsets
}

// runLogSize fetches from small and from large logs, and appends to them. Sides whose logs are very large come one after
// another, so that the disk holds one such log at a time.
func runLogSize(c *comparison, s *scenario) error {
	for _, size := range []int64{1e6, max(2e6, int64(4e9*c.scale))} {
		l := &sizedLog{scenario: s, size: size, topics: map[string]string{}, ends: map[string]int64{}}
		sides := []string{results.Kafka, results.Barnabas, floored}
		turns := [][]string{sides}
		if size > togetherAtMost {
			turns = [][]string{sides[:1], sides[1:2], sides[2:]}
		}
		for _, sides := range turns {
			grown := size + int64(c.rounds+1)*c.atMost(logAppends)*logBatch
			if err := c.needDisk(int64(len(c.chosen(sides))) * grown); err != nil {
				return err
			}
			err := c.inTurns(sides, func(side string, server *servers.Server, round int) error { return l.round(c, side, server, round) })
			if err := errors.Join(err, l.drop(c)); err != nil {
				return err
			}
		}
	}
	return nil
}

// batches is how many the log has at first.
func (l *sizedLog) batches() int64 { return l.size / logBatch }

// name is the log's size as it is told.
func (l *sizedLog) name() string {
	if l.size >= 1e9 {
		return fmt.Sprintf("%.3g GB", float64(l.size)/1e9)
	}
	return fmt.Sprintf("%.3g MB", float64(l.size)/1e6)
}

func (l *sizedLog) round(c *comparison, side string, server *servers.Server, round int) error {
	if err := l.fill(c, side, server); err != nil {
		return err
	}
	fetched, fetching, err := c.fetchAtRandom(server, l.topics[side], l.batches(), uint64(round))
	if err != nil {
		return err
	}
	appended, appending, err := c.appendTo(server, l.topics[side])
	if err != nil {
		return err
	}
	l.ends[side] += appended.Records
	near := []results.Goal{results.AtMost(1.2, floored)}
	c.add(l.scenario, side, round, fetching,
		measure{name: "fetch p50 in " + l.name(), unit: "µs", value: fetched.Quantile(0.5) * 1000, goals: []results.Goal{results.AtMost(200, "")}},
		measure{name: "fetch p99 in " + l.name(), unit: "µs", value: fetched.Quantile(0.99) * 1000},
		measure{name: "broker CPU, fetch in " + l.name(), unit: "µs", value: fetching.cpu * 1e6 / float64(fetched.Records), goals: near})
	c.add(l.scenario, side, round, appending,
		measure{name: "broker CPU, append in " + l.name(), unit: "µs", value: appending.cpu * 1e6 / float64(appended.Records), goals: near})
	return nil
}

// fill makes the side's log, and makes it anew when appends have made it more than half as large again.
func (l *sizedLog) fill(c *comparison, side string, server *servers.Server) error {
	if l.topics[side] != "" && l.ends[side] <= l.batches()*3/2 {
		return nil
	}
	if old := l.topics[side]; old != "" {
		if err := c.dropTopic(server, old); err != nil {
			return err
		}
		delete(l.topics, side)
	}
	topic, err := c.newTopic(server, 1, nil)
	if err != nil {
		return err
	}
	l.topics[side], l.ends[side] = topic, l.batches()
	return c.fill(server, logLoad(topic, l.batches()))
}

func logLoad(topic string, batches int64) requests {
	return requests{topic: topic, partitions: 1, connections: 1, inFlight: 4, batch: logBatch, record: logBatch, acks: 1, count: batches}
}

// drop deletes the logs of all sides.
func (l *sizedLog) drop(c *comparison) error {
	var errs []error
	for side, topic := range l.topics {
		errs = append(errs, c.dropTopic(c.sides[side], topic))
		delete(l.topics, side)
	}
	return errors.Join(errs...)
}

// atMost is a number of things that a smaller scale makes smaller, and a larger one does not make larger.
func (c *comparison) atMost(n int64) int64 { return min(n, c.size(n)) }

// appendTo appends batches to a log.
func (c *comparison) appendTo(server *servers.Server, topic string) (m *perf.Measured, k cost, err error) {
	open, err := logLoad(topic, c.atMost(logAppends)).open(c.ctx, server)
	if err != nil {
		return nil, cost{}, err
	}
	defer open.close()
	k, err = c.measure(server, func() (err error) {
		m, err = open.send()
		return err
	})
	return m, k, err
}

// fetchAtRandom fetches batches of one record each, one after another. Each seed has other offsets, so that what one round has
// read from a disk is not what the next one asks for.
func (c *comparison) fetchAtRandom(server *servers.Server, topic string, records int64, seed uint64) (*perf.Measured, cost, error) {
	f, err := newFetcher(c.ctx, server, topic, 0, time.Second, 1)
	if err != nil {
		return nil, cost{}, err
	}
	defer f.conn.Close()
	m := &perf.Measured{}
	random := rand.New(rand.NewPCG(seed, 2))
	k, err := c.measure(server, func() error {
		for range c.atMost(logFetches) {
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
