package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
		{"compaction", "4 GB of 1 KiB records with 400,000 keys in one partition, from when cleanup.policy becomes compact until 15 % of it are left: " +
			"10 % are the last records of the keys, up to 3 % the segment that is written; 1,000 records a second to another topic for 5 s before it, and all the time meanwhile",
			false, runCompaction},
	}
}

// dirtyRecords of 1 KiB are cleaned: as many as keep a cleaner busy for long enough to tell a p99 of what goes on beside it.
const dirtyRecords = 4_000_000

// runCompaction measures servers of its own, whose cleaners look for work all the time.
func runCompaction(c *comparison, s *scenario) error {
	if err := c.stopAll(); err != nil {
		return err
	}
	if err := c.needDisk(c.size(dirtyRecords) * 1200); err != nil { // one side at a time
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
		if err := c.warmUp(side, server); err != nil {
			return err
		}
		own[side] = server
	}
	return c.turns([]string{results.Kafka, results.Barnabas}, 0, func(side string, round int) error {
		return c.compactOnce(s, own[side], side, round)
	})
}

func (c *comparison) compactOnce(s *scenario, server *servers.Server, side string, round int) error {
	topic, keys, err := c.newDirtyTopic(server)
	if err != nil {
		return err
	}
	other, err := c.newTopic(server, 1, nil)
	if err != nil {
		return err
	}
	producer, err := client(server)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := c.settle(); err != nil { // or the disk would be busy with what is to be cleaned
		return err
	}
	quiet, err := perf.Produce(c.ctx, beside(other, int64(c.duration(beforeCompaction).Seconds()*besideRate)), producer)
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
	var meanwhile *perf.Measured
	k, err := c.measure(server, func() (err error) {
		meanwhile, err = c.cleanBeside(server, topic, other, full*15/100, producer)
		return err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(c.holdsKeys(server, topic, keys), c.holds(server, other, quiet.Records+meanwhile.Records)); err != nil {
		return err
	}
	c.add(s, side, round, k, compacted(full, k, quiet, meanwhile)...)
	return errors.Join(c.dropTopic(server, topic), c.dropTopic(server, other))
}

// compacted are the measures of a cleaning of so many bytes, and of the stream before it and meanwhile.
func compacted(full int64, k cost, quiet, meanwhile *perf.Measured) []measure {
	all := []measure{
		{name: "rate", unit: "MB/s", more: true, value: float64(full) / 1e6 / k.elapsed.Seconds(), goals: []results.Goal{results.AtLeast(2, results.Kafka)}},
		{name: "broker CPU", unit: "s/GB", value: k.cpu * 1e9 / float64(full)},
		{name: "memory, peak", unit: "MB", value: float64(k.peak) / 1e6, goals: []results.Goal{results.AtMost(170, "")}},
	}
	all = append(append(all, quantiles("before: acknowledged", quiet, nil)...), quantiles("meanwhile: acknowledged", meanwhile, nil)...)
	if min(quiet.Records, meanwhile.Records) >= 100*restsOn {
		all = append(all, measure{
			name: "growth of acknowledged p99", unit: "times that before", value: meanwhile.Quantile(0.99) / quiet.Quantile(0.99),
			goals: []results.Goal{results.AtMost(1.2, "")},
		})
	}
	return all
}

const (
	// besideRate is how many records a second come to another topic, beforeCompaction how long they do before anything is
	// cleaned.
	besideRate       = 1000
	beforeCompaction = 5 * time.Second
)

// beside is the load of the other topic.
func beside(topic string, records int64) perf.Load {
	return perf.Load{Topic: topic, Records: records, Size: valueSize, Rate: besideRate, Intended: true, Patience: patience}
}

// newDirtyTopic makes a topic of one partition in which ten records have each key. It is not cleaned yet.
func (c *comparison) newDirtyTopic(server *servers.Server) (topic string, keys int64, err error) {
	records := c.size(dirtyRecords)
	keys = records / 10
	// The last segment is never cleaned: it must be small beside the whole.
	segment, never, ratio := strconv.FormatInt(max(1<<20, records<<10/32), 10), "delete", "0.01"
	topic, err = c.newTopic(server, 1, map[string]*string{"segment.bytes": &segment, "cleanup.policy": &never, "min.cleanable.dirty.ratio": &ratio})
	if err != nil {
		return "", 0, err
	}
	producer, err := client(server)
	if err != nil {
		return "", 0, err
	}
	defer producer.Close()
	_, err = perf.Produce(c.ctx, perf.Load{Topic: topic, Records: records, Value: perf.Noise(1<<10, 0), Patience: patience,
		Key: func(i int64) []byte { return strconv.AppendInt(nil, i%keys, 10) }}, producer)
	return topic, keys, err
}

// cleanBeside has a topic cleaned until so many bytes are left, and records written to another all the time.
func (c *comparison) cleanBeside(server *servers.Server, topic, other string, left int64, producer *kgo.Client) (*perf.Measured, error) {
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	var written *perf.Measured
	wrote := make(chan error, 1)
	go func() {
		var err error
		written, err = perf.Produce(ctx, beside(other, math.MaxInt64), producer)
		wrote <- err
	}()
	err := c.setConfig(producer, topic, "cleanup.policy", "compact")
	if err == nil {
		err = c.awaitSize(server, topic, left)
	}
	stop()
	err = errors.Join(err, <-wrote)
	return written, err
}

// holds fails where a topic has fewer records than it must have.
func (c *comparison) holds(server *servers.Server, topic string, records int64) error {
	reader, err := client(server)
	if err != nil {
		return err
	}
	defer reader.Close()
	read, err := perf.Consume(c.ctx, topic, reader)
	if err == nil && read.Records < records {
		err = fmt.Errorf("%s has %d records, and must have %d", topic, read.Records, records)
	}
	return err
}

// holdsKeys fails where the only partition of a topic does not have so many different keys.
func (c *comparison) holdsKeys(server *servers.Server, topic string, keys int64) error {
	reader, err := client(server, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	ends, err := kadm.NewClient(reader).ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(topic, 0)
	found := map[string]bool{}
	for next := int64(0); next < end.Offset; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			found[string(r.Key)] = true
			next = r.Offset + 1
		})
	}
	if int64(len(found)) != keys {
		return fmt.Errorf("%s has %d keys, and must have %d", topic, len(found), keys)
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
