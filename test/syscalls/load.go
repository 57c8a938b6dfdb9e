package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/test/raw"
)

// counted is what one kind of request cost.
type counted struct {
	name     string
	requests int
	budget   float64
	calls    calls
	// records are the bytes of records that all answers but the last held, viaSendfile those that never came to user space;
	// both 0 where that does not matter.
	records, viaSendfile int64
}

func (c *counted) each() float64 { return float64(c.calls.total()) / float64(c.requests) }

// count runs every kind of request against the broker.
func count(b *broker, requests, partitions int) ([]counted, error) {
	c, err := raw.Dial(b.address, 64<<20)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	topic, err := c.Create("orders", int32(partitions))
	if err != nil {
		return nil, err
	}
	single := topic
	single.Partitions = 1
	c.Produce(raw.Produce(single, 1024, record.BuilderOptions{}), 12)
	produced, err := measure(b, c, "produce to 1 partition", requests, produceBudget(1))
	if err != nil {
		return nil, err
	}
	all := []counted{produced}
	c.Produce(raw.Produce(topic, 1024, record.BuilderOptions{}), 12)
	if produced, err = measure(b, c, fmt.Sprintf("produce to %d partitions", partitions), requests, produceBudget(partitions)); err != nil {
		return nil, err
	}
	all = append(all, produced)
	tailed, err := tail(b, c, requests)
	if err != nil {
		return nil, err
	}
	all = append(all, tailed)
	backlog, err := c.Create("backlog", int32(partitions))
	if err != nil {
		return nil, err
	}
	c.Produce(raw.Produce(backlog, recordSize, record.BuilderOptions{}), 12)
	for range batches {
		if _, err := c.Do(); err != nil {
			return nil, err
		}
	}
	for _, kind := range []fetchKind{{11, false}, {18, true}} {
		for _, count := range []int{1, partitions} {
			backlog.Partitions = int32(count)
			fetched, err := catchUp(b, c, backlog, kind, requests)
			if err != nil {
				return nil, err
			}
			all = append(all, fetched)
		}
	}
	return all, nil
}

// tail counts what a record costs that is produced while a consumer waits for it, on a connection of its own.
func tail(b *broker, c *raw.Conn, requests int) (counted, error) {
	consumer, err := raw.Dial(b.address, 1<<20)
	if err != nil {
		return counted{}, err
	}
	defer func() { _ = consumer.Close() }()
	topic, err := c.Create("tail", 1)
	if err != nil {
		return counted{}, err
	}
	request := raw.Fetch(topic, fetchBytes)
	if err := consumer.Tail(request, 18); err != nil {
		return counted{}, err
	}
	c.Produce(raw.Produce(topic, 100, record.BuilderOptions{}), 12)
	size := 0
	one := func() error {
		if err := consumer.Send(); err != nil {
			return err
		}
		if _, err := c.Do(); err != nil {
			return err
		}
		body, err := consumer.Receive()
		if err == nil && size > 0 && len(body) != size {
			err = fmt.Errorf("an answer of %d bytes after one of %d", len(body), size)
		}
		size = len(body)
		return err
	}
	name := "record to a consumer that waits"
	for range 100 {
		if err := one(); err != nil {
			return counted{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	b.mark()
	for range requests {
		if err := one(); err != nil {
			return counted{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	made, _, err := b.since()
	return counted{name: name, requests: requests, budget: tailBudget, calls: made}, err
}

// fetchKind is how a client fetches: without a session as librdkafka does, or with one as Java's does.
type fetchKind struct {
	version int16
	session bool
}

// catchUp counts fetches of a backlog.
func catchUp(b *broker, c *raw.Conn, from raw.Topic, kind fetchKind, requests int) (counted, error) {
	partitions := int(from.Partitions)
	request := raw.Fetch(from, fetchBytes)
	for i := range request.Topics[0].Partitions {
		request.Topics[0].Partitions[i].FetchOffset = batches / 2 // as of one who has read half of it
	}
	c.Prepare(request, kind.version)
	var answer kmsg.FetchResponse
	if err := c.Decode(&answer); err != nil {
		return counted{}, err
	}
	var records int64
	for _, partition := range answer.Topics[0].Partitions {
		records += int64(len(partition.RecordBatches))
	}
	if records < int64(partitions)*fetchBytes/2 {
		return counted{}, fmt.Errorf("a fetch from %d partitions finds %d bytes", partitions, records)
	}
	name := fmt.Sprintf("fetch %d from %d partitions", kind.version, partitions)
	if kind.session {
		name += ", session"
		if err := c.Session(request, kind.version); err != nil {
			return counted{}, err
		}
	}
	fetched, err := measure(b, c, name, requests, fetchBudget(partitions))
	fetched.records = records * int64(requests-1)
	return fetched, err
}

// measure counts the system calls of the prepared request in steady state.
func measure(b *broker, c *raw.Conn, name string, requests int, budget float64) (counted, error) {
	for range 100 {
		if _, err := c.Do(); err != nil {
			return counted{}, err
		}
	}
	first, err := c.Do()
	if err != nil {
		return counted{}, err
	}
	size := len(first)
	b.mark()
	for range requests {
		body, err := c.Do()
		if err == nil && len(body) != size {
			err = fmt.Errorf("an answer of %d bytes after one of %d", len(body), size)
		}
		if err != nil {
			return counted{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	made, sendfile, err := b.since()
	return counted{name: name, requests: requests, budget: budget, calls: made, viaSendfile: sendfile}, err
}
