package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// streaming is a load at a rate, with a consumer at its tail.
type streaming struct {
	rate       float64
	partitions int
	cpu        []results.Goal
	latency    bool // whether its latencies have goals
}

func endToEndScenarios() []*scenario {
	return []*scenario{
		{"e2e-1000", "1,000 records a second of 100 B, acks=all, idempotent, 6 partitions, to a consumer; from when each was due", true,
			streaming{rate: 1000, partitions: 6, latency: true}.run},
		{"e2e-10000", "10,000 records a second of 100 B, acks=all, idempotent, 6 partitions, to a consumer; from when each was due", true,
			streaming{rate: 10_000, partitions: 6, latency: true}.run},
		{"requests-1000", "1,000 requests a second with one record of 100 B each, one partition, acks=all, to a consumer at the tail", true,
			streaming{rate: 1000, partitions: 1, cpu: []results.Goal{results.AtMost(0.25, results.Kafka)}}.run},
	}
}

const (
	// valueSize is that of a record in a stream.
	valueSize = 100
	// streamTime is how long a stream is measured, streamWarmup how long it runs before that.
	streamTime, streamWarmup = 10 * time.Second, 2 * time.Second
)

// stream is the load of a round.
func (l streaming) stream(c *comparison, topic string) perf.Stream {
	return perf.Stream{
		Topic: topic, Rate: l.rate, Size: valueSize,
		Records: int64(c.duration(streamTime).Seconds() * l.rate), Warmup: int64(c.duration(streamWarmup).Seconds() * l.rate),
	}
}

func (l streaming) run(c *comparison, s *scenario) error {
	return c.inTurns([]string{results.Kafka, results.Barnabas, echo}, func(side string, server *servers.Server, round int) error {
		if side == echo {
			return l.echo(c, s, server, round)
		}
		topic, err := c.newTopic(server, l.partitions, nil)
		if err != nil {
			return err
		}
		both, closeBoth, err := clients(server, 2, kgo.RequiredAcks(kgo.AllISRAcks()))
		if err != nil {
			return err
		}
		defer closeBoth()
		stream := l.stream(c, topic)
		var latencies *perf.Latencies
		k, err := c.measure(server, func() error {
			return c.profiled(s, side, round)(func() (err error) {
				latencies, err = perf.EndToEnd(c.ctx, stream, both[0], both[1])
				return err
			})
		})
		if err != nil {
			return err
		}
		if latencies.Lost+latencies.Failed > 0 {
			return fmt.Errorf("%d records were lost, %d failed", latencies.Lost, latencies.Failed)
		}
		c.add(s, side, round, k, l.measures(&latencies.Acknowledged, &latencies.Received, latencies.Late, k)...)
		return c.dropTopic(server, topic)
	})
}

// measures are what is told of a stream. The echo has no acknowledgements.
func (l streaming) measures(acknowledged, received *perf.Measured, late time.Duration, k cost) []measure {
	excess := func(x float64) []results.Goal {
		if !l.latency {
			return nil
		}
		return []results.Goal{{Of: results.Barnabas, To: results.Kafka, Above: echo, AtMost: x}}
	}
	all := quantiles("end to end", received, map[string][]results.Goal{"p50": excess(0.6), "p99": excess(0.33), "p99.9": excess(0.33)})
	all = append(all, measure{name: "end to end, most", unit: "ms", value: received.Max()})
	if acknowledged != nil {
		all = append(all, quantiles("acknowledged", acknowledged, nil)...)
	}
	return append(all,
		measure{name: "broker CPU", unit: "% of a core", value: k.cpu / k.elapsed.Seconds() * 100, goals: l.cpu},
		measure{name: "generator late, most", unit: "ms", value: float64(late.Microseconds()) / 1000})
}

// restsOn is how many samples at least lie beyond a quantile that is told: with fewer, it is the chance of a round.
const restsOn = 10

// quantiles are those of a distribution that enough samples lie beyond, with the goals that they have by name.
func quantiles(of string, m *perf.Measured, goals map[string][]results.Goal) []measure {
	var all []measure
	for _, q := range []struct {
		name   string
		beyond int64 // one sample in so many
	}{{"p50", 2}, {"p90", 10}, {"p99", 100}, {"p99.9", 1000}, {"p99.99", 10_000}} {
		if m.Records/q.beyond >= restsOn {
			all = append(all, measure{name: of + " " + q.name, unit: "ms", value: m.Quantile(1 - 1/float64(q.beyond)), goals: goals[q.name]})
		}
	}
	return all
}

// echo sends the same stream as messages to a server that sends them back: what the generator, the machine and TCP
// take by themselves.
func (l streaming) echo(c *comparison, s *scenario, server *servers.Server, round int) error {
	conn, err := net.Dial("tcp", server.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream := l.stream(c, "")
	var received perf.Measured
	var late time.Duration
	k, err := c.measure(server, func() (err error) {
		late, err = echoStream(c.ctx, conn, stream, &received)
		return err
	})
	if err != nil {
		return err
	}
	c.add(s, echo, round, k, l.measures(nil, &received, late, k)...)
	return nil
}

// echoStream sends messages that begin with the time at which they were due, as [perf.EndToEnd] does with records.
func echoStream(ctx context.Context, conn net.Conn, stream perf.Stream, received *perf.Measured) (time.Duration, error) {
	began, total := time.Now(), stream.Warmup+stream.Records
	read := make(chan error, 1)
	go func() {
		message := make([]byte, stream.Size)
		for range total {
			if _, err := io.ReadFull(conn, message); err != nil {
				read <- err
				return
			}
			if stamp := int64(binary.BigEndian.Uint64(message)); stamp >= 0 {
				received.Add(time.Since(began)-time.Duration(stamp), stream.Size)
			}
		}
		read <- nil
	}()
	pace := perf.NewPace(stream.Rate)
	defer pace.End()
	message := make([]byte, stream.Size)
	for i := range total {
		stamp := pace.Await(ctx, i).Sub(began).Nanoseconds()
		switch {
		case i < stream.Warmup:
			stamp = -1
		case i == stream.Warmup:
			pace.Forget()
		}
		binary.BigEndian.PutUint64(message, uint64(stamp))
		if _, err := conn.Write(message); err != nil {
			return 0, errors.Join(err, ctx.Err())
		}
	}
	return pace.Late(), <-read
}
