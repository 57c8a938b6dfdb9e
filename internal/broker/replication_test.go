package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// leaderOf is who leads partition 0 of a topic, once somebody does.
func leaderOf(ctx context.Context, t *testing.T, admin *kadm.Client, topic string) int32 {
	t.Helper()
	for ctx.Err() == nil {
		topics, err := admin.ListTopics(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := topics[topic].Partitions[0]; ok && p.Leader >= 0 && p.Err == nil {
			return p.Leader
		}
	}
	t.Fatal("nobody leads")
	return -1
}

// Records that were acknowledged by all in-sync replicas outlive their leader.
func TestReplicasOutliveTheLeader(t *testing.T) {
	c := startCluster(t, 3, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := c.client(kgo.DefaultProduceTopic("orders"), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MetadataMinAge(10*time.Millisecond))
	admin := kadm.NewClient(client)
	two := "2"
	if _, err := admin.CreateTopic(ctx, 1, 3, map[string]*string{"min.insync.replicas": &two}, "orders"); err != nil {
		t.Fatal(err)
	}
	const each = 50
	produced := 0
	produce := func() {
		for range each {
			if err := client.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(produced))).FirstErr(); err != nil {
				t.Fatal(err)
			}
			produced++
		}
	}
	produce()
	leader := leaderOf(ctx, t, admin, "orders")
	c.brokers[leader].stop()
	produce()
	alive := c.brokers[(leader+1)%3]
	reader, err := kgo.NewClient(kgo.SeedBrokers(alive.Addresses()...), kgo.ConsumeTopics("orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for next := 0; next < produced; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != fmt.Sprint(next) {
				t.Fatalf("record %q at offset %d, want %d", r.Value, r.Offset, next)
			}
			next++
		})
	}
}
