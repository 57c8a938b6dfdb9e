package barnabas_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
)

// A cluster in one process keeps what was acknowledged when a broker stops, and over a restart of all.
func TestStartCluster(t *testing.T) {
	t.Run("with a store of its own", func(t *testing.T) { stopAndRestart(t, nil) })
	t.Run("on ZooKeeper", func(t *testing.T) {
		if _, err := zktest.ClassPath(); err != nil {
			t.Skip("NOT RUN: ", err) // test/run says so too
		}
		zk, err := zktest.Start(zktest.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(zk.Kill)
		stopAndRestart(t, map[string]string{"zookeeper.connect": zk.Address + "/kafka"})
		memory := barnabas.Options{Properties: map[string]string{"zookeeper.connect": zk.Address}}
		if _, err := barnabas.StartCluster(t.Context(), 3, memory); err == nil || !strings.Contains(err.Error(), "data directory") {
			t.Errorf("a cluster in memory on ZooKeeper: %v", err)
		}
	})
}

func stopAndRestart(t *testing.T, properties map[string]string) {
	options := barnabas.Options{DataDir: t.TempDir(), Properties: properties}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := barnabas.StartCluster(ctx, 3, options)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, c)
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 6, 3, map[string]*string{"min.insync.replicas": new("2")}, "orders"); err != nil {
		t.Fatal(err)
	}
	produce := func(value string) {
		for partition := range int32(6) {
			record := &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}
			if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	produce("before")
	if err := c.Brokers[0].Stop(ctx); err != nil { // the controller
		t.Error(err)
	}
	produce("after")
	client.Close()
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
	if c, err = barnabas.StartCluster(ctx, 3, options); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	reader := newClient(t, c, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer reader.Close()
	got := map[string]int{}
	for got["before"] < 6 || got["after"] < 6 {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("read only %v", got)
		}
		fetches.EachRecord(func(r *kgo.Record) { got[string(r.Value)]++ })
	}
}

func newClient(t *testing.T, c *barnabas.Cluster, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(c.Addresses(), ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.UnknownTopicRetries(-1), // the broker that is asked may not have heard of the topic
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
