package broker_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// electUncleanly asks for a leader, whoever lives, until broker id leads. A controller that has just begun waits for the
// brokers that it knows of first.
func (r *replicated) electUncleanly(id int32) {
	r.t.Helper()
	set := kadm.TopicsSet{}
	set.Add("orders", 0)
	for r.ctx.Err() == nil {
		_, _ = r.admin.ElectLeaders(r.ctx, kadm.ElectLiveReplica, set)
		if topics, err := r.admin.ListTopics(r.ctx, "orders"); err == nil && topics["orders"].Partitions[0].Leader == id {
			return
		}
	}
	r.t.Fatal("no leader was elected")
}

// reconnect begins with another producer: what the earlier one knows was lost.
func (r *replicated) reconnect() {
	r.t.Helper()
	var seeds []string
	for _, b := range r.brokers {
		seeds = append(seeds, b.Addresses()...)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.DefaultProduceTopic("orders"), kgo.MetadataMinAge(10*time.Millisecond),
		kgo.RecordRetries(1<<30), kgo.UnknownTopicRetries(-1), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	r.client, r.admin = client, kadm.NewClient(client)
}

// An operator gives a partition to a replica that lacks committed records. Those who were down then have to cut them,
// also the one that comes back when the new leader has long recovered, and although the topic allows no such election.
func TestReplicasReturnAfterAnUncleanElection(t *testing.T) {
	r := startReplicated(t, nil)
	r.produce(10)
	r.whole()
	leader := r.leader()
	behind, other := (leader+1)%3, (leader+2)%3
	r.brokers[behind].stop()
	r.produce(10)
	r.brokers[other].stop()
	r.brokers[leader].stop()
	r.brokers[behind] = r.sites[behind].start()
	r.reconnect()
	r.electUncleanly(behind)
	r.produced = 10
	r.brokers[other] = r.sites[other].start()
	r.produce(20)
	r.brokers[leader] = r.sites[leader].start()
	r.whole()
	r.check()
}
