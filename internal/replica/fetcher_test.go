package replica

import (
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// teller is a leader that answers as the test says. ApiVersions it answers by itself.
type teller struct {
	t      *testing.T
	most   int16 // of Fetch
	asked  chan kmsg.Request
	reply  chan kmsg.Response
	topic  kmsg.FetchResponseTopic // as the last fetch that named one did
	nudges int                     // ApiVersions behind the first on a connection
	down   atomic.Bool
}

func newTeller(t *testing.T, most int16) *teller {
	return &teller{t: t, most: most, asked: make(chan kmsg.Request), reply: make(chan kmsg.Response)}
}

// dial connects to the teller.
func (l *teller) dial(ctx context.Context, leader protocol.BrokerID) (net.Conn, error) {
	if l.down.Load() || leader != 1 {
		return nil, io.ErrClosedPipe
	}
	near, far := net.Pipe()
	requests := make(chan []byte, 8) // what has been read before the one before it is answered
	go l.read(far, requests)
	go l.serve(far, requests)
	return near, nil
}

func (l *teller) read(conn net.Conn, requests chan<- []byte) {
	defer close(requests)
	for {
		var prefix [4]byte
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			return
		}
		length, err := wire.FrameLength(prefix[:], 1<<20)
		if err != nil {
			return
		}
		frame := make([]byte, length)
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		requests <- frame
	}
}

func (l *teller) serve(conn net.Conn, requests <-chan []byte) {
	defer conn.Close()
	first := true
	for frame := range requests {
		header, body, err := wire.ParseRequestHeader(frame)
		if err != nil {
			return
		}
		q := kmsg.RequestForKey(header.Key)
		q.SetVersion(header.Version)
		if err := q.ReadFrom(body); err != nil {
			l.t.Errorf("a request that does not decode: %v", err)
			return
		}
		var response kmsg.Response
		if _, ok := q.(*kmsg.ApiVersionsRequest); ok {
			versions := kmsg.NewPtrApiVersionsResponse()
			versions.SetVersion(header.Version)
			versions.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 1, MinVersion: 4, MaxVersion: l.most}}
			if response = versions; !first {
				l.nudges++
			}
			first = false
		} else {
			l.asked <- q
			if response = <-l.reply; response == nil {
				return
			}
		}
		out := wire.AppendInt32(nil, 0)
		out = wire.AppendResponseHeader(out, header.Key, header.Version, header.CorrelationID)
		out = response.AppendTo(out)
		wire.AppendInt32(out[:0], int32(len(out)-4))
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// answer answers a fetch.
func (l *teller) answer(q *kmsg.FetchRequest, session int32, parts ...kmsg.FetchResponseTopicPartition) {
	response := q.ResponseKind().(*kmsg.FetchResponse)
	response.SessionID = session
	for _, named := range q.Topics {
		l.topic.Topic, l.topic.TopicID = named.Topic, named.TopicID
	}
	if l.topic.Partitions = parts; len(parts) > 0 {
		response.Topics = append(response.Topics, l.topic)
	}
	l.reply <- response
}

func part(number int32, code protocol.Code) kmsg.FetchResponseTopicPartition {
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.ErrorCode = number, int16(code)
	return p
}

// fetching is a follower, broker 2, of partitions of topic t that broker 1 leads.
type fetching struct {
	*stage
	*teller
	cancel context.CancelFunc
	ended  chan struct{}
}

func newFetching(t *testing.T, most int16) *fetching {
	f := &fetching{stage: newStageOf(t, 2, map[string]protocol.TopicID{}), teller: newTeller(t, most), ended: make(chan struct{})}
	f.stage.options.Dial = f.dial
	f.stage.options.Controller = func(context.Context, kmsg.Request) (kmsg.Response, error) { return nil, protocol.NotController }
	f.stage.options.BrokerEpoch = func() protocol.BrokerEpoch { return 77 }
	return f
}

// run begins to fetch, after the first orders, so that the first request names all of them.
func (f *fetching) run() {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() { defer close(f.ended); f.Run(ctx) }()
}

// stop ends the fetcher; a request that waits for its answer gets none.
func (f *fetching) stop() {
	f.cancel()
	for {
		select {
		case <-f.asked:
			f.reply <- nil
		case <-f.ended:
			return
		}
	}
}

// follow tells the follower of partitions.
func (f *fetching) follow(epoch protocol.LeaderEpoch, numbers ...int32) {
	f.stage.t.Helper()
	var orders []metadata.ReplicaChange
	for _, number := range numbers {
		order := f.order("t", metadata.Follow, epoch, 1, 2)
		order.Partition, order.State.Leader = number, 1
		orders = append(orders, order)
	}
	for _, err := range f.tell(orders...) {
		f.stage.t.Fatal(err)
	}
	if f.cancel == nil {
		f.run()
	}
}

// next is the next fetch, and the partitions that it names.
func (f *fetching) next() (*kmsg.FetchRequest, []int32) {
	f.stage.t.Helper()
	q, ok := (<-f.asked).(*kmsg.FetchRequest)
	if !ok {
		f.stage.t.Fatal("no fetch")
	}
	var named []int32
	for _, topic := range q.Topics {
		for _, p := range topic.Partitions {
			named = append(named, p.Partition)
		}
	}
	slices.Sort(named)
	return q, named
}

func TestFetchSessionNamesWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 18)
		defer f.stop()
		f.follow(3, 0, 1)
		q, named := f.next()
		if q.Version != 17 || q.SessionEpoch != 0 || q.SessionID != 0 || !slices.Equal(named, []int32{0, 1}) {
			t.Errorf("version %d, session %d epoch %d names %v", q.Version, q.SessionID, q.SessionEpoch, named)
		}
		if q.ReplicaState.ID != 2 || q.ReplicaState.Epoch != 77 || q.Topics[0].TopicID != f.id("t") {
			t.Errorf("replica %+v, topic %x", q.ReplicaState, q.Topics[0].TopicID)
		}
		if p := q.Topics[0].Partitions[0]; p.CurrentLeaderEpoch != 3 || p.FetchOffset != 0 || p.LastFetchedEpoch != -1 {
			t.Errorf("%+v", p)
		}
		f.answer(q, 5, part(0, 0), part(1, 0))
		q, named = f.next()
		if q.SessionID != 5 || q.SessionEpoch != 1 || len(named) != 0 {
			t.Errorf("session %d epoch %d names %v, want nothing new", q.SessionID, q.SessionEpoch, named)
		}
		batch := f.stage.validated(f.partition(0), 2).Batch
		batch.SetLeaderEpoch(3)
		got := part(0, 0)
		got.RecordBatches, got.HighWatermark = batch, 1
		f.answer(q, 5, got)
		q, named = f.next()
		if !slices.Equal(named, []int32{0}) || q.Topics[0].Partitions[0].FetchOffset != 2 || q.Topics[0].Partitions[0].LastFetchedEpoch != 3 {
			t.Errorf("names %v, want partition 0 from offset 2", named)
		}
		if b := f.partition(0).Bounds(); b.End != 2 || b.HighWatermark != 1 {
			t.Errorf("bounds %+v", b)
		}
		f.tell(metadata.ReplicaChange{TopicPartition: f.partition(1).tp, TopicID: f.id("t"), Role: metadata.Stop})
		f.answer(q, 5)
		if q, _ = f.next(); len(q.ForgottenTopics) != 1 || !slices.Equal(q.ForgottenTopics[0].Partitions, []int32{1}) {
			t.Errorf("forgets %+v, want partition 1", q.ForgottenTopics)
		}
		f.reply <- nil
	})
}

func (f *fetching) partition(number int32) *Partition {
	f.stage.t.Helper()
	p, err := f.Partition(protocol.TopicPartition{Topic: "t", Partition: number})
	if err != nil {
		f.stage.t.Fatal(err)
	}
	return p
}

func TestFetchSessionThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		f.follow(3, 0, 1)
		q, _ := f.next()
		f.answer(q, 5, part(0, 0), part(1, 0))
		for code, id := range map[protocol.Code]int32{protocol.FetchSessionIDNotFound: 0, protocol.InvalidFetchSessionEpoch: 5, protocol.FetchSessionTopicIDError: 0} {
			q, _ = f.next()
			response := q.ResponseKind().(*kmsg.FetchResponse)
			response.ErrorCode = int16(code)
			f.reply <- response
			var named []int32
			if q, named = f.next(); q.SessionEpoch != 0 || q.SessionID != id || len(named) != 2 {
				t.Errorf("after %s: session %d epoch %d names %v", code.Name(), q.SessionID, q.SessionEpoch, named)
			}
			f.answer(q, 5, part(0, 0), part(1, 0))
		}
		q, _ = f.next()
		f.answer(q, 0) // the leader has no room for it any more
		q, named := f.next()
		if q.SessionEpoch != 0 || len(named) != 2 {
			t.Errorf("without a session: epoch %d names %v", q.SessionEpoch, named)
		}
		f.reply <- nil
	})
}

// A partition that fails rests, so that the others are not held up by answers that come at once.
func TestPartitionThatFailsRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		f.follow(3, 0, 1)
		q, _ := f.next()
		f.answer(q, 5, part(0, 0), part(1, protocol.UnknownLeaderEpoch))
		q, named := f.next()
		if len(named) != 0 || len(q.ForgottenTopics) != 1 || !slices.Equal(q.ForgottenTopics[0].Partitions, []int32{1}) {
			t.Errorf("names %v, forgets %+v, want to forget partition 1", named, q.ForgottenTopics)
		}
		time.Sleep(firstPause)
		f.answer(q, 5)
		if q, named = f.next(); !slices.Equal(named, []int32{1}) || len(q.ForgottenTopics) != 0 {
			t.Errorf("names %v, want partition 1 again", named)
		}
		f.answer(q, 5, part(1, 0))
		f.next()
		f.reply <- nil
	})
}

// What comes up while the leader lets a fetch wait does not wait for its end: the leader is nudged.
func TestNewPartitionDuringALongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		f.follow(3, 0)
		q, _ := f.next()
		f.follow(3, 1)
		synctest.Wait()
		f.answer(q, 5, part(0, 0))
		q, named := f.next()
		if !slices.Equal(named, []int32{1}) || f.nudges != 1 {
			t.Errorf("names %v after %d nudges, want 1 after one", named, f.nudges)
		}
		f.follow(4, 0) // another epoch of the same leader
		synctest.Wait()
		f.answer(q, 5, part(1, 0))
		q, named = f.next()
		if !slices.Equal(named, []int32{0}) || q.Topics[0].Partitions[0].CurrentLeaderEpoch != 4 {
			t.Errorf("names %v, want partition 0 in epoch 4", named)
		}
		f.reply <- nil
	})
}

func TestFollowerAsksForTheLeadersBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		f.follow(3, 0)
		q, _ := f.next()
		f.answer(q, 5, part(0, protocol.OffsetOutOfRange))
		for _, offset := range []int64{40, 90} {
			q := (<-f.asked).(*kmsg.ListOffsetsRequest)
			if q.ReplicaID != 2 || q.Topics[0].Partitions[0].CurrentLeaderEpoch != 3 {
				t.Errorf("asks %+v", q)
			}
			response := q.ResponseKind().(*kmsg.ListOffsetsResponse)
			topic, p := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
			p.Offset = offset
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, p)
			response.Topics = append(response.Topics, topic)
			f.reply <- response
		}
		q, named := f.next()
		if !slices.Equal(named, []int32{0}) || q.Topics[0].Partitions[0].FetchOffset != 40 {
			t.Errorf("names %v, want partition 0 from 40", named)
		}
		f.reply <- nil
	})
}

// A leader that goes is tried again, with pauses; a cluster that has changed ends a pause.
func TestLeaderThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 12)
		defer f.stop()
		f.ids["t"] = protocol.TopicID{} // a cluster without topic ids
		f.follow(3, 0)
		q, _ := f.next()
		if q.Version != 12 || q.Topics[0].Topic != "t" {
			t.Errorf("version %d names %q", q.Version, q.Topics[0].Topic)
		}
		f.down.Store(true)
		f.reply <- nil
		time.Sleep(10 * time.Second)
		f.down.Store(false)
		began := time.Now()
		image, delta := f.image.With(metadata.PutBroker{Broker: &metadata.Broker{ID: 1}})
		f.Apply(delta, image)
		q, named := f.next()
		if q.SessionEpoch != 0 || !slices.Equal(named, []int32{0}) || time.Since(began) != 0 {
			t.Errorf("epoch %d names %v after %v, want a new session at once", q.SessionEpoch, named, time.Since(began))
		}
		f.reply <- nil
	})
}

// A leader that hangs holds nothing up that is not its any more: when it leads again, it is asked anew.
func TestLeaderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		f.follow(3, 0, 1)
		f.next()
		f.follow(4, 0)
		select {
		case <-f.asked:
			t.Error("partition 1 still waits for the first answer")
		case <-time.After(10 * time.Second):
		}
		began := time.Now()
		f.follow(4, 1)
		q, named := f.next()
		if waited := time.Since(began); waited < time.Second || waited > 2*time.Second || q.SessionEpoch != 0 || !slices.Equal(named, []int32{0, 1}) {
			t.Errorf("epoch %d names %v after %v, want a new session after a second", q.SessionEpoch, named, waited)
		}
		f.reply <- nil // on the first connection and on the second
		f.reply <- nil
	})
}

// A leader from before fetches could say where logs diverge is not followed: by its watermark alone a follower
// would not know what to cut.
func TestLeaderThatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 11)
		defer f.stop()
		f.follow(3, 0)
		time.Sleep(time.Minute)
		select {
		case q := <-f.asked:
			t.Errorf("it was asked %T", q)
		default:
		}
	})
}

// num.replica.fetchers may change while they run: partitions move, and each is fetched by one of them.
func TestNumberOfFetchersChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		three, _, err := config.Load(config.LoadOptions{Overrides: []string{"num.replica.fetchers=3"}})
		if err != nil {
			t.Fatal(err)
		}
		var now atomic.Pointer[config.Broker]
		now.Store(config.Default())
		f.stage.options.Config = now.Load
		f.follow(3, 0, 1, 2)
		f.next()
		now.Store(three)
		f.set(metadata.BrokerEntity(2), map[string]string{"num.replica.fetchers": "3"})
		var all []int32
		for range 2 { // the first one waits for its answer still, the other two begin
			_, named := f.next()
			all = append(all, named...)
		}
		if len(all) != 2 || all[0] == all[1] {
			t.Errorf("the new fetchers have %v, want one partition each", all)
		}
		for range 3 {
			f.reply <- nil
		}
	})
}
