package sim

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// requestLimit is how long a client waits for an answer.
const requestLimit = 4 * time.Second

// client speaks to the cluster as little as a test needs. Unlike a real one it has no randomness of its own and
// no thread but the caller's.
type client struct {
	world    *world
	host     string
	channels map[int32]*peer.Channel
	leaders  map[protocol.TopicPartition]leadership // the newest that it was told of
	asked    uint64                                 // how often a broker was asked that the dice chose

	// doing is for the report about a run that does not end well.
	doing struct {
		sync.Mutex
		asks   bool
		key    int16 // of the request
		broker int32
		since  time.Time
		last   error
	}
}

// leadership is what a client knows of who leads a partition.
type leadership struct {
	topic  [16]byte // its id
	epoch  int32
	broker int32 // -1 where nobody leads, or it has to be asked for again
}

func newClient(w *world, host string) *client {
	c := &client{world: w, host: host, channels: map[int32]*peer.Channel{}, leaders: map[protocol.TopicPartition]leadership{}}
	w.clients = append(w.clients, c)
	return c
}

func (c *client) close() {
	for _, channel := range c.channels {
		channel.Close()
	}
}

// at is the channel to a broker.
func (c *client) at(broker int32) *peer.Channel {
	channel := c.channels[broker]
	if channel == nil {
		address := fmt.Sprintf("broker-%d:9092", broker)
		channel = peer.New(func(ctx context.Context) (net.Conn, error) { return c.world.network.dial(ctx, c.host, address) }, c.host)
		c.channels[broker] = channel
	}
	return channel
}

// ask sends a request to a broker and waits for the answer.
func (c *client) ask(ctx context.Context, broker int32, q kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	end := c.begin(broker, q)
	answer, err := c.at(broker).Do(ctx, q)
	end(err)
	return answer, err
}

// refresh asks a broker who leads a topic. What it says of an older leader epoch than the client has heard of does not
// count, as with real clients: it may be cut off.
func (c *client) refresh(ctx context.Context, name string) error {
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	q.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	answer, err := c.ask(ctx, c.anybody(), q)
	if err != nil {
		return err
	}
	for _, t := range answer.(*kmsg.MetadataResponse).Topics {
		if t.ErrorCode != 0 {
			return protocol.Code(t.ErrorCode)
		}
		for _, p := range t.Partitions {
			tp := protocol.TopicPartition{Topic: *t.Topic, Partition: p.Partition}
			if old, known := c.leaders[tp]; known && old.topic == t.TopicID && old.epoch > p.LeaderEpoch {
				continue
			}
			known := leadership{t.TopicID, p.LeaderEpoch, -1}
			if p.ErrorCode == 0 {
				known.broker = p.Leader
			}
			c.leaders[tp] = known
		}
	}
	return nil
}

// leader is who leads a partition, as far as is known.
func (c *client) leader(ctx context.Context, tp protocol.TopicPartition) (int32, error) {
	if l, ok := c.leaders[tp]; ok && l.broker >= 0 {
		return l.broker, nil
	}
	if err := c.refresh(ctx, tp.Topic); err != nil {
		return -1, err
	}
	if l, ok := c.leaders[tp]; ok && l.broker >= 0 {
		return l.broker, nil
	}
	return -1, protocol.LeaderNotAvailable
}

// forgetLeader makes the next request look again.
func (c *client) forgetLeader(tp protocol.TopicPartition) {
	if l, ok := c.leaders[tp]; ok {
		l.broker = -1
		c.leaders[tp] = l
	}
}

// produce sends one batch with acks=all and gives the offset of its first record. sent says that the batch may
// have been appended where there is an error.
func (c *client) produce(ctx context.Context, tp protocol.TopicPartition, batch []byte) (base int64, sent bool, err error) {
	to, err := c.leader(ctx, tp)
	if err != nil {
		return -1, false, err
	}
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks, q.TimeoutMillis = 9, -1, 2000
	q.Topics = []kmsg.ProduceRequestTopic{{Topic: tp.Topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: tp.Partition, Records: batch}}}}
	answer, err := c.ask(ctx, to, q)
	if err != nil {
		c.forgetLeader(tp)
		return -1, peer.Sent(err), err
	}
	p := answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	code := protocol.Code(p.ErrorCode)
	if code == protocol.None {
		return p.BaseOffset, true, nil
	}
	c.forgetLeader(tp)
	return -1, code != protocol.NotEnoughReplicas && code != protocol.UnknownTopicOrPartition, code
}

// newProducerID gets an id for an idempotent producer.
func (c *client) newProducerID(ctx context.Context) (protocol.ProducerID, error) {
	q := kmsg.NewPtrInitProducerIDRequest()
	q.Version, q.TransactionTimeoutMillis = 4, 0
	answer, err := c.ask(ctx, c.anybody(), q)
	if err != nil {
		return protocol.NoProducerID, err
	}
	r := answer.(*kmsg.InitProducerIDResponse)
	if r.ErrorCode != 0 {
		return protocol.NoProducerID, protocol.Code(r.ErrorCode)
	}
	return protocol.ProducerID(r.ProducerID), nil
}

// fetch reads from a partition's leader.
func (c *client) fetch(ctx context.Context, tp protocol.TopicPartition, offset int64) (*kmsg.FetchResponseTopicPartition, error) {
	to, err := c.leader(ctx, tp)
	if err != nil {
		return nil, err
	}
	q := kmsg.NewPtrFetchRequest()
	// From version 11 on a follower would answer, too, and whoever lags far behind says OFFSET_OUT_OF_RANGE.
	q.Version, q.ReplicaID, q.MaxWaitMillis, q.MinBytes, q.MaxBytes, q.SessionEpoch = 10, -1, 200, 1, 1<<20, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = tp.Partition, offset, 1<<20, c.leaders[tp].epoch
	q.Topics = []kmsg.FetchRequestTopic{{Topic: tp.Topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	answer, err := c.ask(ctx, to, q)
	if err != nil {
		c.forgetLeader(tp)
		return nil, err
	}
	r := answer.(*kmsg.FetchResponse)
	if r.ErrorCode != 0 || len(r.Topics) == 0 {
		c.forgetLeader(tp)
		return nil, fmt.Errorf("fetch: %w", protocol.Code(r.ErrorCode))
	}
	got := &r.Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		c.forgetLeader(tp)
		return got, protocol.Code(got.ErrorCode)
	}
	return got, nil
}

// named is a partition of the topic under test.
func named(partition int32) protocol.TopicPartition {
	return protocol.TopicPartition{Topic: topic, Partition: partition}
}
