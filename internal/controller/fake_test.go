package controller

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/barnabas-mq/barnabas/internal/znode"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cast is a cluster of fake brokers on a store in memory; some of them run a real controller.
type cast struct {
	t       *testing.T
	store   *memory.Store
	mu      sync.Mutex // guards brokers
	brokers map[P.BrokerID]*fakeBroker
	config  atomic.Pointer[config.Broker]
	logger  *slog.Logger
	// leaders holds who led each partition in each leader epoch, as any broker ever heard: there is one.
	leaders map[string]int32
	// leaving holds those who have asked to be shut down at some time.
	leaving map[P.BrokerID]bool
	// holds says where all replicas of a broker end.
	holds map[P.BrokerID]P.Offset
}

// fakeBroker answers what a controller tells it, and keeps it.
type fakeBroker struct {
	id         P.BrokerID
	cast       *cast
	session    coordination.Session
	epoch      P.BrokerEpoch
	controller *Controller
	end        context.CancelFunc
	ended      chan struct{}

	mu      sync.Mutex
	heard   []string
	answers map[int16]P.Code // of the partitions, by key
	hung    chan struct{}    // answers wait for it to be closed
	shown   map[P.TopicPartition]string
}

func newCast(t *testing.T) *cast {
	c := &cast{t: t, store: memory.New(memory.Options{}), brokers: map[P.BrokerID]*fakeBroker{}, leaders: map[string]int32{}, leaving: map[P.BrokerID]bool{}, holds: map[P.BrokerID]P.Offset{}}
	c.configure()
	c.logger = slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		c.logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	t.Cleanup(func() {
		for _, b := range maps.Clone(c.brokers) {
			b.stop()
		}
		if err := c.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// configure puts properties, as key=value, in force on all brokers; the others have their defaults.
func (c *cast) configure(properties ...string) {
	c.t.Helper()
	loaded, _, err := config.Load(config.LoadOptions{Overrides: properties})
	if err != nil {
		c.t.Fatal(err)
	}
	c.config.Store(loaded)
}

func (c *cast) open() coordination.Session {
	s, err := c.store.Open(context.Background(), coordination.SessionOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// start brings up a broker that registers, and runs for controller where leads is true.
func (c *cast) start(id P.BrokerID, leads bool, stopped znode.Stop) *fakeBroker {
	c.t.Helper()
	b := &fakeBroker{id: id, cast: c, session: c.open(), answers: map[int16]P.Code{}, shown: map[P.TopicPartition]string{}, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	b.end = cancel
	if _, err := Prepare(ctx, b.session, ""); err != nil {
		c.t.Fatal(err)
	}
	rack := fmt.Sprintf("rack-%d", id)
	c.mu.Lock() // who hears of the registration may dial at once
	epoch, err := Register(ctx, b.session, znode.Registration{Stopped: stopped, Broker: metadata.Broker{
		ID: id, Rack: &rack, Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 9000 + int32(id)}},
	}})
	b.epoch = epoch
	c.brokers[id] = b
	c.mu.Unlock()
	if err != nil {
		c.t.Fatal(err)
	}
	b.controller = New(Options{
		BrokerID: id, Config: c.config.Load, Dial: c.dial, Seed: 1, Logger: c.logger.With("on", id),
	})
	go func() {
		defer close(b.ended)
		if leads {
			_ = b.controller.Run(ctx, b.session)
		}
	}()
	synctest.Wait()
	return b
}

// stop ends a broker as a kill does, apart from the session, which is gone at once.
func (b *fakeBroker) stop() {
	b.cast.mu.Lock()
	gone := b.cast.brokers[b.id] != b
	if !gone {
		delete(b.cast.brokers, b.id)
	}
	b.cast.mu.Unlock()
	if gone {
		return
	}
	b.end()
	_ = b.session.Close()
	b.cast.store.Expire(b.session.ID()) // where the farewell was lost
	<-b.ended
	synctest.Wait()
}

// dial connects a controller to a fake broker.
func (c *cast) dial(_ context.Context, to *metadata.Broker) (net.Conn, error) {
	c.mu.Lock()
	b := c.brokers[to.ID]
	c.mu.Unlock()
	if b == nil || b.epoch != to.Epoch {
		return nil, fmt.Errorf("nobody listens")
	}
	ours, theirs := net.Pipe()
	go b.serve(theirs)
	return ours, nil
}

func (b *fakeBroker) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var prefix [4]byte
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		header, body, err := wire.ParseRequestHeader(frame)
		if err != nil {
			b.cast.t.Error(err)
			return
		}
		request := requestFor(header.Key, header.Version)
		if err := request.ReadFrom(body); err != nil {
			b.cast.t.Error(err)
			return
		}
		response := b.answer(request)
		out := wire.AppendResponseHeader(make([]byte, 4), header.Key, header.Version, header.CorrelationID)
		out = response.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// answer notes a request, and says that it was carried out.
func (b *fakeBroker) answer(request kmsg.Request) kmsg.Response {
	b.mu.Lock()
	hung, code := b.hung, int16(b.answers[request.Key()])
	b.mu.Unlock()
	if hung != nil {
		<-hung
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, describeRequest(request)...)
	b.remember(request)
	response := request.ResponseKind()
	switch r := request.(type) {
	case *kmsg.LeaderAndISRRequest:
		if P.BrokerEpoch(r.BrokerEpoch) != b.epoch {
			b.cast.t.Errorf("broker %d in epoch %d heard what is for epoch %d", b.id, b.epoch, r.BrokerEpoch)
		}
		for _, topic := range r.TopicStates {
			t := kmsg.LeaderAndISRResponseTopic{TopicID: topic.TopicID}
			for _, p := range topic.PartitionStates {
				answer := kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition, ErrorCode: code}
				if p.Leader == -1 {
					peer.SetEnd(&answer.UnknownTags, 0, b.cast.holds[b.id])
				}
				t.Partitions = append(t.Partitions, answer)
			}
			response.(*kmsg.LeaderAndISRResponse).Topics = append(response.(*kmsg.LeaderAndISRResponse).Topics, t)
		}
	case *peer.StopReplica:
		for _, topic := range r.Topics {
			for _, p := range topic.PartitionStates {
				response.(*kmsg.StopReplicaResponse).Partitions = append(response.(*kmsg.StopReplicaResponse).Partitions,
					kmsg.StopReplicaResponsePartition{Topic: topic.Topic, Partition: p.Partition, ErrorCode: code})
			}
		}
	}
	return response
}

// remember checks that no two brokers ever hear of two leaders in one epoch, and keeps what clients would be
// shown.
func (b *fakeBroker) remember(request kmsg.Request) {
	b.cast.mu.Lock()
	defer b.cast.mu.Unlock()
	switch r := request.(type) {
	case *kmsg.LeaderAndISRRequest:
		for _, topic := range r.TopicStates {
			for _, p := range topic.PartitionStates {
				key := fmt.Sprintf("%x-%d in epoch %d", topic.TopicID, p.Partition, p.LeaderEpoch)
				if leader, ok := b.cast.leaders[key]; ok && leader != p.Leader {
					b.cast.t.Errorf("%s is led by %d and by %d", key, leader, p.Leader)
				}
				b.cast.leaders[key] = p.Leader
			}
		}
	case *kmsg.UpdateMetadataRequest:
		r.UnknownTags.Each(func(uint32, []byte) { clear(b.shown) })
		for _, topic := range r.TopicStates {
			for _, p := range topic.PartitionStates {
				tp := P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}
				if delete(b.shown, tp); P.BrokerID(p.Leader) != leaderDuringDelete {
					b.shown[tp] = fmt.Sprintf("leader %d epoch %d version %d", p.Leader, p.LeaderEpoch, p.ZKVersion)
				}
			}
		}
	}
}

// describeRequest writes a request in one line a partition.
func describeRequest(request kmsg.Request) []string {
	var lines []string
	switch r := request.(type) {
	case *kmsg.LeaderAndISRRequest:
		for _, topic := range r.TopicStates {
			for _, p := range topic.PartitionStates {
				lines = append(lines, fmt.Sprintf("lead %s-%d leader %d epoch %d isr %v version %d", topic.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion))
			}
		}
	case *kmsg.UpdateMetadataRequest:
		var ids []int32
		for _, l := range r.LiveBrokers {
			ids = append(ids, l.ID)
		}
		lines = append(lines, fmt.Sprint("alive ", ids))
		for _, topic := range r.TopicStates {
			for _, p := range topic.PartitionStates {
				lines = append(lines, fmt.Sprintf("show %s-%d leader %d epoch %d isr %v version %d", topic.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion))
			}
		}
	case *peer.StopReplica:
		for _, topic := range r.Topics {
			for _, p := range topic.PartitionStates {
				lines = append(lines, fmt.Sprintf("stop %s-%d epoch %d delete %v", topic.Topic, p.Partition, p.LeaderEpoch, p.Delete))
			}
		}
	}
	return lines
}

// told is what a broker heard since it was asked last; the lines are joined.
func (b *fakeBroker) told() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.Join(b.heard, "\n")
	b.heard = nil
	return text
}

// hang makes a broker keep its answers until the returned function is called.
func (b *fakeBroker) hang() (resume func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hung := make(chan struct{})
	b.hung = hung
	return func() {
		b.mu.Lock()
		b.hung = nil
		b.mu.Unlock()
		close(hung)
	}
}

func expect(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if got != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, strings.Join(want, "\n"))
	}
}

// data reads a znode as text; "" and false where there is none.
func (c *cast) data(path string) (string, bool) {
	s := c.open()
	defer s.Close()
	data, _, err := s.Get(context.Background(), path)
	return string(data), err == nil
}

func (c *cast) children(path string) []string {
	s := c.open()
	defer s.Close()
	names, _, err := s.Children(context.Background(), path)
	if err != nil {
		c.t.Error(err)
	}
	return slices.Clone(names)
}
