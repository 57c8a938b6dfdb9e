package broker_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// cluster is several brokers on one store.
type cluster struct {
	t       *testing.T
	store   *memory.Store
	sites   []*site
	brokers []*running
}

// startCluster starts brokers 0 to n-1, one after the other.
func startCluster(t *testing.T, n int, properties map[string]string) *cluster {
	return startClusterOf(t, make([]map[string]string, n), properties)
}

// startClusterOf is startCluster where each broker has properties of its own.
func startClusterOf(t *testing.T, each []map[string]string, properties map[string]string) *cluster {
	c := &cluster{t: t, store: memory.New(memory.Options{})}
	t.Cleanup(func() {
		if err := c.store.Close(); err != nil {
			t.Error(err)
		}
	})
	for id := range each {
		own := map[string]string{"broker.id": strconv.Itoa(id), "offsets.topic.num.partitions": "5"}
		for name, value := range properties {
			own[name] = value
		}
		maps.Copy(own, each[id])
		s := &site{t: t, fs: vfs.NewMemory(), store: c.store, properties: own}
		c.sites = append(c.sites, s)
		c.brokers = append(c.brokers, s.start())
	}
	return c
}

// client is one that knows the last broker only, which is not the controller.
func (c *cluster) client(options ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	last := c.brokers[len(c.brokers)-1]
	// Any broker may be asked, and may not have heard yet of a topic that another one shows.
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(last.Addresses()...), kgo.UnknownTopicRetries(-1)}, options...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// Three brokers see each other, a topic spreads over them, and its records are produced to whoever leads.
func TestClusterOfThree(t *testing.T) {
	c := startCluster(t, 3, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := c.client(kgo.ConsumeTopics("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	admin := kadm.NewClient(client)
	metadata, err := admin.BrokerMetadata(ctx)
	if err != nil || len(metadata.Brokers) != 3 || metadata.Controller != 0 {
		t.Fatalf("%d brokers and controller %d, want 3 and 0: %v", len(metadata.Brokers), metadata.Controller, err)
	}
	if _, err := admin.CreateTopic(ctx, 6, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	leaders := map[int32]int{}
	for len(leaders) == 0 { // the broker that is asked may hear of the topic later than the one that made it
		topics, err := admin.ListTopics(ctx, "orders")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range topics["orders"].Partitions {
			leaders[p.Leader]++
		}
	}
	if len(leaders) != 3 || leaders[0] != 2 || leaders[1] != 2 || leaders[2] != 2 {
		t.Errorf("leaders %v, want two partitions for each broker", leaders)
	}
	for i := range 60 {
		record := &kgo.Record{Topic: "orders", Partition: int32(i % 6), Value: fmt.Append(nil, i)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for got := 0; got < 60; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		got += fetches.NumRecords()
	}
}

// A directory of one cluster is refused by the store of another.
func TestDirectoryOfAnotherCluster(t *testing.T) {
	c := startCluster(t, 1, nil)
	c.brokers[0].stop()
	other := memory.New(memory.Options{})
	defer other.Close()
	stranger := &site{t: t, fs: vfs.NewMemory(), store: other, properties: map[string]string{"broker.id": "7"}}
	stranger.start().stop()
	stranger.store, stranger.forgives = c.store, true
	if _, err := stranger.try(); err == nil {
		t.Error("a broker joined a cluster that its directory does not belong to")
	}
}

// A session that ends before the broker has registered is no reason not to start: it registers with another one.
func TestSessionThatEndsDuringTheStart(t *testing.T) {
	c := startCluster(t, 1, nil)
	late := &site{t: t, fs: vfs.NewMemory(), store: &endsOnce{Store: c.store, memory: c.store}, properties: map[string]string{"broker.id": "1"}}
	r := late.start()
	if !r.log.has("registering with another") {
		t.Error("its session did not end")
	}
	r.dial().create("orders", 1)
}

// endsOnce is a store that ends one session: that which comes first to register broker 1.
type endsOnce struct {
	coordination.Store
	memory *memory.Store
	once   sync.Once
}

func (s *endsOnce) Open(ctx context.Context, o coordination.SessionOptions) (coordination.Session, error) {
	session, err := s.Store.Open(ctx, o)
	return &ending{Session: session, store: s}, err
}

type ending struct {
	coordination.Session
	store *endsOnce
}

func (s *ending) Txn(ctx context.Context, ops ...coordination.Op) ([]coordination.OpResult, error) {
	if ops[0].Path == znode.BrokerPath(1) {
		s.store.once.Do(func() { s.store.memory.Expire(s.ID()) })
	}
	return s.Session.Txn(ctx, ops...)
}

// Whatever broker an admin asks, the controller does it, and the broker that was asked shows it at once.
func TestAdminRequestsAtAnyBroker(t *testing.T) {
	c := startCluster(t, 3, nil)
	for id, b := range c.brokers {
		conn := b.dial()
		topic := fmt.Sprintf("orders-%d", id)
		made := conn.create(topic, 2)
		if made.IsZero() {
			t.Errorf("broker %d: a topic without an id", id)
		}
		if code := conn.alter(topic, "retention.ms", "12345"); code != protocol.None || conn.property(topic, "retention.ms") != "12345" {
			t.Errorf("broker %d: %v, and the property is %q", id, code.Name(), conn.property(topic, "retention.ms"))
		}
		grow := kmsg.NewPtrCreatePartitionsRequest()
		grow.Version, grow.TimeoutMillis = 3, int32(patience.Milliseconds())
		grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: 5}}
		if got := ask[*kmsg.CreatePartitionsResponse](conn, grow).Topics[0]; got.ErrorCode != 0 {
			t.Errorf("broker %d: %+v", id, got)
		}
		if n := conn.partitions(topic); n != 5 {
			t.Errorf("broker %d: %d partitions after a growth to 5", id, n)
		}
		if code := conn.tryCreate(topic); code != protocol.TopicAlreadyExists {
			t.Errorf("broker %d: making a topic twice: %v", id, code.Name())
		}
		if code := conn.deleteTopic(topic); code != protocol.None {
			t.Errorf("broker %d: deleting: %v", id, code.Name())
		}
		if n := conn.partitions(topic); n != 0 {
			t.Errorf("broker %d: a deleted topic has %d partitions", id, n)
		}
		if conn.newProducer() < 0 {
			t.Errorf("broker %d: no producer id", id)
		}
		find := kmsg.NewPtrFindCoordinatorRequest() // makes __consumer_offsets, where it is the first
		find.Version, find.CoordinatorKey = 3, topic
		if got := ask[*kmsg.FindCoordinatorResponse](conn, find); got.ErrorCode != 0 {
			t.Errorf("broker %d: finding a coordinator: %v", id, protocol.Code(got.ErrorCode))
		}
	}
}

// partitions is how many partitions Metadata shows of a topic.
func (c *conn) partitions(topic string) int {
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 9
	q.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	return len(ask[*kmsg.MetadataResponse](c, q).Topics[0].Partitions)
}
