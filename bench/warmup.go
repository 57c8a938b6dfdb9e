package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// patience is how long a load may go without an acknowledgement.
const patience = time.Minute

// warmUp puts some of every core load on a server, whatever the scale of the run: a JVM compiles what is used, and takes
// twice the CPU and more until it has. All sides get it that understand it: discard has nothing to read, and echo has only
// the round of each scenario that does not count.
func (c *comparison) warmUp(side string, s *servers.Server) error {
	topic, err := c.writeSome(s)
	if err != nil {
		return err
	}
	if side != discard {
		if err := c.readSome(s, topic); err != nil {
			return err
		}
	}
	return c.dropTopic(s, topic)
}

// writeSome writes to a new topic.
func (c *comparison) writeSome(s *servers.Server) (string, error) {
	topic, err := c.newTopic(s, 6, nil)
	if err != nil {
		return "", err
	}
	for _, l := range []struct {
		records int64
		value   func(int64) []byte
		options []kgo.Opt
	}{
		{300_000, perf.Noise(1<<10, 0), nil},
		{2_000_000, perf.Noise(100, 0), acksOne()},
		{300_000, perf.JSON(1<<10, 0), []kgo.Opt{kgo.ProducerBatchCompression(kgo.Lz4Compression())}},
		{300_000, perf.JSON(1<<10, 0), []kgo.Opt{kgo.ProducerBatchCompression(kgo.ZstdCompression())}},
	} {
		producer, err := client(s, l.options...)
		if err != nil {
			return "", err
		}
		_, err = perf.Produce(c.ctx, perf.Load{Topic: topic, Records: l.records, Value: l.value, Patience: patience}, producer)
		producer.Close()
		if err != nil {
			return "", err
		}
	}
	return topic, nil
}

// readSome reads a topic from its beginning, and at its tail.
func (c *comparison) readSome(s *servers.Server, topic string) error {
	three, closeAll, err := clients(s, 3)
	if err != nil {
		return err
	}
	defer closeAll()
	if _, err := perf.Consume(c.ctx, topic, three[0]); err != nil {
		return err
	}
	_, err = perf.EndToEnd(c.ctx, perf.Stream{Topic: topic, Rate: 3000, Records: 15_000, Size: 100}, three[1], three[2])
	return err
}

// profileAddress is where Barnabas serves profiles.
func (c *comparison) profileAddress() string { return fmt.Sprintf("127.0.0.1:%d", c.port-1) }

// profileTime is how long a profile takes; a load that is shorter is not in all of it.
const profileTime = 3 * time.Second

func unprofiled(do func() error) error { return do() }

// profiled takes a CPU profile of Barnabas while something is done, where -profile asks for it, in the round that does not
// count: what the profiler takes is in no figure.
func (c *comparison) profiled(s *scenario, side string, round int) func(func() error) error {
	if c.profile == "" || side != results.Barnabas || round != 0 {
		return unprofiled
	}
	return func(do func() error) error {
		taken := make(chan error, 1)
		go func() { taken <- c.takeProfile(c.profilePath(s)) }()
		err := do()
		return errors.Join(err, <-taken)
	}
}

func (c *comparison) takeProfile(path string) error {
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.profileAddress(), int(profileTime.Seconds())))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", response.Status)
	}
	if err := os.MkdirAll(c.profile, 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
