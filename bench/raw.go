package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// requests are a load of ready-made requests to produce, one batch each, that a few connections send again and again:
// the generator costs next to nothing, so that hundreds of connections and thousands of partitions can be loaded.
type requests struct {
	topic       string
	partitions  int
	connections int
	// inFlight is how many requests a connection has under way.
	inFlight int
	// batch is the bytes of a request's batch, about; record those of a value in it.
	batch, record int
	acks          int16
	count         int64 // of all connections
}

// The versions are the last that are not flexible, so that the floor servers understand them.
const rawProduceVersion, rawFetchVersion = 8, 11

// loaded are the connections of a load, and the requests that go over them.
type loaded struct {
	requests
	conns  []net.Conn
	in     []*bufio.Reader
	frames [][]byte // a request for each partition
	size   int      // bytes of the batch in each
}

// open connects, one connection after another, since hundreds at once are more than a listener's backlog takes, and has a
// request answered on each and for each partition: what a first record in a partition opens is open afterwards.
func (q requests) open(ctx context.Context, s *servers.Server) (*loaded, error) {
	l := &loaded{requests: q, frames: make([][]byte, q.partitions)}
	for number := range l.frames {
		batch := q.makeBatch()
		l.size = len(batch)
		l.frames[number] = produceFrame(q.topic, int32(number), q.acks, batch)
	}
	for range q.connections {
		conn, err := dialUntil(ctx, s.Address)
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns, l.in = append(l.conns, conn), append(l.in, bufio.NewReaderSize(conn, 4<<10))
	}
	for i := range max(q.connections, q.partitions) {
		if err := l.exchange(i%q.connections, i%q.partitions); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *loaded) close() {
	for _, conn := range l.conns {
		conn.Close()
	}
}

// exchange sends a request to a partition, and waits for the answer.
func (l *loaded) exchange(i, partition int) error {
	if _, err := l.conns[i].Write(l.frames[partition]); err != nil {
		return err
	}
	return readProduced(l.in[i], len(l.topic))
}

// send sends the load. Latency is a request's time to its answer; bytes are those of the batches.
func (l *loaded) send() (*perf.Measured, error) {
	measured := make([]perf.Measured, l.connections)
	errs := make([]error, l.connections)
	began := time.Now()
	var all sync.WaitGroup
	for i := range l.connections {
		all.Go(func() { errs[i] = l.share(i, &measured[i]) })
	}
	all.Wait()
	total := &perf.Measured{Elapsed: time.Since(began)}
	for i := range measured {
		total.Merge(&measured[i])
	}
	return total, errors.Join(errs...)
}

// share sends one connection's share; all together go through the partitions in turn.
func (l *loaded) share(i int, m *perf.Measured) error {
	share := l.count / int64(l.connections)
	sent := make([]time.Time, l.inFlight) // by the number of the request, modulo
	next := i * int(share)
	for done, under := int64(0), int64(0); done < share; { // under are under way
		for under < int64(l.inFlight) && done+under < share {
			sent[(done+under)%int64(l.inFlight)] = time.Now()
			if _, err := l.conns[i].Write(l.frames[next%len(l.frames)]); err != nil {
				return err
			}
			next++
			under++
		}
		if err := readProduced(l.in[i], len(l.topic)); err != nil {
			return err
		}
		m.Add(time.Since(sent[done%int64(l.inFlight)]), l.size)
		done, under = done+1, under-1
	}
	return nil
}

// dialUntil connects; the connection breaks when ctx ends.
func dialUntil(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return conn, nil
}

// readProduced reads an answer for one partition, and fails where that has an error.
//
//	length | correlation id | 1 topic | name | 1 partition | number int32 | error int16 | …
func readProduced(in *bufio.Reader, name int) error {
	head, err := in.Peek(4)
	if err != nil {
		return err
	}
	size := 4 + int(binary.BigEndian.Uint32(head))
	answer, err := in.Peek(size)
	if err != nil {
		return err
	}
	at := 4 + 4 + 4 + 2 + name + 4 + 4
	if size < at+2 {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	code := int16(binary.BigEndian.Uint16(answer[at:]))
	_, err = in.Discard(size)
	return errors.Join(kerr.ErrorForCode(code), err)
}

// makeBatch makes a batch of records of noise.
func (q requests) makeBatch() []byte {
	values := perf.Noise(q.record, 0)
	b := record.NewBuilder(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1})
	now := time.Now().UnixMilli()
	for i := range int64(max(1, q.batch/(q.record+10))) {
		b.Append(now, nil, values(i))
	}
	return b.Build()
}

func produceFrame(topic string, number int32, acks int16, batch []byte) []byte {
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(rawProduceVersion)
	request.Acks, request.TimeoutMillis = acks, 30_000
	t, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = number, batch
	t.Topic, t.Partitions = topic, []kmsg.ProduceRequestTopicPartition{p}
	request.Topics = append(request.Topics, t)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, 0)
}

// fetcher reads one partition over a connection of its own, with requests of fixed bytes but for the offset.
type fetcher struct {
	conn   net.Conn
	in     *bufio.Reader
	frame  []byte
	offset []byte // where the frame has the offset
	name   int
}

// newFetcher connects. A request waits up to wait for a record, and gets at most most bytes, but always a batch.
func newFetcher(ctx context.Context, s *servers.Server, topic string, number int32, wait time.Duration, most int32) (*fetcher, error) {
	conn, err := dialUntil(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrFetchRequest()
	request.SetVersion(rawFetchVersion)
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes, request.SessionEpoch = int32(wait.Milliseconds()), 1, most, -1
	t, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.PartitionMaxBytes, p.CurrentLeaderEpoch, p.FetchOffset = number, most, -1, 0x5a5a5a5a5a5a5a5a
	t.Topic, t.Partitions = topic, []kmsg.FetchRequestTopicPartition{p}
	request.Topics = append(request.Topics, t)
	f := &fetcher{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), name: len(topic)}
	f.frame = kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, 0)
	for at := range f.frame {
		if at+8 <= len(f.frame) && binary.BigEndian.Uint64(f.frame[at:]) == 0x5a5a5a5a5a5a5a5a {
			f.offset = f.frame[at : at+8]
			break
		}
	}
	return f, nil
}

// fetch asks for records from an offset on, and returns the offset behind those that came and their bytes.
//
//	length | correlation id | throttle int32 | error int16 | session int32 | 1 topic | name | 1 partition |
//	number int32 | error int16 | high watermark, last stable offset, log start int64 | aborted int32 (none) |
//	preferred replica int32 | bytes int32 | batches
//
// A batch has its base offset in the first 8 bytes, its length behind them, the last offset's delta at 23.
func (f *fetcher) fetch(offset int64) (next int64, bytes int, err error) {
	binary.BigEndian.PutUint64(f.offset, uint64(offset))
	if _, err := f.conn.Write(f.frame); err != nil {
		return 0, 0, err
	}
	head := make([]byte, 4+4+4+2+4+4+2+f.name+4+4+2+8+8+8+4+4+4)
	if _, err := io.ReadFull(f.in, head); err != nil {
		return 0, 0, err
	}
	at := 4 + 4 + 4 + 2 + 4 + 4 + 2 + f.name + 4 + 4
	if code := int16(binary.BigEndian.Uint16(head[at:])); code != 0 {
		return 0, 0, kerr.ErrorForCode(code)
	}
	rest := int(binary.BigEndian.Uint32(head)) + 4 - len(head)
	next = offset
	var batch [27]byte
	for rest >= len(batch) {
		if _, err := io.ReadFull(f.in, batch[:]); err != nil {
			return 0, 0, err
		}
		size := min(12+int(binary.BigEndian.Uint32(batch[8:])), rest)
		if _, err := f.in.Discard(size - len(batch)); err != nil {
			return 0, 0, err
		}
		bytes, rest = bytes+size, rest-size
		next = int64(binary.BigEndian.Uint64(batch[:])) + int64(binary.BigEndian.Uint32(batch[23:])) + 1
	}
	_, err = f.in.Discard(rest)
	return next, bytes, err
}
