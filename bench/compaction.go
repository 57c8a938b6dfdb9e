package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

func compactionScenarios() []*scenario {
	return []*scenario{
		{"compaction", "1 GB of 1 KiB records with 100,000 keys in one partition, from when cleanup.policy becomes compact until all but a tenth is gone; " +
			"a stream of 1,000 records a second to another topic meanwhile", false, runCompaction},
	}
}

// runCompaction measures servers of its own, whose cleaners look for work all the time.
func runCompaction(c *comparison, s *scenario) error {
	if err := c.stopAll(); err != nil {
		return err
	}
	own := map[string]*servers.Server{}
	for _, side := range c.chosen([]string{results.Kafka, results.Barnabas}) {
		server, err := c.newServer(side, "compaction-"+side, "log.cleaner.backoff.ms=200")
		if err != nil {
			return err
		}
		defer server.Kill()
		if err := server.Start(c.ctx); err != nil {
			return err
		}
		if err := c.warmUp(server); err != nil {
			return err
		}
		own[side] = server
	}
	return c.turns([]string{results.Kafka, results.Barnabas}, 0, func(side string, round int) error {
		return c.compactOnce(s, own[side], side, round)
	})
}

func (c *comparison) compactOnce(s *scenario, server *servers.Server, side string, round int) error {
	records := c.size(1_000_000)
	keys := records / 10
	// The last segment is never cleaned: it must be small beside the whole.
	segment, never, ratio := strconv.FormatInt(max(1<<20, records<<10/32), 10), "delete", "0.01"
	topic, err := c.newTopic(server, 1, map[string]*string{"segment.bytes": &segment, "cleanup.policy": &never, "min.cleanable.dirty.ratio": &ratio})
	if err != nil {
		return err
	}
	three, closeAll, err := clients(server, 3)
	if err != nil {
		return err
	}
	defer closeAll()
	load := perf.Load{Topic: topic, Records: records, Value: perf.Noise(1<<10, 0), Patience: patience,
		Key: func(i int64) []byte { return strconv.AppendInt(nil, i%keys, 10) }}
	if _, err := perf.Produce(c.ctx, load, three[0]); err != nil {
		return err
	}
	other, err := c.newTopic(server, 1, nil)
	if err != nil {
		return err
	}
	if err := c.settle(); err != nil {
		return err
	}
	full, err := folderSize(server, topic)
	if err != nil {
		return err
	}
	type streamed struct {
		*perf.Latencies
		err error
	}
	stream := make(chan streamed, 1)
	var took time.Duration
	k, err := c.measure(server, func() error {
		go func() {
			l, err := perf.EndToEnd(c.ctx, perf.Stream{Topic: other, Rate: 1000, Records: 5000, Size: valueSize}, three[1], three[2])
			stream <- streamed{l, err}
		}()
		began := time.Now()
		if err := c.setConfig(three[0], topic, "cleanup.policy", "compact"); err != nil {
			return err
		}
		err := c.awaitSize(server, topic, full/5)
		took = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	latencies := <-stream
	if latencies.err != nil {
		return latencies.err
	}
	c.add(s, side, round, k,
		measure{name: "rate, until it is done", unit: "MB/s", more: true, value: float64(full) / 1e6 / took.Seconds(), goals: []results.Goal{atLeast(2, results.Kafka)}},
		measure{name: "broker CPU", unit: "s/GB", value: k.cpu * 1e9 / float64(full)},
		measure{name: "memory, peak", unit: "MB", value: float64(k.peak) / 1e6},
		measure{name: "acknowledged p99 meanwhile", unit: "ms", value: latencies.Acknowledged.Quantile(0.99)})
	for _, name := range []string{topic, other} {
		if err := c.dropTopic(server, name); err != nil {
			return err
		}
	}
	return nil
}

// setConfig sets a property of a topic.
func (c *comparison) setConfig(cl *kgo.Client, topic, key, value string) error {
	answers, err := kadm.NewClient(cl).AlterTopicConfigs(c.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic)
	if err != nil {
		return err
	}
	_, err = answers.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	return err
}

// folderSize is the bytes of the segments of a topic's only partition.
func folderSize(server *servers.Server, topic string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(filepath.Join(server.Data(), topic+"-0"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".log") {
			return nil // a file may be gone by now: a cleaner is at work
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// awaitSize waits until a topic has shrunk to a size.
func (c *comparison) awaitSize(server *servers.Server, topic string, most int64) error {
	deadline := time.Now().Add(3 * time.Minute)
	for {
		size, err := folderSize(server, topic)
		if err != nil {
			return err
		}
		if size > 0 && size <= most {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still has %d bytes", topic, size)
		}
		if err := c.pass(20 * time.Millisecond); err != nil {
			return err
		}
	}
}
