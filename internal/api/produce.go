package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// produce appends one batch to each named partition (versions 3 to 13; 13 names topics by id).
//
// Everything up to the append runs in the connection's reader, since two pipelined batches of one
// idempotent producer must append in the order sent. With acks=all the answer then waits until every
// batch is committed; with acks=0 there is none, and an error closes the connection, which is all that
// such a producer can notice.
//
//	3  batches (message format 2)            10  the new leader in the answer (KIP-951)
//	5  log start offset in the answer        12  transactions without AddPartitionsToTxn (KIP-890)
//	7  zstd                                  13  topics by id
//	8  errors of single records (KIP-467)
func (a *API) produce(ctx context.Context, r *Request, body []byte) server.Reply {
	p := r.pools.produces.Get().(*produce)
	p.reset(r)
	if err := p.request.UnsafeReadFrom(body); err != nil { // strings are the frame's, see ownName
		return a.malformed(r, err)
	}
	acks := replica.Acks(p.request.Acks)
	switch {
	case p.request.TransactionID == nil && transactional(&p.request):
		a.refuseAll(p, protocol.TransactionalIDAuthorizationFailed)
	case acks < replica.AcksAll || acks > replica.AcksLeader:
		a.refuseAll(p, protocol.InvalidRequiredAcks)
	default:
		a.appendAll(ctx, p, acks)
	}
	switch {
	case acks == replica.AcksNone:
		failed := p.failed
		p.done(r)
		return server.Reply{NoResponse: true, Close: failed}
	case len(p.waits) == 0:
		response := p.encode(r)
		p.done(r)
		return server.Reply{Response: response}
	}
	// At least something, since 0 would be no timeout to the server.
	timeout := max(time.Duration(p.request.TimeoutMillis)*time.Millisecond, 1)
	p.request = kmsg.ProduceRequest{} // its records are in a buffer that belongs to somebody else from now on
	return server.Reply{Timeout: timeout, Phase: &committing{produce: p, request: r}}
}

// produce is one request in work.
//
// It is pooled, with the slices of its request and answer. request aliases the frame, and is let go before
// anything waits.
type produce struct {
	request  kmsg.ProduceRequest
	response kmsg.ProduceResponse
	waits    []produceWait
	failed   bool
}

// produceWait is a batch that is appended but perhaps not committed.
type produceWait struct {
	partition        *replica.Partition
	epoch            protocol.LeaderEpoch
	end              protocol.Offset
	topic, atInTopic int // where its answer is

	wait *replica.CommitWait // nil where the outcome was known at once
	err  error               // the outcome; of whoever tells it, until the wait no longer counts as open
}

func (p *produce) reset(r *Request) {
	p.request.Topics = p.request.Topics[:0]
	p.request.SetVersion(r.Version)
	p.response.Topics = p.response.Topics[:0]
	p.response.SetVersion(r.Version)
	p.waits, p.failed = p.waits[:0], false
}

// done gives the parts back for another request.
func (p *produce) done(r *Request) {
	for i := range p.request.Topics {
		p.request.Topics[i].Partitions = nil
	}
	r.pools.produces.Put(p)
}

func (p *produce) encode(r *Request) *server.Response { return encode(r, &p.response) }

// committing is the second phase of a request: it waits until every batch is committed or can no longer be, or its time
// is up. Whoever moves the last of the watermarks answers.
type committing struct {
	*produce
	request *Request
	open    atomic.Int32 // waits without an outcome, and one for as long as they are being begun
}

// Run is the second phase, see [server.Phase].
func (c *committing) Run(s *server.Sleep, why server.Why) *server.Response {
	if why&server.Begun != 0 {
		c.begin(s)
	}
	if why&server.TimeUp != 0 { // which a short time may be before the wait has begun
		c.giveUp(context.DeadlineExceeded)
	}
	if why&server.Ended != 0 {
		c.giveUp(protocol.NotLeaderOrFollower)
	}
	if c.open.Load() > 0 {
		return nil
	}
	for i := range c.waits {
		if w := &c.waits[i]; w.err != nil {
			answer := &c.response.Topics[w.topic].Partitions[w.atInTopic]
			answer.ErrorCode = int16(protocol.CodeOf(w.err))
			answer.BaseOffset, answer.LogStartOffset, answer.LogAppendTime = -1, -1, -1
		}
	}
	return c.encode(c.request)
}

func (c *committing) begin(s *server.Sleep) {
	c.open.Store(int32(len(c.waits)) + 1)
	for i := range c.waits {
		w := &c.waits[i]
		w.wait = w.partition.Await(w.epoch, w.end, func(err error) {
			w.err = err
			if c.open.Add(-1) == 0 {
				s.Wake()
			}
		})
	}
	c.open.Add(-1)
}

// giveUp ends the waits that have no outcome. One that is about to be told of its outcome keeps that.
func (c *committing) giveUp(why error) {
	for i := range c.waits {
		if w := &c.waits[i]; w.wait != nil && w.wait.GiveUp() {
			w.err = why
			c.open.Add(-1)
		}
	}
}

// transactional reports whether one of the batches belongs to a transaction, which the request's transactional
// id has to answer for.
func transactional(q *kmsg.ProduceRequest) bool {
	for i := range q.Topics {
		for j := range q.Topics[i].Partitions {
			if inTransaction(q.Topics[i].Partitions[j].Records) {
				return true
			}
		}
	}
	return false
}

func inTransaction(b record.Batch) bool {
	return len(b) >= record.HeaderSize && b.Magic() == 2 && b.Transactional()
}

// refuseAll answers every partition of the request with the same error.
func (a *API) refuseAll(p *produce, err error) {
	p.failed = true
	for i := range p.request.Topics {
		t := &p.request.Topics[i]
		answers := p.beginTopic(t, strings.Clone(t.Topic))
		for j := range t.Partitions {
			answers[j] = refusedProduce(t.Partitions[j].Partition, err)
		}
	}
}

// beginTopic adds a topic to the answer, with room for its partitions: that which the topic in its place had in a request
// before.
func (p *produce) beginTopic(t *kmsg.ProduceRequestTopic, name string) []kmsg.ProduceResponseTopicPartition {
	var answers []kmsg.ProduceResponseTopicPartition
	if at := len(p.response.Topics); at < cap(p.response.Topics) {
		answers = p.response.Topics[:at+1][at].Partitions
	}
	answers = slices.Grow(answers[:0], len(t.Partitions))[:len(t.Partitions)]
	clear(answers)
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.TopicID, topic.Partitions = name, t.TopicID, answers
	p.response.Topics = append(p.response.Topics, topic)
	return answers
}

// appendAll appends the request's batches, and collects what to wait for.
func (a *API) appendAll(ctx context.Context, p *produce, acks replica.Acks) {
	for i := range p.request.Topics {
		t := &p.request.Topics[i]
		name, err := a.topicName(p.request.Version >= 13, a.ownName(t.Topic), t.TopicID)
		answers := p.beginTopic(t, name)
		for j := range t.Partitions {
			part := &t.Partitions[j]
			if err != nil {
				answers[j] = refusedProduce(part.Partition, err)
				p.failed = true
				continue
			}
			wait, failure := a.appendOne(ctx, protocol.TopicPartition{Topic: name, Partition: part.Partition}, part.Records, acks, p.request.Version, &answers[j])
			if failure != nil {
				answers[j] = refusedProduce(part.Partition, failure)
				a.countFailedProduce(name)
				p.failed = true
			} else if wait.partition != nil {
				wait.topic, wait.atInTopic = i, j
				p.waits = append(p.waits, wait)
			}
		}
	}
}

// countFailedProduce counts a refused batch, if its topic exists.
func (a *API) countFailedProduce(topic string) {
	if a.View.Image().Topic(topic) != nil {
		a.traffic.Topic(topic).FailedProduces.Add(1)
	}
}

// topicName is the name of a topic that a request names by id, from the version on that does; otherwise
// the name itself.
func (a *API) topicName(byID bool, name string, id [16]byte) (string, error) {
	if !byID {
		return name, nil
	}
	if topic := a.View.Image().TopicByID(id); topic != nil {
		return topic.Name, nil
	}
	return "", protocol.UnknownTopicID
}

// appendOne appends one batch and fills in its answer. What it returns is to be waited for, unless its
// partition is nil.
//
// The checks go from cheap to expensive, and each has its own code: a client that refreshes its metadata for
// NOT_LEADER_OR_FOLLOWER must not have paid for decompression on this side first.
func (a *API) appendOne(ctx context.Context, tp protocol.TopicPartition, records []byte, acks replica.Acks, version int16, answer *kmsg.ProduceResponseTopicPartition) (produceWait, error) {
	var wait produceWait
	if protocol.IsInternalTopic(tp.Topic) {
		return wait, protocol.InvalidTopic
	}
	p, err := a.Replicas.Partition(tp)
	if err != nil {
		return wait, err
	}
	// Before the records are looked at, which costs more: a client with old metadata shall learn it cheaply.
	if err := p.CheckLeader(protocol.NoLeaderEpoch); err != nil {
		return wait, err
	}
	if inTransaction(records) { // nobody can have begun a transaction: there is no coordinator for them yet
		return wait, protocol.Errorf(protocol.InvalidProducerIDMapping, "Transactions are not supported yet.")
	}
	validated, err := p.Validate(records, record.FromClient, version, a.Now())
	if err != nil {
		return wait, err
	}
	appended, epoch, err := p.Append(ctx, validated, acks)
	if err != nil {
		return wait, err
	}
	*answer = kmsg.NewProduceResponseTopicPartition()
	answer.Partition, answer.BaseOffset = tp.Partition, int64(appended.First)
	answer.LogAppendTime, answer.LogStartOffset = appended.AppendTime, int64(appended.StartOffset)
	if !appended.Duplicate {
		counters := a.traffic.Topic(tp.Topic)
		counters.BytesIn.Add(int64(len(validated.Batch)))
		counters.RecordsIn.Add(int64(validated.Count))
	}
	if acks == replica.AcksAll {
		return toWaitFor(p, epoch, appended.Last+1)
	}
	return wait, nil
}

// toWaitFor is the wait for a batch to be committed by all in-sync replicas; none where it is. Alone in the set the
// append has committed itself, and the answer leaves from the reader. Where the set has become too small since it
// was looked at, that is no promise.
//
// NOT_ENOUGH_REPLICAS_AFTER_APPEND tells that the batch is in the log all the same; a producer that is
// idempotent may send it again without making a second one.
func toWaitFor(p *replica.Partition, epoch protocol.LeaderEpoch, end protocol.Offset) (produceWait, error) {
	if !p.Committed(epoch, end) {
		return produceWait{partition: p, epoch: epoch, end: end}, nil
	}
	if p.UnderMinimum() {
		return produceWait{}, protocol.NotEnoughReplicasAfterAppend
	}
	return produceWait{}, nil
}

// refusedProduce is the answer for a batch that was not appended.
func refusedProduce(partition int32, err error) kmsg.ProduceResponseTopicPartition {
	answer := kmsg.NewProduceResponseTopicPartition()
	answer.Partition, answer.ErrorCode = partition, int16(protocol.CodeOf(err))
	answer.BaseOffset, answer.LogAppendTime, answer.LogStartOffset = -1, -1, -1
	if coded, ok := errors.AsType[*protocol.Error](err); ok {
		answer.ErrorMessage = &coded.Message
	}
	for _, one := range record.RecordErrorsOf(err) {
		e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
		e.RelativeOffset, e.ErrorMessage = one.Index, &one.Message
		answer.ErrorRecords = append(answer.ErrorRecords, e)
	}
	return answer
}
