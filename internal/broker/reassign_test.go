package broker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// move asks for other replicas of the partition and waits until it has them, all in sync, and nothing is under
// way any more.
func (r *replicated) move(replicas ...int32) {
	r.t.Helper()
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign("orders", 0, replicas)
	answers, err := r.admin.AlterPartitionAssignments(r.ctx, request)
	if err != nil || answers.Error() != nil {
		r.t.Fatal(err, answers.Error())
	}
	r.until(fmt.Sprint("on ", replicas), func(p kadm.PartitionDetail) bool {
		return slices.Equal(p.Replicas, replicas) && len(p.ISR) == len(replicas)
	})
	for r.ctx.Err() == nil {
		if all, err := r.admin.ListPartitionReassignments(r.ctx, nil); err == nil && len(all) == 0 {
			return
		}
	}
	r.t.Fatal("the reassignment never ends")
}

// A partition wanders over all brokers while records are produced: no producer sees an error, and all records
// are there, once and in order.
func TestReassignmentUnderLoad(t *testing.T) {
	r := startReplicated(t, nil)
	producing, stop := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() {
		for producing.Err() == nil {
			if err := r.client.ProduceSync(r.ctx, kgo.StringRecord(fmt.Sprint(r.produced))).FirstErr(); err != nil {
				done <- err
				return
			}
			r.produced++
		}
		done <- nil
	}()
	for range 3 {
		r.move(0, 1)
		r.move(1, 2)
		r.move(2, 0)
	}
	r.move(0, 1, 2)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r.produced == 0 {
		t.Error("nothing was produced meanwhile")
	}
	r.check()
}

// The controller stops while a partition is on its way; the next one carries on.
func TestReassignmentOutlivesTheController(t *testing.T) {
	r := startReplicated(t, nil)
	r.produce(50)
	r.move(1, 2)
	var request kadm.AlterPartitionAssignmentsReq
	request.Assign("orders", 0, []int32{2, 1, 0})
	if _, err := r.admin.AlterPartitionAssignments(r.ctx, request); err != nil {
		t.Fatal(err)
	}
	metadata, err := r.admin.BrokerMetadata(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.sites[metadata.Controller].forgives = true
	r.brokers[metadata.Controller].stop()
	r.brokers[metadata.Controller] = r.sites[metadata.Controller].start()
	r.move(2, 1, 0)
	r.produce(50)
	r.check()
}
