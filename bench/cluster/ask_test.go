package cluster

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/bench/servers"
)

// oneBroker is a stage of one broker of ours with its own store, whose id is 1 as the first one's of a cluster.
func oneBroker(t *testing.T) *Stage {
	t.Helper()
	place, err := servers.NewPlace(t.TempDir(), 20_000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := place.Close(); err != nil {
			t.Error(err)
		}
	})
	broker, err := place.Barnabas("ours", append(Properties(), "broker.id=1", "log.segment.delete.delay.ms=0")...)
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := NewStage(t.Context(), &servers.Cluster{Brokers: []*servers.Server{broker}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestWhatIsSeenAndAcknowledged(t *testing.T) {
	s := oneBroker(t)
	began := time.Now()
	if _, err := kadm.NewClient(s.asker.kafka).CreateTopic(t.Context(), 3, 1, nil, "seen"); err != nil {
		t.Fatal(err)
	}
	s.asker.topics, s.asker.partitions = []string{"seen"}, 3
	seen, err := s.asker.see(t.Context(), began, s.all, whole(1))
	if err != nil {
		t.Fatal(err)
	}
	acked, err := s.asker.acknowledge(t.Context(), began, 1)
	if err != nil {
		t.Fatal(err)
	}
	if seen <= 0 || acked <= seen {
		t.Errorf("seen after %s, acknowledged after %s", seen, acked)
	}
	m, err := s.asker.metadata(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		is   condition
		want int
	}{"whole": {whole(1), 3}, "more replicas": {whole(3), 0}, "another leader": {ledByOther(2), 3}, "the same leader": {ledByOther(1), 0}} {
		if got := holds(m, test.is); got != test.want {
			t.Errorf("%s: holds for %d partitions, not %d", name, got, test.want)
		}
	}
	ends, err := kadm.NewClient(s.asker.kafka).ListEndOffsets(t.Context(), "seen")
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset != 1 {
			t.Errorf("partition %d has %d records", o.Partition, o.Offset)
		}
	})
}

func TestWhatNeverComesSaysHowFarItCame(t *testing.T) {
	s := oneBroker(t)
	if _, err := kadm.NewClient(s.asker.kafka).CreateTopic(t.Context(), 1, 1, nil, "there"); err != nil {
		t.Fatal(err)
	}
	s.asker.topics, s.asker.partitions = []string{"there"}, 2 // one is missing
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.asker.see(ctx, time.Now(), s.all, func(p *kmsg.MetadataResponseTopicPartition) bool {
		cancel() // with the first look that shows it
		return whole(1)(p)
	})
	if err == nil || !strings.Contains(err.Error(), "it shows 1 of 2 partitions") {
		t.Errorf("%v", err)
	}
	if _, err = s.asker.acknowledge(ctx, time.Now(), 1); err == nil || !strings.Contains(err.Error(), "broker 1 has not answered") {
		t.Errorf("nobody waits: %v", err)
	}
	if _, err := s.Create(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "INVALID_REPLICATION_FACTOR") {
		t.Errorf("three replicas on one broker: %v", err)
	}
}

func TestWhatIsDeletedLeavesNoFiles(t *testing.T) {
	s := oneBroker(t)
	if _, err := kadm.NewClient(s.asker.kafka).CreateTopics(t.Context(), 3, 1, nil, "gone", "gone-too", "stays"); err != nil {
		t.Fatal(err)
	}
	s.asker.topics, s.asker.partitions = []string{"gone", "gone-too"}, 6
	if _, err := s.asker.acknowledge(t.Context(), time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(s.cluster.Brokers[0].Data())
	if err != nil {
		t.Fatal(err)
	}
	stays := 0
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "gone") {
			t.Errorf("%s is left", entry.Name())
		}
		if strings.HasPrefix(entry.Name(), "stays-") {
			stays++
		}
	}
	if stays != 3 {
		t.Errorf("%d of 3 partitions of the other topic are left", stays)
	}
}

func TestConditionsOfAPartitionWithoutALeader(t *testing.T) {
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Leader, p.ISR = -1, []int32{1, 2, 3}
	if whole(3)(&p) || ledByOther(2)(&p) {
		t.Error("nobody leads, and it counts")
	}
}
