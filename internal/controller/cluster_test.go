package controller

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// three brings up three brokers, all of which may be controller; the first one is.
func three(t *testing.T) (*cast, []*fakeBroker) {
	c := newCast(t)
	return c, []*fakeBroker{c.start(1, true, znode.StopNever), c.start(2, true, znode.StopNever), c.start(3, true, znode.StopNever)}
}

// assign makes a topic with these replicas.
func assign(t *testing.T, c *Controller, name string, replicas ...[]P.BrokerID) {
	t.Helper()
	topic := NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1}
	for i, r := range replicas {
		topic.Assignment = append(topic.Assignment, Assignment{int32(i), r})
	}
	create(t, c, topic)
}

// inSync lets the leader of a partition ask for an in-sync set, by what the controller knows.
func inSync(t *testing.T, c *Controller, tp P.TopicPartition, set ...P.BrokerID) {
	t.Helper()
	image := c.Image()
	p := image.Partition(tp)
	a := Alteration{TopicPartition: tp, LeaderEpoch: p.LeaderEpoch, Epoch: p.Epoch}
	for _, id := range set {
		a.ISR = append(a.ISR, Member{id, image.Broker(id).Epoch})
	}
	results, err := c.AlterPartition(t.Context(), p.Leader, image.Broker(p.Leader).Epoch, []Alteration{a})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	synctest.Wait()
}

func (c *cast) put(path, data string) {
	c.t.Helper()
	s := c.open()
	defer s.Close()
	if _, _, err := s.Create(c.t.Context(), path, []byte(data), coordination.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cast) want(path, data string) {
	c.t.Helper()
	if got, _ := c.data(path); got != data {
		c.t.Errorf("%s holds\n%s, want\n%s", path, got, data)
	}
}

func TestAlterPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 1, 3}, []P.BrokerID{2, 3, 1})
		for _, b := range brokers {
			b.told()
		}
		id := one.Image().Topic("t").ID
		epoch := one.Image().Broker(2).Epoch
		request := []Alteration{
			{TopicID: id, TopicPartition: P.TopicPartition{Partition: 0}, ISR: []Member{{2, -1}, {3, -1}}},
			{TopicID: id, TopicPartition: P.TopicPartition{Partition: 1}, ISR: []Member{{2, epoch}}},
			{TopicID: P.TopicID{9}}, {TopicID: id, TopicPartition: P.TopicPartition{Partition: 2}},
		}
		before := c.store.Tree().Zxid()
		results, err := one.AlterPartition(t.Context(), 2, epoch, request)
		if n := c.store.Tree().Zxid() - before; err != nil || n != 1 {
			t.Errorf("%d writes, %v", n, err)
		}
		if fmt.Sprint(results[0].State.ISR, results[0].State.Epoch, results[1].State.ISR) != "[2 3] 1 [2]" ||
			P.CodeOf(results[2].Err) != P.UnknownTopicID || P.CodeOf(results[3].Err) != P.UnknownTopicOrPartition {
			t.Error(results)
		}
		c.want("/brokers/topics/t/partitions/0/state", `{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,3]}`)
		// No broker gets an order: the leader has its answer, and the followers need not know.
		shown := []string{"alive [1 2 3]", "show t-0 leader 2 epoch 0 isr [2 3] version 1", "show t-1 leader 2 epoch 0 isr [2] version 1"}
		for _, b := range brokers {
			expect(t, fmt.Sprint("broker ", b.id), b.told(), shown...)
		}
		// The answer was lost, and a new controller gets the request again.
		c.store.Expire(brokers[0].session.ID())
		<-time.After(time.Minute)
		if results, err = brokers[1].controller.AlterPartition(t.Context(), 2, epoch, request[1:2]); err != nil {
			results, err = brokers[2].controller.AlterPartition(t.Context(), 2, epoch, request[1:2])
		}
		if err != nil || results[0].Err != nil || results[0].State.Epoch != 1 {
			t.Error(err, results)
		}
		if _, err = one.AlterPartition(t.Context(), 2, epoch, request); P.CodeOf(err) != P.NotController {
			t.Error(err)
		}
	})
}

// A controller that has not heard of the store for as long as its session lasts may have been deposed, and what it knows
// may be old. A refusal by it would have the leader go back to a set that is not the present one.
func TestAlterPartitionWhileTheSessionMayBeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 3})
		epoch := one.Image().Broker(2).Epoch
		unknown := []Alteration{{TopicID: P.TopicID{9}}}
		if results, err := one.AlterPartition(t.Context(), 2, epoch, unknown); err != nil || P.CodeOf(results[0].Err) != P.UnknownTopicID {
			t.Errorf("a controller that is certain: %v, %v", results, err)
		}
		doubtful := newTerm(one, overdue{c.open()}, coordination.Leadership{})
		if results, refusal, err := doubtful.alterPartitions(2, epoch, unknown); refusal != P.NotController || err != nil {
			t.Errorf("one that may have been deposed: %v, %v, %v", results, refusal, err)
		}
	})
}

// overdue is a session that the store has not been heard on for too long.
type overdue struct{ coordination.Session }

func (overdue) Deadline() time.Time { return time.Now().Add(-time.Nanosecond) }

func TestAlterPartitionOfAnEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 3})
		old := one.Image().Broker(2).Epoch
		brokers[1].stop()
		c.start(2, false, znode.StopClean)
		if _, err := one.AlterPartition(t.Context(), 2, old, nil); P.CodeOf(err) != P.StaleBrokerEpoch {
			t.Error(err)
		}
	})
}

// A broker bounces, and before the controller hears of it a leader asks for a state that holds it. One of ours
// makes the write fail; one of Kafka's does not, so that the state is newer than the registration, and is taken
// out of the set all the same.
func TestAWriteDoesNotHideABounce(t *testing.T) {
	for _, ours := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, brokers := three(t)
			one := brokers[0].controller
			assign(t, one, "t", []P.BrokerID{1, 2, 3})
			c.store.HoldEvents(brokers[0].session.ID())
			brokers[1].stop()
			if ours {
				c.start(2, false, znode.StopUnclean)
			} else {
				s, path := c.open(), znode.BrokerPath(2)
				data := znode.EncodeRegistration(znode.Registration{Broker: metadata.Broker{ID: 2}})
				if _, err := s.Txn(t.Context(), coordination.Create(path, nil, coordination.CreateOptions{Ephemeral: true}), coordination.Set(path, data, 0)); err != nil {
					t.Fatal(err)
				}
			}
			tp := P.TopicPartition{Topic: "t"}
			p, epoch := one.Image().Partition(tp), one.Image().Broker(1).Epoch
			a := Alteration{TopicPartition: tp, LeaderEpoch: p.LeaderEpoch, Epoch: p.Epoch, ISR: []Member{{1, -1}, {2, -1}}}
			results, err := one.AlterPartition(t.Context(), 1, epoch, []Alteration{a})
			if refused := P.CodeOf(results[0].Err) == errAskAgain; err != nil || refused != ours {
				t.Error(err, results[0].Err)
			}
			c.store.ReleaseEvents(brokers[0].session.ID())
			synctest.Wait()
			want := "1 1 [1]"
			if ours {
				want = "1 1 [1 3]"
			}
			if p := one.Image().Partition(tp); fmt.Sprint(p.Leader, p.LeaderEpoch, p.ISR) != want {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A broker with 1,000 leaders stops: three transactions, and it is told to leave its followers alone.
func TestControlledShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		var replicas [][]P.BrokerID
		for i := range 1000 {
			replicas = append(replicas, []P.BrokerID{2, P.BrokerID(1 + 2*(i%2))})
		}
		assign(t, one, "many", replicas...)
		assign(t, one, "followed", []P.BrokerID{1, 2})
		assign(t, one, "alone", []P.BrokerID{2})
		brokers[1].told()
		epoch := one.Image().Broker(2).Epoch
		if _, err := one.ControlledShutdown(t.Context(), 2, epoch-1); P.CodeOf(err) != P.StaleBrokerEpoch {
			t.Error(err)
		}
		if _, err := one.ControlledShutdown(t.Context(), 9, -1); P.CodeOf(err) != P.BrokerNotAvailable {
			t.Error(err)
		}
		before := c.store.Tree().Zxid()
		remaining, err := one.ControlledShutdown(t.Context(), 2, epoch)
		if n := c.store.Tree().Zxid() - before; err != nil || len(remaining) != 0 || n > 3 {
			t.Errorf("%v remain, %d writes, %v", remaining, n, err)
		}
		leads := map[P.BrokerID]int{}
		for _, p := range one.Image().Topic("many").Partitions {
			leads[p.Leader]++
		}
		if leads[1] != 500 || leads[3] != 500 {
			t.Error(leads)
		}
		// What it has led it is to follow, what it has followed it is to stop, each by one order, as Kafka's controller has it.
		orders := map[string]int{}
		for _, line := range strings.Split(brokers[1].told(), "\n") {
			if verb, rest, _ := strings.Cut(line, " "); verb == "lead" || verb == "stop" {
				topic, _, _ := strings.Cut(rest, "-")
				orders[verb+" "+topic]++
			}
		}
		if fmt.Sprint(orders) != "map[lead many:1000 stop followed:1]" {
			t.Error(orders)
		}
		f, a := one.Image().Topic("followed").Partitions[0], one.Image().Topic("alone").Partitions[0]
		if fmt.Sprint(f.ISR, f.LeaderEpoch, a.Leader) != "[1] 1 2" {
			t.Error(f, a)
		}
	})
}

func TestControlledShutdownNamesWhatRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 3}, []P.BrokerID{2, 3})
		inSync(t, one, P.TopicPartition{Topic: "t", Partition: 1}, 2)
		remaining, err := one.ControlledShutdown(t.Context(), 2, P.NoBrokerEpoch)
		if err != nil || fmt.Sprint(remaining) != "[t-1]" {
			t.Error(remaining, err)
		}
		if _, err := one.ControlledShutdown(t.Context(), 3, P.NoBrokerEpoch); err != nil {
			t.Error(err)
		}
		if remaining, err = one.ControlledShutdown(t.Context(), 2, P.NoBrokerEpoch); err != nil || len(remaining) != 0 {
			t.Error("everybody wants to stop:", remaining, err)
		}
	})
}

func TestProducerIDsForALifeOfABroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, brokers := three(t)
		one := brokers[0].controller
		epoch := one.Image().Broker(3).Epoch
		if first, n, err := one.AllocateProducerIDsFor(t.Context(), 3, epoch); first != 0 || n != 1000 || err != nil {
			t.Error(first, n, err)
		}
		if _, _, err := one.AllocateProducerIDsFor(t.Context(), 3, epoch+1); P.CodeOf(err) != P.StaleBrokerEpoch {
			t.Error(err)
		}
		if _, _, err := brokers[1].controller.AllocateProducerIDsFor(t.Context(), 3, epoch); P.CodeOf(err) != P.NotController {
			t.Error(err)
		}
	})
}

// The machines of all brokers go down at once. Nobody leads before the last one is back and all have said what
// they have; then the one leads that has most, although it is not the preferred one.
func TestAllRestartUncleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		assign(t, brokers[0].controller, "t", []P.BrokerID{1, 2, 3})
		for _, b := range brokers {
			b.end() // no controller sees the others go
		}
		synctest.Wait()
		for _, b := range brokers {
			b.stop()
		}
		c.holds[2] = 7
		tp := P.TopicPartition{Topic: "t"}
		one := c.start(1, true, znode.StopUnclean)
		c.start(2, true, znode.StopUnclean)
		<-time.After(time.Minute)
		if p := one.controller.Image().Partition(tp); p.Leader != P.NoBroker {
			t.Errorf("one is missing: %+v", p)
		}
		c.start(3, true, znode.StopUnclean)
		if p := one.controller.Image().Partition(tp); fmt.Sprint(p.Leader, p.ISR, p.Doubtful) != "2 [2] []" {
			t.Errorf("%+v", p)
		}
	})
}
