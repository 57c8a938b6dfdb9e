package barnabas_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
)

// within bounds a test; it is far above what anything here takes.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, ctx context.Context, o barnabas.Options) *barnabas.Broker {
	t.Helper()
	b, err := barnabas.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, ctx, b) })
	return b
}

func stop(t *testing.T, ctx context.Context, b *barnabas.Broker) {
	t.Helper()
	if err := b.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func client(t *testing.T, b *barnabas.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Address()), kgo.MetadataMinAge(10*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// produce writes n records to a topic and returns when all are acknowledged.
func produce(t *testing.T, ctx context.Context, c *kgo.Client, topic string, n int) {
	t.Helper()
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "k%d", i%10), Value: fmt.Appendf(nil, "v%d", i)})
	}
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// consume reads n records and returns their values.
func consume(t *testing.T, ctx context.Context, c *kgo.Client, n int) []string {
	t.Helper()
	var values []string
	for len(values) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(values), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func createTopic(t *testing.T, ctx context.Context, c *kgo.Client, topic string, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(c).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

func TestBrokerInMemory(t *testing.T) {
	defer leaktest.Verify(t)
	ctx := within(t)
	b, err := barnabas.Start(ctx, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, ctx, b)
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	createTopic(t, ctx, c, "orders", 3)
	produce(t, ctx, c, "orders", 100)
	if got := consume(t, ctx, c, 100); len(got) != 100 {
		t.Errorf("consumed %d records, want 100", len(got))
	}
}

func TestSeveralBrokersInOneProcess(t *testing.T) {
	ctx := within(t)
	one, two := start(t, ctx, barnabas.Options{}), start(t, ctx, barnabas.Options{})
	createTopic(t, ctx, client(t, one), "only-here", 1)
	topics, err := kadm.NewClient(client(t, two)).ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if topics.Has("only-here") {
		t.Error("a topic of one broker shows in another")
	}
}

func TestRestartKeepsEverything(t *testing.T) {
	ctx := within(t)
	o := barnabas.Options{DataDir: t.TempDir()}
	b := start(t, ctx, o)
	c := client(t, b, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("readers"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	createTopic(t, ctx, c, "orders", 2)
	admin := kadm.NewClient(c)
	retention := "123456789"
	if _, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &retention}}, "orders"); err != nil {
		t.Fatal(err)
	}
	produce(t, ctx, c, "orders", 50)
	consume(t, ctx, c, 50)
	if err := c.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	before, err := admin.ListTopics(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	stop(t, ctx, b)

	b = start(t, ctx, o)
	admin = kadm.NewClient(client(t, b))
	after, err := admin.ListTopics(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if after["orders"].ID != before["orders"].ID || len(after["orders"].Partitions) != 2 {
		t.Errorf("topic after the restart: %+v, before: %+v", after["orders"], before["orders"])
	}
	configs, err := admin.DescribeTopicConfigs(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range configs[0].Configs {
		if entry.Key == "retention.ms" && entry.MaybeValue() != retention {
			t.Errorf("retention.ms is %q after the restart, want %q", entry.MaybeValue(), retention)
		}
	}
	offsets, err := admin.FetchOffsets(ctx, "readers")
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	offsets.Each(func(o kadm.OffsetResponse) { sum += o.At })
	if sum != 50 {
		t.Errorf("committed offsets sum to %d after the restart, want 50", sum)
	}
	reader := client(t, b, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	consume(t, ctx, reader, 50)
}

func TestSecondBrokerOnOneDirectoryIsRefused(t *testing.T) {
	ctx := within(t)
	o := barnabas.Options{DataDir: t.TempDir()}
	start(t, ctx, o)
	_, err := barnabas.Start(ctx, o)
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second broker: %v, want that the directory is in use", err)
	}
}
