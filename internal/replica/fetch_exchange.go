package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The versions of Fetch that a follower speaks: 12 is the first with divergence by epochs, 13 names topics by id,
// 15 tells the broker epoch; 17 is the highest that a broker of Kafka 3.9 speaks to another.
const (
	fetchVersionLeast = 12
	fetchVersionMost  = 17
	fetchVersionByID  = 13
	// listVersion is the version of ListOffsets that a follower asks with.
	listVersion = 4
)

// connect dials the leader and asks what it speaks.
func (f *fetcher) connect(ctx context.Context) error {
	c := f.all.shared
	channel := peer.New(func(ctx context.Context) (net.Conn, error) { return c.Dial(ctx, f.name.leader) },
		fmt.Sprintf("broker-%d-fetcher-%d", c.Self, f.name.index))
	f.channel = channel
	q := kmsg.NewPtrApiVersionsRequest()
	q.SetVersion(3)
	q.ClientSoftwareName, q.ClientSoftwareVersion = "barnabas", strconv.Itoa(int(c.Self))
	response, err := f.do(ctx, q)
	if err != nil {
		return err
	}
	versions := response.(*kmsg.ApiVersionsResponse)
	for _, key := range versions.ApiKeys {
		if key.ApiKey == int16(kmsg.Fetch) {
			f.version = min(key.MaxVersion, fetchVersionMost)
		}
	}
	if f.version < fetchVersionLeast {
		return fmt.Errorf("the leader offers Fetch up to version %d, at least %d is needed", f.version, fetchVersionLeast)
	}
	return nil
}

// do sends a request and waits for the answer, for as long as replica.socket.timeout.ms allows.
func (f *fetcher) do(ctx context.Context, request kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := f.limit(ctx)
	defer cancel()
	l, err := f.await(cancel, nil, func() (l lent) {
		l.response, l.frame, l.err = f.channel.Lend(ctx, request)
		return l
	})
	return l.response, err
}

// poll sends a fetch and waits for the answer as do does. The leader lets it wait for records; where something else is to
// be fetched meanwhile, a second request makes a leader of ours answer at once, as it sees that there is more to come.
// One of Kafka's lets it wait on.
//
// Nothing else happens meanwhile as a rule, and then no goroutine is involved but the connection's: with few records
// to fetch, waking goroutines is most of what replication costs. A request that could fill the connection's buffers is
// not sent so, since whoever writes to a leader that hangs hears of nothing else.
func (f *fetcher) poll(ctx context.Context, request *kmsg.FetchRequest) (lent, error) {
	ctx, cancel := f.limit(ctx)
	defer cancel()
	call := func() (l lent) {
		l.response, l.frame, l.err = f.channel.Lend(ctx, request)
		return l
	}
	if small(request) {
		sent, err := f.channel.Send(ctx, request)
		if err != nil {
			return lent{}, err
		}
		var l lent
		if l.response, l.frame, err = sent.Wait(ctx, f.wake); !errors.Is(err, peer.ErrInterrupted) {
			return l, err
		}
		f.wakeUp() // for await
		call = func() (l lent) {
			l.response, l.frame, l.err = sent.Wait(ctx, nil)
			return l
		}
	}
	return f.await(cancel, func() {
		_, _ = f.channel.Do(ctx, kmsg.NewPtrApiVersionsRequest()) // whatever it answers, the fetch is answered first
	}, call)
}

// small reports whether a request has so few partitions, at about 60 bytes each, that it fits into the buffers of an
// idle connection.
func small(request *kmsg.FetchRequest) bool {
	const most = 200
	n := len(request.ForgottenTopics)
	for i := range request.Topics {
		n += len(request.Topics[i].Partitions)
	}
	return n <= most
}

// limit gives a request its time.
func (f *fetcher) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.all.shared.Config().Duration("replica.socket.timeout.ms"))
}

// await waits for what call returns, which cancel makes return. nudge, which may be nil, is called once when there is something else
// to do meanwhile.
//
//	changes, some partitions keep their orders    the leader has until the end of the time
//	changes, none keeps them                      twice replica.fetch.wait.max.ms from then on
//
// A leader that hangs, or whose machine has gone without a word, is not led by any more before long. Whoever waited
// for it to the end could not fetch from it for as long when it is back.
func (f *fetcher) await(cancel func(), nudge func(), call func() lent) (lent, error) {
	done := make(chan lent, 1)
	go func() { done <- call() }()
	var nudging sync.WaitGroup
	defer nudging.Wait()
	woken := false
	defer func() {
		if woken { // the changes are still to be taken over
			f.wakeUp()
		}
	}()
	var useless <-chan time.Time
	for {
		select {
		case l := <-done:
			return l, l.err
		case <-useless:
			cancel()
			<-done
			return lent{}, errUseless
		case <-f.wake:
		}
		woken = true
		if nudge != nil {
			nudging.Go(nudge)
			nudge = nil
		}
		if useless == nil && f.superseded() {
			useless = time.After(2 * f.all.shared.Config().Duration("replica.fetch.wait.max.ms"))
		}
	}
}

// errUseless ends a request whose answer nobody waits for any more.
var errUseless = errors.New("no answer since all partitions that are followed there have other orders")

// lent is an answer and the memory that it lies in.
type lent struct {
	response kmsg.Response
	frame    []byte
	err      error
}

// request makes the next fetch; nil where no partition is left to fetch.
func (f *fetcher) request() *kmsg.FetchRequest {
	c := f.all.shared
	settings := c.Config()
	q := kmsg.NewPtrFetchRequest()
	q.SetVersion(f.version)
	q.ReplicaID = int32(c.Self)
	q.ReplicaState.ID, q.ReplicaState.Epoch = int32(c.Self), int64(c.BrokerEpoch())
	// One that rests must not wait for the others; rounded up, or the end of a rest would be a storm of fetches.
	q.MaxWaitMillis = min(settings.Int("replica.fetch.wait.max.ms"), int32(f.rest(time.Now()).Milliseconds())+1)
	q.MinBytes = settings.Int("replica.fetch.min.bytes")
	q.MaxBytes = settings.Int("replica.fetch.response.max.bytes")
	if byID := f.nameless == 0 && f.version >= fetchVersionByID; byID != f.session.byID {
		f.session.reset()
		f.session.byID = byID
	}
	if !f.session.byID {
		q.SetVersion(fetchVersionLeast)
	}
	parts := f.next
	for _, part := range parts {
		part.queued = false // also of one that rests since then: it is queued again after that
	}
	f.next = f.next[:0]
	if f.session.epoch == 0 {
		parts = f.everything()
	}
	f.addPartitions(q, parts, settings.Int("replica.fetch.max.bytes"))
	if len(f.parts) == len(f.resting) {
		return nil
	}
	f.addForgotten(q)
	q.SessionID, q.SessionEpoch = f.session.id, f.session.epoch
	return q
}

// everything lists all partitions that do not rest, for a new session, which has heard of nothing.
func (f *fetcher) everything() []*following {
	clear(f.session.names)
	clear(f.session.forgotten)
	var parts []*following
	for _, part := range f.parts {
		if !part.resting {
			parts = append(parts, part)
		}
	}
	return parts
}

// addPartitions names partitions with their positions. Those that have got another order meanwhile are left out.
func (f *fetcher) addPartitions(q *kmsg.FetchRequest, parts []*following, maxBytes int32) {
	topics := map[string]int{}
	for _, part := range parts {
		if part.gone || part.resting {
			continue
		}
		at, ok := part.partition.position(part.epoch)
		if !ok {
			f.drop(part)
			continue
		}
		part.at, part.named = at, true
		tp := part.partition.tp
		delete(f.session.forgotten, tp)
		index, ok := topics[tp.Topic]
		if !ok {
			index = len(q.Topics)
			topics[tp.Topic] = index
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic, topic.TopicID = tp.Topic, part.partition.id // the version decides which one goes
			f.session.names[topic.TopicID] = tp.Topic
			q.Topics = append(q.Topics, topic)
		}
		one := kmsg.NewFetchRequestTopicPartition()
		one.Partition, one.CurrentLeaderEpoch, one.PartitionMaxBytes = tp.Partition, int32(part.epoch), maxBytes
		one.FetchOffset, one.LastFetchedEpoch, one.LogStartOffset = int64(at.offset), int32(at.last), int64(at.start)
		q.Topics[index].Partitions = append(q.Topics[index].Partitions, one)
	}
}

// addForgotten names the partitions that the leader is to forget.
func (f *fetcher) addForgotten(q *kmsg.FetchRequest) {
	for tp, id := range f.session.forgotten {
		topic := kmsg.NewFetchRequestForgottenTopic()
		topic.Topic, topic.TopicID, topic.Partitions = tp.Topic, id, []int32{tp.Partition}
		q.ForgottenTopics = append(q.ForgottenTopics, topic)
	}
	clear(f.session.forgotten)
}

// take does what an answer asks for.
func (f *fetcher) take(ctx context.Context, response kmsg.Response) error {
	answer, ok := response.(*kmsg.FetchResponse)
	if !ok {
		return fmt.Errorf("a fetch was answered with %T", response)
	}
	if !f.session.answered(answer) {
		for _, part := range f.parts {
			part.named = false
		}
		return nil
	}
	if answer.ErrorCode != 0 {
		return protocol.Code(answer.ErrorCode)
	}
	if f.session.epoch == 0 { // without a session everything is named each time
		for _, part := range f.parts {
			part.named = false
		}
	}
	for i := range answer.Topics {
		topic := &answer.Topics[i]
		name := topic.Topic
		if f.session.byID {
			name = f.session.names[topic.TopicID]
		}
		for j := range topic.Partitions {
			one := &topic.Partitions[j]
			part := f.parts[protocol.TopicPartition{Topic: name, Partition: one.Partition}]
			if part == nil {
				continue
			}
			step := part.partition.replicate(part.epoch, part.at, fetchedFrom(one))
			if err := f.act(ctx, part, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchedFrom reads the leader's answer about one partition.
func fetchedFrom(one *kmsg.FetchResponseTopicPartition) *fetched {
	got := &fetched{
		code: protocol.Code(one.ErrorCode), watermark: protocol.Offset(one.HighWatermark),
		start: protocol.Offset(one.LogStartOffset), batches: one.RecordBatches,
	}
	if d := one.DivergingEpoch; d.Epoch >= 0 || d.EndOffset >= 0 {
		got.diverging = &partition.EpochEnd{Epoch: protocol.LeaderEpoch(d.Epoch), End: protocol.Offset(d.EndOffset)}
	}
	return got
}

// askBounds asks the leader where the partition's log begins and ends there, and goes by it.
func (f *fetcher) askBounds(ctx context.Context, part *following) error {
	const latest, earliest = -1, -2
	var bounds [2]protocol.Offset
	for i, timestamp := range []int64{earliest, latest} {
		offset, err := f.listOffset(ctx, part, timestamp)
		if lost, ok := errors.AsType[*peer.Error](err); ok {
			return lost
		}
		if err != nil { // a code of Kafka's, as of a leader whose epoch is over
			f.retryLater(part)
			return nil
		}
		bounds[i] = offset
	}
	step := part.partition.outOfRange(part.epoch, bounds[0], bounds[1])
	return f.act(ctx, part, step)
}

// listOffset asks for one offset; as a follower, so that "latest" is the leader's log end.
func (f *fetcher) listOffset(ctx context.Context, part *following, timestamp int64) (protocol.Offset, error) {
	q := kmsg.NewPtrListOffsetsRequest()
	q.SetVersion(listVersion)
	q.ReplicaID = int32(f.all.shared.Self)
	one := kmsg.NewListOffsetsRequestTopicPartition()
	one.Partition, one.CurrentLeaderEpoch, one.Timestamp = part.partition.tp.Partition, int32(part.epoch), timestamp
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic, topic.Partitions = part.partition.tp.Topic, append(topic.Partitions, one)
	q.Topics = append(q.Topics, topic)
	response, err := f.do(ctx, q)
	if err != nil {
		return protocol.NoOffset, err
	}
	answer := response.(*kmsg.ListOffsetsResponse)
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return protocol.NoOffset, protocol.UnknownTopicOrPartition
	}
	found := answer.Topics[0].Partitions[0]
	if found.ErrorCode != 0 {
		return protocol.NoOffset, protocol.Code(found.ErrorCode)
	}
	return protocol.Offset(found.Offset), nil
}
