package broker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// replicated is a cluster of three with a topic that has one partition, three replicas and a minimum of two.
type replicated struct {
	*cluster
	ctx      context.Context
	client   *kgo.Client
	admin    *kadm.Client
	produced int
}

func startReplicated(t *testing.T, properties map[string]string) *replicated {
	racks := []map[string]string{{"broker.rack": "a"}, {"broker.rack": "b"}, {"broker.rack": "c"}}
	return replicate(startClusterOf(t, racks, properties))
}

// replicate makes the topic on a cluster of three.
func replicate(c *cluster, options ...kgo.Opt) *replicated {
	t := c.t
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &replicated{cluster: c, ctx: ctx}
	var seeds []string
	for _, b := range r.brokers {
		seeds = append(seeds, b.Addresses()...)
	}
	var err error
	r.client, err = kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.DefaultProduceTopic("orders"), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.RecordRetries(1 << 30), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.UnknownTopicRetries(-1), // the broker that is asked may not have heard of the topic
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	r.admin = kadm.NewClient(r.client)
	two := "2"
	if _, err := r.admin.CreateTopic(ctx, 1, 3, map[string]*string{"min.insync.replicas": &two}, "orders"); err != nil {
		t.Fatal(err)
	}
	return r
}

// produce sends n records and waits until they are committed.
func (r *replicated) produce(n int) {
	r.t.Helper()
	for range n {
		if err := r.client.ProduceSync(r.ctx, kgo.StringRecord(fmt.Sprint(r.produced))).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
		r.produced++
	}
}

// until waits until the partition is as it should be.
func (r *replicated) until(what string, is func(kadm.PartitionDetail) bool) kadm.PartitionDetail {
	r.t.Helper()
	for r.ctx.Err() == nil {
		topics, err := r.admin.ListTopics(r.ctx, "orders")
		if p, ok := topics["orders"].Partitions[0]; err == nil && ok && p.Err == nil && is(p) {
			return p
		}
	}
	r.t.Fatalf("never %s", what)
	return kadm.PartitionDetail{}
}

// leader is who leads, once somebody does.
func (r *replicated) leader() int32 {
	r.t.Helper()
	return r.until("led", func(p kadm.PartitionDetail) bool { return p.Leader >= 0 && !r.brokers[p.Leader].stopped() }).Leader
}

// whole waits until all replicas are in sync.
func (r *replicated) whole() {
	r.t.Helper()
	r.until("all in sync", func(p kadm.PartitionDetail) bool { return len(p.ISR) == 3 })
}

func (r *running) stopped() bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}

// check reads everything and finds each record that was acknowledged, once and in order.
func (r *replicated) check() {
	r.t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(r.brokers[r.leader()].Addresses()...), kgo.ConsumeTopics("orders"), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	for next := 0; next < r.produced; {
		fetches := reader.PollFetches(r.ctx)
		if err := fetches.Err(); err != nil {
			r.t.Fatal(err)
		}
		fetches.EachRecord(func(got *kgo.Record) {
			if string(got.Value) != fmt.Sprint(next) {
				r.t.Fatalf("record %q at offset %d, want %d", got.Value, got.Offset, next)
			}
			next++
		})
	}
}

// Records that were acknowledged by all in-sync replicas outlive their leader.
func TestReplicasOutliveTheLeader(t *testing.T) {
	r := startReplicated(t, nil)
	r.produce(50)
	r.brokers[r.leader()].stop()
	r.produce(50)
	r.check()
}

// One leader after the other is killed under load and comes back; each time the set becomes whole again.
func TestReplicasUnderKills(t *testing.T) {
	r := startReplicated(t, nil)
	for range 6 {
		r.produce(10)
		victim := r.leader()
		r.sites[victim].forgives = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.brokers[victim].crash()
		}()
		r.produce(20)
		<-done
		r.brokers[victim] = r.sites[victim].start()
		r.produce(10)
		r.whole()
	}
	r.check()
}

// A leader's power fails, and what it had not synced is gone. The others have it, and it gets it from them.
func TestReplicaLosesItsUnsyncedRecords(t *testing.T) {
	r := startReplicated(t, nil)
	for round := range 3 {
		r.produce(30)
		victim := r.leader()
		site := r.sites[victim]
		site.forgives = true
		disk := site.fs.(*vfs.Memory).CrashClone(rand.New(rand.NewPCG(1, uint64(round))), 0)
		r.brokers[victim].crash()
		site.fs, site.boot = disk, fmt.Sprint("boot ", round)
		r.brokers[victim] = site.start()
		r.produce(5)
		r.whole()
	}
	r.check()
}

// With one replica left of a minimum of two acks=all is refused, and goes on as soon as another one is back.
func TestTooFewReplicas(t *testing.T) {
	r := startReplicated(t, nil)
	r.produce(5)
	leader := r.leader()
	for id := range int32(3) {
		if id != leader {
			r.brokers[id].stop()
		}
	}
	r.until("alone", func(p kadm.PartitionDetail) bool { return len(p.ISR) == 1 })
	impatient, err := kgo.NewClient(kgo.SeedBrokers(r.brokers[leader].Addresses()...), kgo.DefaultProduceTopic("orders"),
		kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	if err := impatient.ProduceSync(r.ctx, kgo.StringRecord("refused")).FirstErr(); !errors.Is(err, kerr.NotEnoughReplicas) {
		t.Errorf("%v, want NOT_ENOUGH_REPLICAS", err)
	}
	other := (leader + 1) % 3
	r.brokers[other] = r.sites[other].start()
	r.produce(5)
	r.check()
}

// Consumers in the rack of a follower are sent there, and read what is committed (KIP-392).
func TestReadingFromTheNearestReplica(t *testing.T) {
	r := startReplicated(t, map[string]string{
		"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector", "replica.fetch.wait.max.ms": "20",
	})
	r.produce(20)
	leader := r.leader()
	follower := (leader + 1) % 3
	racks := []string{"a", "b", "c"}
	from := &fetchedFrom{brokers: map[int32]bool{}}
	reader, err := kgo.NewClient(kgo.SeedBrokers(r.brokers[leader].Addresses()...), kgo.ConsumeTopics("orders"),
		kgo.MetadataMinAge(10*time.Millisecond), kgo.Rack(racks[follower]), kgo.WithHooks(from))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for next := 0; next < r.produced; {
		fetches := reader.PollFetches(r.ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(got *kgo.Record) {
			if string(got.Value) != fmt.Sprint(next) {
				t.Fatalf("record %q at offset %d, want %d", got.Value, got.Offset, next)
			}
			if next++; next == 20 {
				r.produce(20)
			}
		})
	}
	from.mu.Lock() // the reader goes on
	defer from.mu.Unlock()
	if len(from.brokers) != 1 || !from.brokers[follower] {
		t.Errorf("records came from brokers %v, want %d", from.brokers, follower)
	}
}

// fetchedFrom learns from which brokers records come.
type fetchedFrom struct {
	mu      sync.Mutex
	brokers map[int32]bool
}

func (f *fetchedFrom) OnFetchBatchRead(meta kgo.BrokerMetadata, _ string, _ int32, _ kgo.FetchBatchMetrics) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.brokers[meta.NodeID] = true
}

// A follower that gets nothing for too long leaves the set, acks=all goes on without it, and it comes back.
func TestReplicaThatLagsLeaves(t *testing.T) {
	r := startReplicated(t, map[string]string{"replica.lag.time.max.ms": "600"})
	r.produce(5)
	follower := (r.leader() + 1) % 3
	links := &links{}
	r.brokers[follower].stop()
	r.sites[follower].dial = links.dial
	r.brokers[follower] = r.sites[follower].start()
	r.produce(5)
	r.whole()
	links.cut(true)
	r.produce(5)
	// On a busy machine the other one may leave as well, and come back.
	r.until("without the one that is cut off", func(p kadm.PartitionDetail) bool { return !slices.Contains(p.ISR, follower) })
	links.cut(false)
	r.produce(5)
	r.whole()
	r.check()
}
