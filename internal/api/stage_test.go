package api

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/view"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// self is the broker of these tests, other one that is in sync where a commit has to wait.
const (
	self  = 1
	other = 2
)

// stage is the API over partitions in memory. There is no controller: tests send its orders.
type stage struct {
	*API
	t        testing.TB
	draining chan struct{}
	asleep   atomic.Pointer[server.Sleep] // the one that began last
	ids      map[string]protocol.TopicID
	epochs   map[string]int32
	version  protocol.PartitionEpoch // of the newest state that inSync has told of
	conn     *server.Conn
}

func newStage(t testing.TB, properties ...string) *stage {
	t.Helper()
	c, _, err := config.Load(config.LoadOptions{Overrides: properties})
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := logdir.Open(logdir.Options{FS: vfs.NewMemory(), Dirs: []string{"/data"}, BrokerID: self, ClusterID: "cluster", Config: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dirs.Close(context.Background()) })
	if err := dirs.Load(context.Background(), func(protocol.TopicPartition, protocol.TopicID) (config.Topic, bool) { return config.Topic{}, false }); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	replicas := replica.New(replica.Options{Self: self, Dirs: dirs, Config: func() *config.Broker { return c }, Topic: c.Topic, Logger: quiet})
	s := &stage{
		t: t, draining: make(chan struct{}), ids: map[string]protocol.TopicID{}, epochs: map[string]int32{},
		conn: &server.Conn{Listener: "PLAINTEXT"},
	}
	v := view.New(view.Options{Self: self, ClusterID: "cluster", Apply: replicas.Apply})
	s.API = New(Options{
		Self: self, ClusterID: "cluster", Config: func() *config.Broker { return c }, Replicas: replicas, Dirs: dirs, View: v,
		Now: time.Now, Logger: quiet, Draining: func() <-chan struct{} { return s.draining },
	})
	return s
}

// lead makes this broker the leader of a topic of so many partitions, in its next epoch; broker 2 is in sync
// where alone is false.
func (s *stage) lead(topic string, partitions int32, alone bool) {
	s.t.Helper()
	if _, ok := s.ids[topic]; !ok {
		s.ids[topic], s.epochs[topic] = protocol.NewTopicID(), -1
	}
	s.epochs[topic]++
	inSync := []int32{self}
	if !alone {
		inSync = append(inSync, other)
	}
	orders := kmsg.NewPtrLeaderAndISRRequest()
	orders.Version, orders.ControllerID, orders.BrokerEpoch = 7, self, -1
	to := kmsg.LeaderAndISRRequestTopicState{Topic: topic, TopicID: s.ids[topic]}
	shown := kmsg.NewPtrUpdateMetadataRequest()
	shown.Version, shown.ControllerID, shown.BrokerEpoch = 8, self, -1
	shown.LiveBrokers = []kmsg.UpdateMetadataRequestLiveBroker{{ID: self, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
		{Host: "here", Port: 9092, ListenerName: "PLAINTEXT"}, {Host: "inside", Port: 9093, ListenerName: "INSIDE"},
	}}}
	of := kmsg.UpdateMetadataRequestTopicState{Topic: topic, TopicID: s.ids[topic]}
	for number := range partitions {
		to.PartitionStates = append(to.PartitionStates, kmsg.LeaderAndISRRequestTopicPartition{
			Partition: number, Leader: self, LeaderEpoch: s.epochs[topic], ISR: inSync, Replicas: inSync, IsNew: true,
		})
		of.PartitionStates = append(of.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{
			Partition: number, Leader: self, LeaderEpoch: s.epochs[topic], ISR: inSync, Replicas: inSync,
		})
	}
	orders.TopicStates, shown.TopicStates = append(orders.TopicStates, to), append(shown.TopicStates, of)
	for _, answered := range s.View.LeaderAndISR(orders).Topics {
		for _, p := range answered.Partitions {
			if p.ErrorCode != 0 {
				s.t.Fatalf("leading %s-%d: %v", topic, p.Partition, protocol.Code(p.ErrorCode))
			}
		}
	}
	s.View.UpdateMetadata(shown)
}

// inSync changes who is in sync within the leader's epoch, as a grown or shrunk set does.
func (s *stage) inSync(topic string, brokers ...protocol.BrokerID) {
	s.t.Helper()
	image := s.View.Image()
	s.version++
	failed := s.Replicas.Apply(metadata.Delta{From: image, To: image, Replicas: []metadata.ReplicaChange{{
		TopicPartition: protocol.TopicPartition{Topic: topic}, TopicID: s.ids[topic], Role: metadata.Lead,
		State: &metadata.Partition{Leader: self, LeaderEpoch: protocol.LeaderEpoch(s.epochs[topic]), Replicas: brokers, ISR: brokers, Epoch: s.version},
	}}}, image)
	for _, err := range failed {
		s.t.Fatal(err)
	}
}

// remove deletes a topic's first partition, and the topic for clients.
func (s *stage) remove(topic string) {
	s.t.Helper()
	image, delta := s.View.Image().With(metadata.DropTopic{Name: topic})
	delta.Replicas = []metadata.ReplicaChange{{TopicPartition: protocol.TopicPartition{Topic: topic}, TopicID: s.ids[topic], Role: metadata.Delete}}
	for _, err := range s.Replicas.Apply(delta, image) {
		s.t.Fatal(err)
	}
}

// begin runs the first phase of a request.
func (s *stage) begin(q kmsg.Request) server.Reply {
	s.t.Helper()
	return s.handle(frameOf(q))
}

// handle runs the first phase of a request in this frame.
func (s *stage) handle(frame []byte) server.Reply {
	return s.Handle(context.Background(), s.conn, &server.Frame{Bytes: frame, Received: time.Now()})
}

// frameOf is a request with its header.
func frameOf(q kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, q, 5)[4:]
}

// ask sends a request and waits for its answer.
func ask[R kmsg.Response](s *stage, q kmsg.Request) R {
	s.t.Helper()
	return finished[R](s, q, s.begin(q))
}

// finished waits for the answer of a request that has begun.
func finished[R kmsg.Response](s *stage, q kmsg.Request, reply server.Reply) R {
	s.t.Helper()
	response := reply.Response
	if reply.Wait != nil {
		ctx, cancel := context.Background(), func() {}
		if reply.Timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, reply.Timeout)
		}
		response = reply.Wait(ctx)
		cancel()
	}
	if reply.Phase != nil {
		response = <-s.sleep(reply)
	}
	if response == nil || response.Close || reply.Close {
		s.t.Fatalf("%s %d was not answered: %+v", kmsg.NameForKey(q.Key()), q.GetVersion(), reply)
	}
	return decoded(s, q, response).(R)
}

// sleep begins the second phase of a request that sleeps; its answer comes out of the channel.
func (s *stage) sleep(reply server.Reply) <-chan *server.Response {
	answer := make(chan *server.Response, 1)
	asleep := server.NewSleep(reply.Phase, func(r *server.Response, bug *server.Bug) {
		if bug != nil {
			s.t.Errorf("a phase panicked: %v\n%s", bug.Panic, bug.Stack)
		}
		answer <- r
	})
	s.asleep.Store(asleep)
	asleep.Begin(reply.Timeout)
	return answer
}

func decoded(s *stage, q kmsg.Request, response *server.Response) kmsg.Response {
	s.t.Helper()
	var whole []byte
	for _, piece := range response.Pieces {
		part := piece.Bytes
		if piece.File != nil {
			part = make([]byte, piece.Length)
			if _, err := piece.File.ReadAt(part, piece.Offset); err != nil {
				s.t.Fatal(err)
			}
		}
		whole = append(whole, part...)
	}
	response.Release()
	answer := q.ResponseKind()
	answer.SetVersion(q.GetVersion())
	header := wire.ResponseHeaderSize(q.Key(), q.GetVersion())
	if err := answer.ReadFrom(whole[header:]); err != nil {
		s.t.Fatalf("%s %d: %v", kmsg.NameForKey(q.Key()), q.GetVersion(), err)
	}
	return answer
}

// records is a batch of n records.
func records(n int) []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	for i := range n {
		b.Append(1000+int64(i), nil, fmt.Appendf(nil, "value %d", i))
	}
	return b.Build()
}

// producing is a request for partition 0 of a topic.
func (s *stage) producing(topic string, acks int16, batch []byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks, q.TimeoutMillis = 9, acks, 1000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic, s.ids[topic], []kmsg.ProduceRequestTopicPartition{p}
	q.Topics = append(q.Topics, t)
	return q
}

// write appends n records to a partition.
func (s *stage) write(topic string, partition int32, n int) {
	s.t.Helper()
	q := s.producing(topic, 1, records(n))
	q.Topics[0].Partitions[0].Partition = partition
	if code := ask[*kmsg.ProduceResponse](s, q).Topics[0].Partitions[0].ErrorCode; code != 0 {
		s.t.Fatal(protocol.Code(code))
	}
}
