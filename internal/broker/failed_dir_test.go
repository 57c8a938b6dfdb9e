package broker_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// One of two directories of a broker fails under load: the broker lives on, others lead the partitions that were
// in it, and the broker goes on leading those in the other one. No producer sees an error.
func TestFailedDirectoryInACluster(t *testing.T) {
	r := startReplicated(t, map[string]string{"log.dirs": "/a,/b", "metadata.log.dir": "/a"})
	const partitions, victim = 6, 1
	r.sites[victim].forgives = true
	r.brokers[victim].stop()
	disk := vfs.NewFaulty(r.sites[victim].fs)
	r.sites[victim].fs = disk
	r.brokers[victim] = r.sites[victim].start()
	r.whole()
	if _, err := r.admin.CreateTopic(r.ctx, partitions, 3, nil, "many"); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers[0].Addresses()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordRetries(1<<30), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	everywhere := func(round int) {
		t.Helper()
		for p := range int32(partitions) {
			record := &kgo.Record{Topic: "many", Partition: p, Value: fmt.Append(nil, round)}
			if err := client.ProduceSync(r.ctx, record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	everywhere(0)
	disk.Inject(vfs.Fault{Path: "/b", Err: syscall.EIO})
	everywhere(1)
	for r.ctx.Err() == nil {
		topics, err := r.admin.ListTopics(r.ctx, "many")
		if err != nil {
			t.Fatal(err)
		}
		led, out := 0, 0
		for _, p := range topics["many"].Partitions {
			switch {
			case p.Leader == victim:
				led++
			case !slices.Contains(p.ISR, victim):
				out++
			}
		}
		if led > 0 && out == partitions/2 { // half of them lie in either directory
			everywhere(2)
			return
		}
	}
	t.Error("the partitions in the failed directory keep their leader")
}
