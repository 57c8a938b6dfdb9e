package broker_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestPowerCut cuts the power of a broker under load at random operations of its disk, starts a broker on
// what is left, and holds it to what was promised before the cut:
//
//   - it starts, serves, and every log is a prefix of the one that was written
//   - topics with flush.messages=1 have every acknowledged record in its place
//   - acknowledged topics, deletions and properties are as acknowledged, or as asked for afterwards
//   - committed offsets never go back, with flush.messages=1 on their topic
//   - producers go on where their records end: a repeated batch is a duplicate, a skipped one is refused
//
// BARNABAS_POWER_CUTS=N tries N seeds instead of a few, from BARNABAS_SEED on.
func TestPowerCut(t *testing.T) {
	seeds, first := 3, 1
	if n, err := strconv.Atoi(os.Getenv("BARNABAS_POWER_CUTS")); err == nil {
		seeds = n
	}
	if n, err := strconv.Atoi(os.Getenv("BARNABAS_SEED")); err == nil {
		first = n
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { cutPower(t, uint64(seed)) })
	}
}

// Topics of the load: with a sync after every batch, and without.
const (
	synced = "synced"
	loose  = "loose"
)

// loadPartitions is how many partitions each of them has.
const loadPartitions = 2

// cut is one power cut: what it left, and what was promised until then.
type cut struct {
	fs       *vfs.Memory
	promised promises
	keep     float64
}

func cutPower(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	memory := vfs.NewMemory()
	disk := vfs.NewFaulty(memory)
	s := &site{t: t, fs: disk, boot: "first", properties: map[string]string{"offsets.topic.num.partitions": "2"}}
	b := s.start()
	l := &load{t: t, broker: b}
	l.prepare()

	var cuts []cut
	next := disk.Mutations() + random.Int64N(50)
	enough := make(chan struct{})
	var turn sync.Mutex // operations go on beside each other
	disk.BeforeMutation(func(n int64, _ vfs.Op, _ string) {
		turn.Lock()
		defer turn.Unlock()
		if n < next || len(cuts) == 6 {
			return
		}
		next = n + 1 + random.Int64N(300)
		keep := []float64{0, 0.5, 1}[len(cuts)%3]
		promised := l.promises() // before the clone: what is promised later need not be in it
		cuts = append(cuts, cut{memory.CrashClone(random, keep), promised, keep})
		if len(cuts) == 6 {
			close(enough)
		}
	})
	l.run(enough)
	written := l.read()
	b.crash()
	for i, c := range cuts {
		t.Run(fmt.Sprintf("cut %d keep %v", i+1, c.keep), func(t *testing.T) { c.check(t, l, written, random) })
	}
}

// load is what clients do to the broker, with what they were promised.
type load struct {
	t      *testing.T
	broker *running
	stop   atomic.Bool

	mu   sync.Mutex
	kept promises
	// asked is what was asked for last, acknowledged or not.
	retention, offset int64
	started           int64 // log start of synced-1
	topics            map[string]bool
}

// promises is what was acknowledged.
type promises struct {
	records   map[protocol.TopicPartition]map[int64]string
	batches   map[protocol.TopicPartition]sentBatch // the last one acknowledged
	topics    map[string]protocol.TopicID
	deleted   map[string]bool
	retention int64 // of synced
	offset    int64 // committed
}

// sentBatch is a batch of an idempotent producer.
type sentBatch struct {
	producer protocol.ProducerID
	sequence int32
	values   []string
	offset   int64
}

func (b sentBatch) bytes() []byte {
	return batch(record.BuilderOptions{Idempotent: true, ProducerID: b.producer, BaseSequence: b.sequence}, b.values...)
}

func (p promises) clone() promises {
	p.topics, p.deleted, p.batches = maps.Clone(p.topics), maps.Clone(p.deleted), maps.Clone(p.batches)
	records := map[protocol.TopicPartition]map[int64]string{}
	for tp, of := range p.records {
		records[tp] = maps.Clone(of)
	}
	p.records = records
	return p
}

// promises is a copy of what was acknowledged so far.
func (l *load) promises() promises {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.clone()
}

// prepare makes the topics, with few batches a segment, so that logs roll all the time.
func (l *load) prepare() {
	c := l.broker.dial()
	l.retention = retentionFrom
	l.kept = promises{
		offset: -1, retention: retentionFrom,
		records: map[protocol.TopicPartition]map[int64]string{}, batches: map[protocol.TopicPartition]sentBatch{},
		topics: map[string]protocol.TopicID{}, deleted: map[string]bool{},
	}
	l.topics = map[string]bool{}
	small := []string{"segment.index.bytes", "64", "index.interval.bytes", "0"}
	l.kept.topics[synced] = c.create(synced, loadPartitions, append(small, "flush.messages", "1", "retention.ms", fmt.Sprint(retentionFrom))...)
	l.kept.topics[loose] = c.create(loose, loadPartitions, small...)
	c.warm("group")
	if code := c.alter(protocol.GroupMetadataTopic, "flush.messages", "1"); code != protocol.None {
		l.t.Fatal(code)
	}
}

// run lets all clients work until enough is closed.
func (l *load) run(enough <-chan struct{}) {
	var clients sync.WaitGroup
	client := func(work func(c *conn, turn int64) error) {
		c := l.broker.dial()
		clients.Go(func() {
			for turn := int64(1); !l.stop.Load(); turn++ {
				if err := work(c, turn); err != nil {
					l.t.Error(err)
					return
				}
			}
		})
	}
	for partition := range int32(loadPartitions) {
		client(l.producer(synced, partition))
		client(l.producer(loose, partition))
	}
	client(l.commit)
	client(l.administrate)
	client(l.alter)
	<-enough
	l.stop.Store(true)
	clients.Wait()
}

// producer writes idempotent batches to one partition.
func (l *load) producer(topic string, partition int32) func(c *conn, turn int64) error {
	tp := protocol.TopicPartition{Topic: topic, Partition: partition}
	next := sentBatch{producer: protocol.NoProducerID}
	return func(c *conn, turn int64) error {
		if next.producer == protocol.NoProducerID {
			response, err := c.request(&kmsg.InitProducerIDRequest{Version: 1, TransactionTimeoutMillis: 1000})
			if err != nil {
				return err
			}
			next.producer = protocol.ProducerID(response.(*kmsg.InitProducerIDResponse).ProducerID)
		}
		next.values = nil
		for i := range 1 + turn%3 {
			next.values = append(next.values, fmt.Sprintf("%d/%d", turn, i))
		}
		response, err := c.request(produceRequest(topic, partition, -1, next.bytes()))
		if err != nil {
			return err
		}
		answer := response.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if answer.ErrorCode != 0 {
			return fmt.Errorf("producing to %s: %w", tp, protocol.Code(answer.ErrorCode))
		}
		next.offset = answer.BaseOffset
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.kept.records[tp] == nil {
			l.kept.records[tp] = map[int64]string{}
		}
		for i, value := range next.values {
			l.kept.records[tp][answer.BaseOffset+int64(i)] = value
		}
		l.kept.batches[tp] = next
		next.sequence += int32(len(next.values))
		return nil
	}
}

// commit commits offsets that rise.
func (l *load) commit(c *conn, turn int64) error {
	l.mu.Lock()
	l.offset = turn
	l.mu.Unlock()
	response, err := c.request(commitRequest("group", synced, 0, turn))
	if err != nil {
		return err
	}
	if code := response.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		return fmt.Errorf("committing: %w", protocol.Code(code))
	}
	l.mu.Lock()
	l.kept.offset = turn
	l.mu.Unlock()
	return nil
}

// administrate makes topics, deletes every other one, and deletes records.
func (l *load) administrate(c *conn, turn int64) error {
	name := fmt.Sprint("topic-", turn)
	l.mu.Lock()
	l.topics[name] = turn%2 == 0 // to be deleted
	l.mu.Unlock()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, int32(patience.Milliseconds())
	create.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: name, NumPartitions: 2, ReplicationFactor: 1}}
	response, err := c.request(create)
	if err != nil {
		return err
	}
	created := response.(*kmsg.CreateTopicsResponse).Topics[0]
	if created.ErrorCode != 0 {
		return fmt.Errorf("creating %s: %w", name, protocol.Code(created.ErrorCode))
	}
	l.mu.Lock()
	l.kept.topics[name] = created.TopicID
	l.mu.Unlock()
	if turn%2 != 0 {
		return l.deleteRecords(c, turn)
	}
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis = 5, int32(patience.Milliseconds())
	remove.TopicNames = []string{name}
	response, err = c.request(remove)
	if err != nil {
		return err
	}
	if code := response.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("deleting %s: %w", name, protocol.Code(code))
	}
	l.mu.Lock()
	l.kept.deleted[name] = true
	l.mu.Unlock()
	return nil
}

// deleteRecords moves the start of synced-1 forward, slowly.
func (l *load) deleteRecords(c *conn, turn int64) error {
	l.mu.Lock()
	from, to := l.started, min(turn, int64(len(l.kept.records[protocol.TopicPartition{Topic: synced, Partition: 1}])))
	l.started = max(from, to)
	l.mu.Unlock()
	if to <= from {
		return nil
	}
	q := kmsg.NewPtrDeleteRecordsRequest()
	q.TimeoutMillis = int32(patience.Milliseconds())
	q.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: synced, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 1, Offset: to}}}}
	response, err := c.request(q)
	if err != nil {
		return err
	}
	if code := response.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		return fmt.Errorf("deleting records: %w", protocol.Code(code))
	}
	return nil
}

// retentionFrom is the first value that alter sets.
const retentionFrom = 1 << 40

// alter raises a property of a topic.
func (l *load) alter(c *conn, turn int64) error {
	l.mu.Lock()
	l.retention = retentionFrom + turn
	l.mu.Unlock()
	response, err := c.request(alterRequest(synced, "retention.ms", fmt.Sprint(retentionFrom+turn)))
	if err != nil {
		return err
	}
	if code := response.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode; code != 0 {
		return fmt.Errorf("altering: %w", protocol.Code(code))
	}
	l.mu.Lock()
	l.kept.retention = retentionFrom + turn
	l.mu.Unlock()
	return nil
}

// read is what stands in the logs in the end.
func (l *load) read() map[protocol.TopicPartition][]consumed {
	c := l.broker.dial()
	written := map[protocol.TopicPartition][]consumed{}
	for _, topic := range []string{synced, loose} {
		for partition := range int32(loadPartitions) {
			written[protocol.TopicPartition{Topic: topic, Partition: partition}] = c.readAll(topic, partition)
		}
	}
	return written
}

// check starts a broker on what a power cut left. Now and then the power fails again while it starts.
func (c cut) check(t *testing.T, l *load, written map[protocol.TopicPartition][]consumed, random *rand.Rand) {
	s := &site{t: t, fs: c.fs, boot: "second", properties: l.broker.site.properties}
	if random.IntN(3) == 0 {
		s.fs = cutAgain(t, s, c.fs, random)
	}
	b := s.start()
	client := b.dial()
	c.checkTopics(client, l)
	for tp, all := range written {
		c.checkLog(client, tp, all)
	}
	if got := client.committed("group", synced, 0); got < c.promised.offset || got > l.offset {
		t.Errorf("offset %d is committed, acknowledged was %d, asked for at most %d", got, c.promised.offset, l.offset)
	}
}

// cutAgain starts a broker, cuts the power at an operation of its start or its stop, and returns what is
// left.
func cutAgain(t *testing.T, s *site, left *vfs.Memory, random *rand.Rand) *vfs.Memory {
	disk := vfs.NewFaulty(left)
	at := 1 + random.Int64N(60)
	var once sync.Once
	var again *vfs.Memory
	disk.BeforeMutation(func(n int64, _ vfs.Op, _ string) {
		if n >= at {
			once.Do(func() { again = left.CrashClone(random, 0.5) })
		}
	})
	first := *s
	first.fs, first.forgives = disk, true
	b, err := first.try()
	if err != nil {
		t.Fatal(err)
	}
	b.stop()
	if again == nil {
		return left
	}
	return again
}

func (c cut) checkTopics(client *conn, l *load) {
	client.t.Helper()
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	found := map[string]kmsg.MetadataResponseTopic{}
	for _, topic := range ask[*kmsg.MetadataResponse](client, q).Topics {
		found[*topic.Topic] = topic
	}
	for name, id := range c.promised.topics {
		topic, ok := found[name]
		switch {
		case c.promised.deleted[name]:
			if ok {
				client.t.Errorf("%s is there, its deletion was acknowledged", name)
			}
		case !ok && !l.topics[name]:
			client.t.Errorf("%s is not there, its creation was acknowledged", name)
		case ok && (protocol.TopicID(topic.TopicID) != id || len(topic.Partitions) != 2):
			client.t.Errorf("%s has id %x and %d partitions, acknowledged were %x and 2", name, topic.TopicID, len(topic.Partitions), id)
		}
	}
	for name, topic := range found {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				client.t.Errorf("partition %d of %s: %v", p.Partition, name, protocol.Code(p.ErrorCode))
			}
		}
	}
	got, _ := strconv.ParseInt(client.property(synced, "retention.ms"), 10, 64)
	if got < c.promised.retention || got > l.retention {
		client.t.Errorf("retention.ms is %d, acknowledged was %d, asked for at most %d", got, c.promised.retention, l.retention)
	}
}

// checkLog compares a log with all that was ever written, and goes on where it ends.
func (c cut) checkLog(client *conn, tp protocol.TopicPartition, written []consumed) {
	client.t.Helper()
	left := client.readAll(tp.Topic, tp.Partition)
	byOffset := map[int64]string{}
	for _, r := range written {
		byOffset[r.offset] = r.value
	}
	next := int64(-1)
	for _, r := range left {
		if next >= 0 && r.offset != next {
			client.t.Fatalf("%s: offset %d follows %d", tp, r.offset, next-1)
		}
		next = r.offset + 1
		if want, ok := byOffset[r.offset]; ok && want != r.value {
			client.t.Fatalf("%s: %q is at %d, written was %q", tp, r.value, r.offset, want)
		}
	}
	start, end := client.offset(tp.Topic, tp.Partition, -2), client.offset(tp.Topic, tp.Partition, -1)
	if next >= 0 && (left[0].offset != start || next != end) {
		client.t.Errorf("%s: records from %d to %d, offsets are said to be %d to %d", tp, left[0].offset, next, start, end)
	}
	if tp.Topic == synced {
		for _, offset := range slices.Sorted(maps.Keys(c.promised.records[tp])) {
			if offset >= end {
				client.t.Errorf("%s ends at %d: the acknowledged record at %d is missing", tp, end, offset)
				break
			}
		}
	}
	if sent, ok := c.promised.batches[tp]; ok && sent.offset+int64(len(sent.values)) <= end {
		checkProducer(client, tp, sent, end)
	}
}

// checkProducer goes on as the producer whose batch was acknowledged last would. Later ones may be in the
// log too.
func checkProducer(client *conn, tp protocol.TopicPartition, sent sentBatch, end int64) {
	client.t.Helper()
	again := client.produce(tp.Topic, tp.Partition, sent.bytes())
	behind := end - sent.offset - int64(len(sent.values))
	if again.ErrorCode != 0 || again.BaseOffset != sent.offset {
		client.t.Errorf("%s: a repeated batch got %v at %d, want a duplicate at %d (%d records are behind it)",
			tp, protocol.Code(again.ErrorCode), again.BaseOffset, sent.offset, behind)
	}
	skipping := sent
	skipping.sequence += int32(len(sent.values)) + int32(behind) + 5
	if answer := client.produce(tp.Topic, tp.Partition, skipping.bytes()); protocol.Code(answer.ErrorCode) != protocol.OutOfOrderSequenceNumber {
		client.t.Errorf("%s: a batch behind a gap got %v", tp, protocol.Code(answer.ErrorCode))
	}
	next := sent
	next.sequence += int32(len(sent.values)) + int32(behind)
	if answer := client.produce(tp.Topic, tp.Partition, next.bytes()); answer.ErrorCode != 0 || answer.BaseOffset != end {
		client.t.Errorf("%s: the next batch got %v at %d, want %d", tp, protocol.Code(answer.ErrorCode), answer.BaseOffset, end)
	}
}
