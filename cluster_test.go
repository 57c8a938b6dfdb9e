package barnabas_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
)

// A cluster in one process keeps what was acknowledged when a broker stops, and over a restart of all.
func TestStartCluster(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := barnabas.StartCluster(ctx, 3, barnabas.Options{DataDir: dir})
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
	if c, err = barnabas.StartCluster(ctx, 3, barnabas.Options{DataDir: dir}); err != nil {
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
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
