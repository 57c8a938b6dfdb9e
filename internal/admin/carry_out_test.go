package admin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// planReplicas plans a number of replicas for all partitions.
func planReplicas(t *testing.T, c *admin.Client, factor int) (*admin.Layout, []balance.Move) {
	t.Helper()
	l, err := c.Layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan := l.Plan()
	if err := plan.Resize(func(protocol.TopicPartition) bool { return true }, factor); err != nil {
		t.Fatal(err)
	}
	return l, plan.Moves()
}

// A plan is cut off after its first move; the next one has what is left, and takes the throttle away.
func TestPlansAreCarriedOn(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 3, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	c := newClient(t, cluster.Brokers[0].Address())
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: 6, ReplicationFactor: 1}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	l, moves := planReplicas(t, c, 3)
	ctx, cut := context.WithCancel(t.Context())
	results, err := c.CarryOut(ctx, l, moves, admin.MoveOptions{AtOnce: 1, Throttle: 1 << 30, Progress: func(p admin.MoveProgress) {
		if p.Moved > 0 {
			cut()
		}
	}})
	if err == nil || len(moves) != 6 || len(results) != 6 || results[0].Err != nil || results[5].Err == nil {
		t.Fatalf("%v, %v", results, err)
	}
	status, err := c.Status(t.Context(), false)
	if err != nil || len(status.Throttles) != 3 || len(status.Throttled) != 1 {
		t.Errorf("a throttle stays while moves may be under way: %+v, %v", status, err)
	}
	l, moves = planReplicas(t, c, 3)
	if len(moves) >= 6 {
		t.Errorf("planned again, it moves %v", moves)
	}
	results, err = c.CarryOut(t.Context(), l, moves, admin.MoveOptions{AtOnce: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Error(r)
		}
	}
	if status, err = c.Status(t.Context(), false); err != nil || !status.OK() || len(status.Throttles)+len(status.Throttled)+len(status.Moving) > 0 {
		t.Errorf("afterwards: %+v, %v", status, err)
	}
	if _, moves = planReplicas(t, c, 3); len(moves) > 0 {
		t.Errorf("still to move: %v", moves)
	}
}

// What cannot be is told of each partition, and the others move.
func TestMovesFailOneByOne(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 2, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	c := newClient(t, cluster.Brokers[0].Address())
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: 2, ReplicationFactor: 1}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	l, moves := planReplicas(t, c, 2)
	moves[0].To = []protocol.BrokerID{7}
	results, err := c.CarryOut(t.Context(), l, moves, admin.MoveOptions{AtOnce: 20})
	var refused *admin.DetailedError
	if err != nil || !errors.As(results[0].Err, &refused) || results[1].Err != nil {
		t.Errorf("%v, %v", results, err)
	}
}

// A first replica that does not lead is found, and leads.
func TestFirstReplicasLead(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 2, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	c := newClient(t, cluster.Brokers[0].Address())
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: [][]int32{{1, 2}}}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	at := admin.TopicPartition{Topic: "t"}
	if results, err := c.Reassign(t.Context(), []admin.Reassignment{{TopicPartition: at, Replicas: []int32{2, 1}}}); err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	astray := func(want int) *admin.Layout {
		for t.Context().Err() == nil {
			if l, err := c.Layout(t.Context()); err != nil || len(l.Astray()) == want {
				return l
			}
		}
		return nil
	}
	l := astray(1)
	elect := append(l.Astray(), admin.TopicPartition{Topic: "none"})
	if results, err := c.CarryOut(t.Context(), l, nil, admin.MoveOptions{AtOnce: 1, Elect: elect}); err != nil || len(results) != 1 || results[0].Topic != "none" || results[0].Err == nil {
		t.Fatal(results, err)
	}
	if l = astray(0); l.Topics[0].Partitions[0].Leader != 2 {
		t.Errorf("%+v", l.Topics)
	}
}

// What somebody else has done since the plan was made is not undone.
func TestOldPlansAreNotCarriedOut(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 3, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	c := newClient(t, cluster.Brokers[0].Address())
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: [][]int32{{1, 2}, {1, 2}}}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	onto := func(l *admin.Layout) []balance.Move {
		plan := l.Plan()
		if err := plan.Evacuate(func(protocol.TopicPartition) bool { return true }, func(id protocol.BrokerID) bool { return id == 2 }, func(id protocol.BrokerID) bool { return id == 3 }); err != nil {
			t.Fatal(err)
		}
		return plan.Moves()
	}
	old, err := c.Layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, moves := planReplicas(t, c, 3)
	if results, err := c.CarryOut(t.Context(), l, moves[:1], admin.MoveOptions{AtOnce: 20}); err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	results, err := c.CarryOut(t.Context(), old, onto(old), admin.MoveOptions{AtOnce: 20, Throttle: 1 << 30})
	if err != nil || len(results) != 2 || results[0].Err == nil || results[1].Err != nil {
		t.Errorf("%v, %v", results, err)
	}
	if l, err = c.Layout(t.Context()); err != nil || len(l.Topics[0].Partitions[0].Replicas) != 3 || len(l.Topics[0].Partitions[1].Replicas) != 2 {
		t.Errorf("%+v, %v", l.Topics, err)
	}
}

// A number of replicas that is to be kept is not changed.
func TestFactorIsKept(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 2, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	c := newClient(t, cluster.Brokers[0].Address())
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: 1, ReplicationFactor: 2}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	results, err := c.Reassign(t.Context(), []admin.Reassignment{{TopicPartition: admin.TopicPartition{Topic: "t"}, Replicas: []int32{1}, KeepFactor: true}})
	if err != nil || admin.CodeName(results[0].Err) != "INVALID_REPLICATION_FACTOR" {
		t.Errorf("%v, %v", results, err)
	}
}

// What does not end is told of, and what has been taken back has ended.
func TestEndsAreAwaited(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 2, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	address := cluster.Brokers[0].Address()
	c := newClient(t, address)
	rate := "1"
	created, err := c.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: [][]int32{{1}},
		Configs: map[string]string{"leader.replication.throttled.replicas": "*"}}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	slow := []admin.ConfigOp{{Name: "leader.replication.throttled.rate", Kind: kmsg.IncrementalAlterConfigOpSet, Value: &rate}}
	if err := c.AlterConfigs(t.Context(), kmsg.ConfigResourceTypeBroker, "1", slow, false); err != nil {
		t.Fatal(err)
	}
	p := newClient(t, address, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.UnknownTopicRetries(-1)).NewProducer()
	for range 8 {
		p.Send(t.Context(), &kgo.Record{Topic: "t", Value: make([]byte, 900<<10)})
	}
	if _, err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := admin.TopicPartition{Topic: "t"}
	to := func(replicas ...int32) {
		if results, err := c.Reassign(t.Context(), []admin.Reassignment{{TopicPartition: at, Replicas: replicas}}); err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
	}
	to(2)
	impatient, err := admin.New(admin.Options{Bootstrap: []string{address}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	left, err := impatient.AwaitEnds(t.Context(), []admin.TopicPartition{at})
	for errors.As(err, new(*admin.UnreachableError)) { // on a busy machine a look may take longer than its patience lasts
		left, err = impatient.AwaitEnds(t.Context(), []admin.TopicPartition{at})
	}
	if err != nil || len(left) != 1 {
		t.Errorf("%v have not ended, %v", left, err)
	}
	to()
	if left, err := c.AwaitEnds(t.Context(), []admin.TopicPartition{at}); err != nil || len(left) != 0 {
		t.Errorf("taken back, and %v have not ended, %v", left, err)
	}
}
