package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
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

// bury ends the session of a broker and keeps it from registering again until the function that is returned is called. The
// broker runs on meanwhile, and the controller takes it for dead.
func (r *replicated) bury(id int32) (raise func()) {
	r.t.Helper()
	path := znode.BrokerPath(protocol.BrokerID(id))
	session, err := r.store.Open(r.ctx, coordination.SessionOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer session.Close()
	stat, there, err := session.Exists(r.ctx, path)
	if err != nil || !there {
		r.t.Fatal("the broker is not registered:", err)
	}
	r.sites[id].tolerates = append(r.sites[id].tolerates, "not back in its cluster yet")
	r.store.Inject(func(o memory.Operation) memory.Fault {
		if slices.ContainsFunc(o.Ops, func(op coordination.Op) bool { return op.Path == path }) {
			return memory.Fault{Outcome: memory.NotSent}
		}
		return memory.Fault{}
	})
	r.store.Expire(stat.EphemeralOwner)
	awaitThat(r.t, "the broker to be dead to the controller", func() bool {
		return r.logged(fmt.Sprintf("controller: a broker has left broker=%d", id))
	})
	return func() { r.store.Inject(nil) }
}

// logged reports whether any of the brokers has said something.
func (r *replicated) logged(what string) bool {
	return slices.ContainsFunc(r.brokers, func(b *running) bool { return b.log.has(what) })
}

// holds reports whether a broker has the log of the partition in use.
func (r *replicated) holds(id int32) bool {
	_, err := r.sites[id].fs.Stat("/data/orders-0")
	return err == nil
}

// ordinary is a broker that is not the controller and leads the partition, or does not, and the two others.
func (r *replicated) ordinary(leads bool) (id int32, others []int32) {
	r.t.Helper()
	metadata, err := r.admin.BrokerMetadata(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	id = (metadata.Controller + 1) % 3
	others = []int32{metadata.Controller, (metadata.Controller + 2) % 3}
	r.move(id, others[0], others[1])
	set := kadm.TopicsSet{}
	set.Add("orders", 0)
	if _, err := r.admin.ElectLeaders(r.ctx, kadm.ElectPreferredReplica, set); err != nil {
		r.t.Fatal(err)
	}
	r.until("led by the first replica", func(p kadm.PartitionDetail) bool { return p.Leader == id })
	if !leads {
		id, others[1] = others[1], id
	}
	return id, others
}

// A replica is moved away from a broker that runs and is not registered, as leader and as follower: its log is gone when
// the broker is back, and it may come back, too.
func TestReplicaIsMovedWhileItsBrokerIsNotRegistered(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprint("leads ", leads), func(t *testing.T) {
			r := startReplicated(t, nil)
			r.produce(20)
			r.whole()
			away, others := r.ordinary(leads)
			raise := r.bury(away)
			r.move(others...)
			r.produce(20)
			if !r.holds(away) {
				t.Error("the log was deleted by a broker that cannot know")
			}
			raise()
			awaitThat(t, "the log to be deleted", func() bool { return !r.holds(away) })
			r.move(away, others[0])
			r.produce(20)
			r.check()
		})
	}
}

// shows is the id of orders that a broker tells clients; the zero id where it tells none.
func (r *replicated) shows(id int32) (topic kadm.TopicID) {
	name := "orders"
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	answer, err := r.client.Broker(int(id)).Request(r.ctx, q)
	if err == nil {
		topic = answer.(*kmsg.MetadataResponse).Topics[0].TopicID
	}
	return topic
}

// The same, and the topic is deleted and made again meanwhile: the broker takes part in the new one.
func TestTopicIsMadeAgainWhileABrokerIsNotRegistered(t *testing.T) {
	r := startReplicated(t, nil)
	r.produce(20)
	r.whole()
	away, others := r.ordinary(true)
	raise := r.bury(away)
	r.move(others...)
	if _, err := r.admin.DeleteTopic(r.ctx, "orders"); err != nil {
		t.Fatal(err)
	}
	two := "2"
	var made kadm.CreateTopicResponse
	for r.ctx.Err() == nil {
		var err error
		if made, err = r.admin.CreateTopic(r.ctx, 1, 2, map[string]*string{"min.insync.replicas": &two}, "orders"); err == nil {
			break
		} else if !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Fatal(err)
		}
	}
	raise()
	awaitThat(t, "the broker to be back", func() bool { return r.brokers[away].log.has("back in the cluster") })
	for id := range int32(3) { // a producer that hears of the earlier topic first fails
		awaitThat(t, "all brokers to show the new topic", func() bool { return r.shows(id) == made.ID })
	}
	r.produced = 0
	r.reconnect()
	r.produce(20)
	r.move(away, others[0])
	r.produce(20)
	r.check()
}

// A broker comes back to the log of a topic that was deleted after its replica had been moved away. The store may as well
// have lost that topic, so it does not start, and says what can be done.
func TestBrokerComesBackToTheLogOfADeletedTopic(t *testing.T) {
	r := startReplicated(t, nil)
	r.produce(20)
	r.whole()
	away, others := r.ordinary(false)
	r.brokers[away].stop()
	r.move(others...)
	if _, err := r.admin.DeleteTopic(r.ctx, "orders"); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, "the topic to be deleted", func() bool { return r.logged("controller: deleted a topic") })
	r.sites[away].forgives = true
	if _, err := r.sites[away].try(); err == nil || !strings.Contains(err.Error(), "(orders-0): if the data of the metadata store was set back") {
		t.Errorf("%v, want an error that names the log", err)
	}
	if !r.holds(away) {
		t.Error("the log is gone")
	}
}
