package main

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/test/raw"
)

// kind is a kind of request, and its budget.
type kind struct {
	name string
	// exact is what each request makes, no more and no less; looks is how many reads of it may find nothing.
	exact calls
	looks int
	// batches is how many batches a request writes or reads, of which one to write has batch bytes.
	batches int
	batch   int64
}

// counted is what one kind of request cost.
type counted struct {
	kind
	requests int
	// made are the calls that did something, vain those that did not.
	made, vain calls
	// records are the bytes of records that all answers but the last held, viaSendfile those that never came to user space;
	// both 0 where that does not matter.
	records, viaSendfile int64
}

// session is what the counts are made with.
type session struct {
	broker   *broker
	conn     *raw.Conn
	requests int
	all      []counted
}

// count runs every kind of request against the broker.
func count(b *broker, requests, partitions int) ([]counted, error) {
	c, err := raw.Dial(b.address, 64<<20)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	s := &session{broker: b, conn: c, requests: requests}
	if err := errors.Join(s.produce(partitions), s.tail(), s.fetch(partitions)); err != nil {
		return nil, err
	}
	return s.all, nil
}

// produce counts requests to produce.
func (s *session) produce(partitions int) error {
	topic, err := s.conn.Create("orders", int32(partitions))
	if err != nil {
		return err
	}
	id, err := s.conn.ProducerID()
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name       string
		partitions int
		options    record.BuilderOptions
	}{
		{"produce", 1, record.BuilderOptions{}},
		{"produce", partitions, record.BuilderOptions{}},
		{"produce, idempotent,", partitions, record.BuilderOptions{Idempotent: true, ProducerID: id}},
		{"produce, lz4,", 1, record.BuilderOptions{Codec: record.Lz4}},
		{"produce, zstd,", 1, record.BuilderOptions{Codec: record.Zstd}},
	} {
		topic.Partitions = int32(one.partitions)
		request := raw.Produce(topic, 1024, one.options)
		k := kind{name: fmt.Sprintf("%s to %d partitions", one.name, one.partitions), exact: produceBudget(one.partitions), batches: one.partitions}
		k.batch = int64(len(request.Topics[0].Partitions[0].Records))
		s.conn.Produce(request, 12)
		var answer kmsg.ProduceResponse
		if err := s.conn.Decode(&answer); err != nil {
			return err
		}
		if code := answer.Topics[0].Partitions[0].ErrorCode; code != 0 {
			return fmt.Errorf("%s: error %d", k.name, code)
		}
		if err := s.measure(k, 0, s.conn.Do); err != nil {
			return err
		}
	}
	return nil
}

// tail counts what a record costs that is produced while a consumer waits for it, on a connection of its own.
func (s *session) tail() error {
	consumer, err := raw.Dial(s.broker.address, 1<<20)
	if err != nil {
		return err
	}
	defer func() { _ = consumer.Close() }()
	topic, err := s.conn.Create("tail", 1)
	if err != nil {
		return err
	}
	if err := consumer.Tail(raw.Fetch(topic, fetchBytes), 18); err != nil {
		return err
	}
	request := raw.Produce(topic, 100, record.BuilderOptions{})
	s.conn.Produce(request, 12)
	k := kind{name: "record to a consumer that waits", exact: tailBudget(), looks: 1, batches: 1}
	k.batch = int64(len(request.Topics[0].Partitions[0].Records))
	return s.measure(k, 0, func() ([]byte, error) {
		if err := consumer.Send(); err != nil {
			return nil, err
		}
		if _, err := s.conn.Do(); err != nil {
			return nil, err
		}
		return consumer.Receive()
	})
}

// fetch counts fetches of a backlog: without a session as librdkafka does, and with one as Java's client does.
func (s *session) fetch(partitions int) error {
	backlog, err := s.conn.Create("backlog", int32(partitions))
	if err != nil {
		return err
	}
	s.conn.Produce(raw.Produce(backlog, recordSize, record.BuilderOptions{}), 12)
	for range batches {
		if _, err := s.conn.Do(); err != nil {
			return err
		}
	}
	for _, withSession := range []bool{false, true} {
		for _, n := range []int{1, partitions} {
			backlog.Partitions = int32(n)
			if err := s.catchUp(backlog, withSession); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUp counts the fetches of one who has read half of the backlog.
func (s *session) catchUp(from raw.Topic, withSession bool) error {
	partitions, version := int(from.Partitions), int16(11)
	if withSession {
		version = 18
	}
	request := raw.Fetch(from, fetchBytes)
	for i := range request.Topics[0].Partitions {
		request.Topics[0].Partitions[i].FetchOffset = batches / 2
	}
	s.conn.Prepare(request, version)
	var answer kmsg.FetchResponse
	if err := s.conn.Decode(&answer); err != nil {
		return err
	}
	var records int64
	for _, partition := range answer.Topics[0].Partitions {
		records += int64(len(partition.RecordBatches))
	}
	if records < int64(partitions)*fetchBytes/2 {
		return fmt.Errorf("a fetch from %d partitions finds %d bytes", partitions, records)
	}
	k := kind{name: fmt.Sprintf("fetch %d from %d partitions", version, partitions), exact: fetchBudget(partitions), batches: partitions}
	if withSession {
		k.name += ", session"
		if err := s.conn.Session(request, version); err != nil {
			return err
		}
	}
	return s.measure(k, records, s.conn.Do)
}

// measure counts the system calls of one request in steady state; an answer holds records bytes of records.
func (s *session) measure(k kind, records int64, one func() ([]byte, error)) error {
	const warm = 100
	size := -1
	for i := range warm + s.requests {
		if i == warm {
			s.broker.mark()
		}
		body, err := one()
		if err == nil && size >= 0 && len(body) != size {
			err = fmt.Errorf("an answer of %d bytes after one of %d", len(body), size)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		size = len(body)
	}
	made, vain, sendfile, err := s.broker.since(k.batch)
	s.all = append(s.all, counted{
		kind: k, requests: s.requests, made: made, vain: vain,
		records: records * int64(s.requests-1), viaSendfile: sendfile,
	})
	return err
}
