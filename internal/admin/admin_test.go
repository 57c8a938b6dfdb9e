package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/admin"
)

// newCluster is a broker in memory with a client.
func newCluster(t *testing.T, options ...kgo.Opt) (*admin.Client, string) {
	t.Helper()
	b, err := barnabas.Start(context.Background(), barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Stop(context.Background()) })
	return newClient(t, b.Address(), options...), b.Address()
}

func newClient(t *testing.T, address string, options ...kgo.Opt) *admin.Client {
	t.Helper()
	c, err := admin.New(admin.Options{Bootstrap: []string{address}, ClientID: "test", Client: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func create(t *testing.T, c *admin.Client, name string, partitions int32) {
	t.Helper()
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: name, Partitions: partitions, ReplicationFactor: -1}}, false)
	if err == nil {
		err = created[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write writes records to one partition.
func write(t *testing.T, address, topic string, partition int32, records int) {
	t.Helper()
	c := newClient(t, address, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	p := c.NewProducer()
	for i := range records {
		p.Send(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "%d", i)})
	}
	written, err := p.Flush(t.Context())
	if err != nil || len(written) != 1 || written[0].Records != int64(records) || written[0].LastOffset-written[0].FirstOffset != int64(records-1) {
		t.Fatalf("%+v, %v", written, err)
	}
}

// readAll reads ranges to their ends.
func readAll(t *testing.T, address string, ranges admin.Ranges) []int64 {
	t.Helper()
	reading := admin.NewReading(ranges)
	c := newClient(t, address, reading.Options()...)
	var offsets []int64
	err := c.Read(t.Context(), reading, admin.Sink{
		Each:  func(r *kgo.Record) error { offsets = append(offsets, r.Offset); return nil },
		Batch: func() error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return offsets
}

func TestTopicsKeepTheirOrderAndTheirErrors(t *testing.T) {
	c, _ := newCluster(t)
	create(t, c, "b", 2)
	create(t, c, "a", 1)
	topics, err := c.Topics(t.Context(), "b", "nothing", "a")
	if err != nil || len(topics) != 3 {
		t.Fatal(topics, err)
	}
	if topics[0].Name != "a" || topics[1].Name != "b" || len(topics[1].Partitions) != 2 || !errors.Is(topics[2].Err, kerr.UnknownTopicOrPartition) {
		t.Errorf("%+v", topics)
	}
	results, err := c.DeleteTopics(t.Context(), []string{"nothing", "a"})
	if err != nil || !errors.Is(results[0].Err, kerr.UnknownTopicOrPartition) || results[1].Err != nil {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestAnyBootstrapAddressWillDo begins with an address on which nobody listens.
func TestAnyBootstrapAddressWillDo(t *testing.T) {
	_, address := newCluster(t)
	c, err := admin.New(admin.Options{Bootstrap: []string{"127.0.0.1:1", address, "127.0.0.1:2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cluster, err := c.Cluster(t.Context())
	if err != nil || len(cluster.Brokers) != 1 || cluster.Brokers[0].Address() != address {
		t.Errorf("%+v, %v", cluster, err)
	}
}

func TestReadingStopsAtItsEnd(t *testing.T) {
	c, address := newCluster(t)
	create(t, c, "t", 2)
	write(t, address, "t", 0, 10)
	write(t, address, "t", 1, 3)
	zero, one := admin.TopicPartition{Topic: "t", Partition: 0}, admin.TopicPartition{Topic: "t", Partition: 1}
	if got := readAll(t, address, admin.Ranges{zero: {From: 4, To: 7, Leader: 1}}); fmt.Sprint(got) != "[4 5 6]" {
		t.Errorf("read %v", got)
	}
	if got := readAll(t, address, admin.Ranges{zero: {From: 9, To: 10, Leader: 1}, one: {From: 3, To: 3, Leader: 1}}); fmt.Sprint(got) != "[9]" {
		t.Errorf("read %v", got)
	}
	// An end that the partition has not reached: there is no record before it, and the brokers say so.
	if got := readAll(t, address, admin.Ranges{one: {From: 0, To: 50, Leader: 1}}); fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("read %v", got)
	}
}

func TestOffsetsAndDeletedRecords(t *testing.T) {
	c, address := newCluster(t)
	create(t, c, "t", 1)
	write(t, address, "t", 0, 5)
	at := admin.TopicPartition{Topic: "t"}
	deleted, err := c.DeleteRecords(t.Context(), []admin.PartitionOffset{{TopicPartition: at, Offset: 2}, {TopicPartition: admin.TopicPartition{Topic: "nothing"}, Offset: 1}})
	if err != nil || deleted[0].Err != nil || deleted[0].Offset != 2 || deleted[1].Err == nil {
		t.Fatalf("%+v, %v", deleted, err)
	}
	for point, want := range map[int64]int64{admin.AtStart: 2, admin.AtEnd: 5, admin.AtStable: 5, 0: 2, 1 << 50: -1} {
		offsets, err := c.Offsets(t.Context(), point, []admin.TopicPartition{at})
		if err != nil || offsets[0].Err != nil || offsets[0].Offset != want {
			t.Errorf("at %d: %+v, %v, expected %d", point, offsets, err, want)
		}
	}
	if offsets, err := c.Offsets(t.Context(), admin.AtEnd, []admin.TopicPartition{{Topic: "nothing"}}); err == nil && offsets[0].Err == nil {
		t.Error("nothing has an end")
	}
}

func TestGroupLag(t *testing.T) {
	c, address := newCluster(t)
	create(t, c, "t", 2)
	write(t, address, "t", 0, 10)
	at := admin.TopicPartition{Topic: "t", Partition: 0}
	results, err := c.Commit(t.Context(), "g", admin.Positions{at: 4})
	if err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	groups, err := c.DescribeGroups(t.Context(), "g", "nobody")
	if err != nil || groups[0].State != "Empty" || !errors.Is(groups[1].Err, kerr.GroupIDNotFound) {
		t.Fatalf("%+v, %v", groups, err)
	}
	lags, err := c.Lag(t.Context(), groups[0])
	if err != nil || len(lags) != 1 || lags[0].Lag != 6 || lags[0].Committed != 4 || lags[0].End != 10 || lags[0].Member != nil {
		t.Fatalf("%+v, %v", lags, err)
	}
	deleted, err := c.DeleteGroups(t.Context(), []string{"nobody", "g"})
	if err != nil || !errors.Is(deleted[0].Err, kerr.GroupIDNotFound) || deleted[1].Err != nil {
		t.Errorf("%+v, %v", deleted, err)
	}
}
