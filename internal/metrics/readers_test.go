package metrics

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func goVersion() string { return runtime.Version() }

// openLog is a log with one batch of three records for each time.
func openLog(t *testing.T, times ...time.Time) *log.Log {
	t.Helper()
	broker, _, err := config.Load(config.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := broker.Topic(map[string]string{"min.insync.replicas": "2"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := log.Open(log.Options{FS: vfs.NewMemory(), Dir: "t-0", Partition: P.TopicPartition{Topic: "t"}, Config: topic,
		RecoveryPoint: -1, StartOffset: -1, HighWatermark: -1, CleanedTo: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.CloseUnclean)
	for _, at := range times {
		b := record.NewBuilder(record.BuilderOptions{BaseOffset: l.EndOffset()})
		for range 3 {
			b.Append(at.UnixMilli(), nil, []byte("value"))
		}
		if _, err := l.AppendFollower(b.Build()); err != nil {
			t.Fatal(err)
		}
	}
	l.SetHighWatermark(l.EndOffset())
	return l
}

// TestLagReader reads lag in records and time off real logs.
func TestLagReader(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	l := openLog(t, now.Add(-time.Hour), now.Add(-time.Minute), now.Add(time.Minute))
	committed := []group.CommittedOffset{
		{Topic: "t", Offset: 0}, {Topic: "t", Offset: 2}, {Topic: "t", Offset: 3}, {Topic: "t", Offset: 7},
		{Topic: "t", Offset: 9}, {Topic: "t", Offset: 100}, {Topic: "elsewhere", Offset: 5},
	}
	progress := func(context.Context) iter.Seq[group.Progress] {
		return slices.Values([]group.Progress{{Group: "g", State: "Stable", Members: 2, Offsets: committed}})
	}
	looks := 0
	r := NewLagReader(progress, func(tp P.TopicPartition) *log.Log {
		if tp.Topic != "t" {
			return nil
		}
		looks++
		return l
	}, func() time.Time { return now })
	want := []Group{{Name: "g", State: "Stable", Members: 2, Offsets: []GroupOffset{
		{Topic: "t", Committed: 0, Lag: 9, Behind: time.Hour},
		{Topic: "t", Committed: 2, Lag: 7, Behind: time.Hour},
		{Topic: "t", Committed: 3, Lag: 6, Behind: time.Minute},
		{Topic: "t", Committed: 7, Lag: 2, Behind: 0}, // its producer's clock is ahead
		{Topic: "t", Committed: 9, Lag: 0, Behind: 0},
		{Topic: "t", Committed: 100, Lag: 0, Behind: 0},
		{Topic: "elsewhere", Committed: 5, Lag: -1, Behind: -1},
	}}}
	for range 2 {
		if diff := cmp.Diff(want, slices.Collect(r.Groups(t.Context()))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	if len(r.times) != 4 {
		t.Errorf("%d times are kept", len(r.times))
	}
	// What is not there any more is not waited for.
	if err := l.AdvanceStart(3); err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(r.Groups(t.Context()))[0].Offsets[0]
	if want := (GroupOffset{Topic: "t", Lag: 6, Behind: time.Minute}); got != want {
		t.Errorf("%+v behind the new start", got)
	}
}

// TestReadPartitions and the cluster's counts, from an image.
func TestReadPartitions(t *testing.T) {
	l := openLog(t, time.UnixMilli(1))
	image, _ := metadata.Empty().With(
		metadata.PutBroker{Broker: &metadata.Broker{ID: 1, Endpoints: []metadata.Endpoint{{Host: "::1", Port: 9092}}}},
		metadata.PutTopic{Name: "t", ID: P.TopicID{1}, Partitions: []*metadata.Partition{
			{Leader: 1, Replicas: []P.BrokerID{2, 1}, ISR: []P.BrokerID{1}},
			{Leader: 2, Replicas: []P.BrokerID{2, 1}, ISR: []P.BrokerID{1, 2}},
			{Leader: P.NoBroker, Replicas: []P.BrokerID{3}, ISR: []P.BrokerID{3}},
			{Leader: 1, Replicas: []P.BrokerID{1, 2, 3}, ISR: []P.BrokerID{1, 2}}, // 3 is being added
		}},
	)
	logOf := func(tp P.TopicPartition) *log.Log {
		if tp.Partition == 0 {
			return l
		}
		return nil
	}
	offline := func(tp P.TopicPartition) bool { return tp.Partition == 1 }
	want := []Partition{
		{Topic: "t", Partition: 0, Size: l.Size(), HighWatermark: 3, End: 3, Leads: true, Leader: 1, Replicas: 2, InSync: 1, MinInSync: 2},
		{Topic: "t", Partition: 1, Preferred: true, Leader: 2, Replicas: 2, InSync: 2, MinInSync: 1, Offline: true},
		{Topic: "t", Partition: 3, Leads: true, Preferred: true, Leader: 1, Replicas: 2, InSync: 2, MinInSync: 1},
	}
	adding := func(tp P.TopicPartition) int { return map[int32]int{1: 1, 3: 1}[tp.Partition] } // 1 is not led here: that is hearsay
	if diff := cmp.Diff(want, slices.Collect(ReadPartitions(1, image, logOf, offline, adding))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	cluster := Cluster{Brokers: []Broker{{1, "[::1]:9092"}}, ControllerEpoch: int32(image.ControllerEpoch), Topics: 1, Partitions: 4, Offline: 1, Astray: 1}
	if diff := cmp.Diff(cluster, ReadCluster(1, image)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
