package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// pause is how long a client waits after an error, about.
const pause = 100 * time.Millisecond

// producer writes records that carry its name and a running number, one batch at a time.
type producer struct {
	client     *client
	name       string
	idempotent bool
	number     int
	id         protocol.ProducerID
	sequences  map[int32]int32
	sent       uint64
}

// run produces until the load stops.
func (p *producer) run(ctx context.Context) {
	defer p.client.close()
	w := p.client.world
	p.sequences, p.id = map[int32]int32{}, protocol.NoProducerID
	for !w.stopped() {
		if p.idempotent && p.id == protocol.NoProducerID {
			id, err := p.client.newProducerID(ctx)
			if err != nil {
				w.sleep(p.name, p.next(), pause)
				continue
			}
			p.id = id
		}
		p.batch(ctx)
		w.sleep(p.name, p.next(), w.plan.pace)
	}
}

func (p *producer) next() uint64 {
	p.sent++
	return p.sent
}

// batch writes one batch. An idempotent producer sends it until it is acknowledged, and again what it was not
// told the end of; another one gives up, and goes on with other records.
func (p *producer) batch(ctx context.Context) {
	w := p.client.world
	partition := int32(w.dice.throw("partition of "+p.name, p.next()) % partitions)
	var values []string
	for range 1 + w.dice.throw("size of "+p.name, p.next())%3 {
		p.number++
		values = append(values, fmt.Sprintf("%s/%d/%0*d", p.name, p.number, 1+w.dice.throw("length of "+p.name, p.next())%200, 0))
	}
	unsure := false
	for {
		base, sent, err := p.client.produce(ctx, named(partition), p.build(partition, values))
		unsure = unsure || sent
		if err != nil {
			p.client.fail(fmt.Sprintf("Produce to partition %d", partition), err)
		}
		switch {
		case err == nil:
			for i, value := range values {
				w.history.acknowledge(place{partition, base + int64(i)}, value)
			}
			p.sequences[partition] += int32(len(values))
			return
		case p.idempotent && fatal(err):
			w.history.violate("%s was told %v, although it sends one batch at a time", p.name, err)
			return
		case !p.idempotent:
			if !unsure {
				for _, value := range values {
					w.history.refuse(value)
				}
			}
			w.sleep(p.name, p.next(), pause)
			return
		case w.stopped() && w.abandoned():
			return
		}
		w.sleep(p.name, p.next(), pause)
	}
}

// fatal reports whether an idempotent producer must not hear this.
func fatal(err error) bool {
	switch code := protocol.CodeOf(err); code {
	case protocol.OutOfOrderSequenceNumber, protocol.DuplicateSequenceNumber, protocol.UnknownProducerID, protocol.InvalidProducerEpoch,
		protocol.CorruptMessage, protocol.InvalidRecord, protocol.UnknownServerError:
		var known protocol.Code
		return errors.As(err, &known) && known == code
	}
	return false
}

// build makes the batch.
func (p *producer) build(partition int32, values []string) []byte {
	o := record.BuilderOptions{}
	if p.idempotent {
		o.ProducerID, o.BaseSequence, o.Idempotent = p.id, p.sequences[partition], true
	}
	b := record.NewBuilder(o)
	for _, value := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(value))
	}
	return b.Build()
}

// valueBatch is a batch of one record of no producer.
func valueBatch(value string) []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	b.Append(time.Now().UnixMilli(), nil, []byte(value))
	return b.Build()
}

// valuesOf are the values of whole batches.
func valuesOf(batches []byte) (values []string) {
	for batch, err := range record.Batches(batches) {
		if err != nil {
			return values
		}
		for one, err := range batch.Records(nil) {
			if err != nil {
				return values
			}
			values = append(values, string(one.Value))
		}
	}
	return values
}

// reader reads all partitions from their beginnings, again and again.
type reader struct {
	client *client
	name   string
	next   [partitions]int64
	turns  uint64
}

// run reads until the load stops.
func (r *reader) run(ctx context.Context) {
	defer r.client.close()
	w := r.client.world
	for !w.stopped() {
		for partition := range int32(partitions) {
			if err := r.read(ctx, partition, nil); err != nil {
				r.turns++
				w.sleep(r.name, r.turns, pause)
			}
		}
	}
}

// read takes what a partition has next; what is read also goes into final, where there is one.
func (r *reader) read(ctx context.Context, partition int32, final map[place]string) error {
	w := r.client.world
	got, err := r.client.fetch(ctx, named(partition), r.next[partition])
	if protocol.CodeOf(err) == protocol.OffsetOutOfRange {
		w.history.violate("%s read partition %d up to offset %d, and now it is out of range", r.name, partition, r.next[partition])
		r.next[partition] = 0
	}
	if err != nil {
		return err
	}
	for batch, err := range record.Batches(got.RecordBatches) {
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err != nil || !batch.ValidCRC() {
			w.history.violate("%s read damaged bytes of partition %d at offset %d: %v", r.name, partition, r.next[partition], err)
			return nil
		}
		for one, err := range batch.Records(nil) {
			if err != nil {
				w.history.violate("%s read a damaged record of partition %d: %v", r.name, partition, err)
				return nil
			}
			offset := int64(one.Offset)
			if offset < r.next[partition] {
				continue
			}
			if offset > r.next[partition] {
				w.history.violate("%s read offset %d of partition %d after %d", r.name, offset, partition, r.next[partition]-1)
			}
			if offset >= got.HighWatermark {
				w.history.violate("%s read offset %d of partition %d, whose watermark is %d", r.name, offset, partition, got.HighWatermark)
			}
			at := place{partition, offset}
			w.history.read(r.name, at, string(one.Value))
			if final != nil {
				final[at] = string(one.Value)
			}
			r.next[partition] = offset + 1
		}
	}
	return nil
}

// committer commits rising offsets of a group, and looks whether they are kept.
type committer struct {
	client      *client
	name        string
	coordinator int32
	turns       uint64
	last        int64 // acknowledged
	sent        int64 // at most this may be found
	// unsure are those that failed: they may be carried out late, when the client has long gone on.
	unsure map[int64]bool
}

// run commits until the load stops.
func (c *committer) run(ctx context.Context) {
	defer c.client.close()
	w := c.client.world
	c.coordinator, c.last, c.sent, c.unsure = -1, -1, -1, map[int64]bool{}
	for !w.stopped() {
		if err := c.turn(ctx); err != nil {
			c.coordinator = -1
		}
		c.turns++
		w.sleep(c.name, c.turns, w.plan.commitPace)
	}
}

// turn reads what is committed, commits once, and reads it back.
func (c *committer) turn(ctx context.Context) error {
	if c.coordinator < 0 {
		if err := c.find(ctx); err != nil {
			return err
		}
	}
	before, found, err := c.last, int64(0), error(nil)
	if found, err = c.look(ctx); err != nil {
		return err
	}
	c.last = max(c.last, found)
	if err := c.commit(ctx); err != nil {
		c.unsure[c.sent] = true
		return err
	}
	// It has committed, so that it was no coordinator whose time was over that answered before.
	c.judge(before, found)
	before = c.last
	if found, err = c.look(ctx); err == nil {
		c.judge(before, found)
	}
	return err
}

// judge holds what a coordinator found against what it must have.
func (c *committer) judge(least, found int64) {
	if found < least && !c.unsure[found] || found > c.sent {
		c.client.world.history.violate("%s had committed %d and sent %d, and broker %d says %d", c.name, least, c.sent, c.coordinator, found)
	}
}

// find asks some broker for the coordinator.
func (c *committer) find(ctx context.Context) error {
	w := c.client.world
	q := kmsg.NewPtrFindCoordinatorRequest()
	q.Version, q.CoordinatorKey = 3, c.name
	answer, err := c.client.ask(ctx, int32(w.dice.throw("coordinator of "+c.name, c.turns)%uint64(len(w.machines))), q)
	if err != nil {
		return err
	}
	r := answer.(*kmsg.FindCoordinatorResponse)
	if r.ErrorCode != 0 {
		return protocol.Code(r.ErrorCode)
	}
	c.coordinator = r.NodeID
	return nil
}

func (c *committer) commit(ctx context.Context) error {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation = 7, c.name, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.LeaderEpoch = c.sent+1, -1
	q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	c.sent++
	answer, err := c.client.ask(ctx, c.coordinator, q)
	if err != nil {
		return err
	}
	if code := protocol.Code(answer.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode); code != protocol.None {
		return code
	}
	c.last = p.Offset
	c.client.world.history.count("commits", 1)
	return nil
}

// look reads the committed offset.
func (c *committer) look(ctx context.Context) (int64, error) {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version, q.Group = 5, c.name
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	answer, err := c.client.ask(ctx, c.coordinator, q)
	if err != nil {
		return -1, err
	}
	r := answer.(*kmsg.OffsetFetchResponse)
	if r.ErrorCode != 0 {
		return -1, protocol.Code(r.ErrorCode)
	}
	p := r.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return -1, protocol.Code(p.ErrorCode)
	}
	return p.Offset, nil
}
