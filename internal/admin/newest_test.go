package admin_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas"
)

// requests notes which brokers were sent requests, by their keys.
type requests struct {
	mu sync.Mutex
	to map[kmsg.Key]map[int32]int
}

// OnBrokerWrite is called by the client.
func (r *requests) OnBrokerWrite(broker kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to[kmsg.Key(key)] == nil {
		r.to[kmsg.Key(key)] = map[int32]int{}
	}
	r.to[kmsg.Key(key)][broker.NodeID]++
}

// take is who was sent requests of a key since the last call.
func (r *requests) take(key kmsg.Key) map[int32]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer delete(r.to, key)
	return r.to[key]
}

// Another broker than the controller may not have heard yet of a topic that was just made, or of its newest properties: what
// they are, and that there is no such topic, is the controller's word.
func TestTheControllersWordCounts(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 3, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	sent := &requests{to: map[kmsg.Key]map[int32]int{}}
	c := newClient(t, cluster.Brokers[2].Address(), kgo.WithHooks(sent))
	create(t, c, "t", 1)
	now, err := c.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const times = 10
	for range times {
		if resources, err := c.TopicConfigs(t.Context(), "t"); err != nil || resources[0].Err != nil {
			t.Fatal(resources, err)
		}
	}
	if to := sent.take(kmsg.DescribeConfigs); len(to) != 1 || to[now.Controller] != times {
		t.Errorf("the properties were asked of %v, the controller is %d", to, now.Controller)
	}
	sent.take(kmsg.Metadata)
	for range times {
		if topics, err := c.Topics(t.Context(), "nothing"); err != nil || topics[0].Err == nil {
			t.Fatal(topics, err)
		}
	}
	if to := sent.take(kmsg.Metadata); to[now.Controller] < times {
		t.Errorf("whether a topic exists was asked of %v, the controller is %d", to, now.Controller)
	}
}
