package broker_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// onFaultyDisk starts a broker again on a disk that can be made to fail.
func (r *replicated) onFaultyDisk(id int) *vfs.Faulty {
	r.sites[id].forgives = true
	r.brokers[id].stop()
	disk := vfs.NewFaulty(r.sites[id].fs)
	r.sites[id].fs = disk
	r.brokers[id] = r.sites[id].start()
	return disk
}

// One of two directories of a broker fails under load: the broker lives on, others lead the partitions that were
// in it, and the broker goes on leading those in the other one. No producer sees an error.
func TestFailedDirectoryInACluster(t *testing.T) {
	r := startReplicated(t, map[string]string{"log.dirs": "/a,/b", "metadata.log.dir": "/a"})
	const partitions, victim = 6, 1
	disk := r.onFaultyDisk(victim)
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

// One of two directories fails of the last broker that lives. Nobody leads what was in it, also when another one is back,
// until the first is back with a disk that works, and then nothing is lost; or, where the topic allows it, the other replica
// does, which lacks a record.
func TestFailedDirectoryOfTheLastReplica(t *testing.T) {
	for name, test := range map[string]struct {
		unclean      string
		leader       int32
		recordsThere int64
	}{
		"its broker returns": {unclean: "false", leader: 1, recordsThere: 2},
		"unclean election":   {unclean: "true", leader: 2, recordsThere: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := startReplicated(t, map[string]string{
				"log.dirs": "/a,/b", "metadata.log.dir": "/a", "unclean.recovery.timeout.ms": "0", "log.flush.offset.checkpoint.interval.ms": "50",
			})
			const last, other = 1, 2
			disk := r.onFaultyDisk(last)
			r.createLone(last, other, test.unclean)
			r.produceLone(last)
			r.brokers[other].stop()
			r.brokers[0].stop()
			r.reconnect() // to the address that the last one has since its restart
			r.untilLone("the last one is alone", func(p kadm.PartitionDetail) bool { return slices.Equal(p.ISR, []int32{last}) })
			r.produceLone(last)
			disk.Inject(vfs.Fault{Path: "/b", Err: syscall.EIO})
			failed := map[int32]bool{} // the partitions in the directory
			r.untilLone("half of the partitions have no leader", func(p kadm.PartitionDetail) bool {
				if p.Leader < 0 && slices.Equal(p.ISR, []int32{last}) {
					failed[p.Partition] = true
				}
				return failed[p.Partition] || len(failed) == lonePartitions/2 && p.Leader == last
			})
			r.brokers[other] = r.sites[other].start()
			r.untilLone("the other one is back", func(p kadm.PartitionDetail) bool { return failed[p.Partition] || len(p.ISR) == 2 })
			if test.leader == last {
				r.untilLone("nobody leads", func(p kadm.PartitionDetail) bool { return !failed[p.Partition] || p.Leader < 0 })
				disk.Heal()
				r.brokers[last].stop()
				r.brokers[last] = r.sites[last].start()
				r.reconnect()
			}
			r.untilLone("somebody leads again", func(p kadm.PartitionDetail) bool { return !failed[p.Partition] || p.Leader == test.leader })
			ends, err := r.admin.ListEndOffsets(r.ctx, "lone")
			if err != nil || ends.Error() != nil {
				t.Fatal(err, ends.Error())
			}
			for p := range failed {
				if end, _ := ends.Lookup("lone", p); end.Offset != test.recordsThere {
					t.Errorf("partition %d ends at %d, want %d", p, end.Offset, test.recordsThere)
				}
			}
		})
	}
}

const lonePartitions = 4

// createLone makes the topic lone with two replicas for each partition.
func (r *replicated) createLone(first, second int32, unclean string) {
	r.t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "lone", -1, -1
	for p := range int32(lonePartitions) {
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: p, Replicas: []int32{first, second}})
	}
	topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: "unclean.leader.election.enable", Value: &unclean})
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis, q.Topics = 10_000, append(q.Topics, topic)
	answer, err := q.RequestWith(r.ctx, r.client)
	if err != nil || answer.Topics[0].ErrorCode != 0 {
		r.t.Fatal(err, answer)
	}
}

// produceLone writes a record to each partition of lone, for which it asks one broker.
func (r *replicated) produceLone(by int) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers[by].Addresses()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(1<<30))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	for p := range int32(lonePartitions) {
		if err := client.ProduceSync(r.ctx, &kgo.Record{Topic: "lone", Partition: p, Value: []byte("x")}).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// untilLone waits until all partitions of lone are as they should be, in one answer.
func (r *replicated) untilLone(what string, is func(kadm.PartitionDetail) bool) {
	r.t.Helper()
	for r.ctx.Err() == nil {
		topics, err := r.admin.ListTopics(r.ctx, "lone")
		if err != nil {
			continue
		}
		so := 0
		for _, p := range topics["lone"].Partitions {
			if is(p) {
				so++
			}
		}
		if so == lonePartitions {
			return
		}
	}
	r.t.Fatalf("never so: %s", what)
}
