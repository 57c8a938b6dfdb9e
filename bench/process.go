package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

func processScenarios() []*scenario {
	return []*scenario{
		{"start", "start on an empty, formatted directory; idle; the command that lists topics; " +
			"kill -9 behind 1 GB of 1 KiB records in 6 partitions, written to the disk, and start on the same kernel boot", false, runStart},
		{"recovery", "start after kill -9 with another boot id, as after a power cut, with 20 GB in 100 partitions, until each serves; " +
			"right behind the load, and when nothing was written for three minutes; from the page cache as far as that has them", false, runRecovery},
		{"start-10000", "start with 10,000 partitions of one record each behind an orderly stop, until each serves", false, runManyPartitions},
	}
}

// idleTime is how long a server idles before its memory and CPU are read.
const idleTime = 10 * time.Second

// runStart measures the life of servers of its own: nothing else of ours runs meanwhile.
func runStart(c *comparison, s *scenario) error {
	if err := c.stopAll(); err != nil {
		return err
	}
	sides := []string{results.Kafka, results.Barnabas}
	return c.turns(sides, 1, func(side string, round int) error {
		server, err := c.newServer(side, fmt.Sprintf("start-%s-%d", side, round))
		if err != nil {
			return err
		}
		defer server.Kill()
		if err := server.Prepare(); err != nil {
			return err
		}
		measures, err := c.life(server, side)
		if err != nil {
			return err
		}
		c.add(s, side, round, cost{}, measures...)
		return os.RemoveAll(server.Data())
	})
}

// stopAll ends the servers that run and deletes their files, for scenarios that want the machine for themselves.
func (c *comparison) stopAll() error {
	for side, server := range c.sides {
		if err := server.Stop(); err != nil {
			return err
		}
		delete(c.sides, side)
	}
	return c.place.RemoveEnded()
}

// milliseconds are how many have passed since.
func milliseconds(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }

// life starts a server for the first time, lets it idle, and goes on with lifeAfterKill.
func (c *comparison) life(server *servers.Server, side string) ([]measure, error) {
	var all []measure
	began := time.Now()
	if err := server.Start(c.ctx); err != nil {
		return nil, err
	}
	all = append(all, measure{name: "start to the first answer", unit: "ms", value: milliseconds(began), goals: []results.Goal{results.AtMost(50, "")}})
	topic, err := c.newTopic(server, 6, nil)
	if err != nil {
		return nil, err
	}
	if err := c.oneRecord(server, topic); err != nil {
		return nil, err
	}
	all = append(all, measure{name: "start to the first record in a new topic", unit: "ms", value: milliseconds(began)})
	idle, err := c.measure(server, func() error { return c.pass(c.duration(idleTime)) })
	if err != nil {
		return nil, err
	}
	all = append(all,
		measure{name: "memory, idle", unit: "MB", value: float64(idle.rss) / 1e6, goals: []results.Goal{results.AtMost(40, "")}},
		measure{name: "CPU, idle", unit: "% of a core", value: idle.cpu / idle.elapsed.Seconds() * 100})
	list, err := c.listTopics(server, side)
	if err != nil {
		return nil, err
	}
	all = append(all, measure{name: "the command that lists topics", unit: "ms", value: list, goals: []results.Goal{results.AtMost(0.02, results.Kafka)}})
	again, err := c.lifeAfterKill(server, topic)
	return append(all, again...), err
}

// lifeAfterKill loads a server, kills it, and starts and stops it.
func (c *comparison) lifeAfterKill(server *servers.Server, topic string) ([]measure, error) {
	load := writing{records: 1_000_000, size: 1 << 10, values: perf.Noise}
	if _, _, err := load.write(c, server, topic, unprofiled); err != nil {
		return nil, err
	}
	if err := c.settle(); err != nil {
		return nil, err
	}
	server.Kill()
	began := time.Now()
	if err := server.Start(c.ctx); err != nil {
		return nil, err
	}
	if err := c.oneRecord(server, topic); err != nil {
		return nil, err
	}
	served := measure{name: "kill -9, start to the first record", unit: "ms", value: milliseconds(began), goals: []results.Goal{results.AtMost(0.025, results.Kafka)}}
	began = time.Now()
	if err := server.Stop(); err != nil {
		return nil, err
	}
	return []measure{served, {name: "orderly stop", unit: "ms", value: milliseconds(began)}}, nil
}

// pass lets time pass.
func (c *comparison) pass(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// oneRecord writes one record, as often as it takes.
func (c *comparison) oneRecord(server *servers.Server, topic string) error {
	cl, err := client(server, kgo.DefaultProduceTopic(topic), kgo.RetryBackoffFn(func(int) time.Duration { return 2 * time.Millisecond }))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Minute)
	defer cancel()
	return cl.ProduceSync(ctx, &kgo.Record{Value: []byte("x")}).FirstErr()
}

// listTopics times the side's own command, in ms.
func (c *comparison) listTopics(server *servers.Server, side string) (float64, error) {
	program := c.place.Program
	if side == before {
		program = c.before
	}
	command := []string{program, "topic", "list", "-b", server.Address}
	if side == results.Kafka {
		var err error
		if command, err = c.place.Tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", server.Address, "--list"); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if out, err := exec.CommandContext(c.ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("list topics: %w\n%s", err, out)
	}
	return milliseconds(began), nil
}
