package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

func simple(name string, partitions int32, factor int16) NewTopic {
	return NewTopic{Name: name, Partitions: partitions, ReplicationFactor: factor}
}

func create(t *testing.T, c *Controller, topics ...NewTopic) []TopicResult {
	t.Helper()
	results := c.CreateTopics(t.Context(), topics, false)
	for _, r := range results {
		if r.Err != nil {
			t.Fatalf("creating %s: %v", r.Name, r.Err)
		}
	}
	return results
}

func TestCreateTellsLeadersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		expect(t, "at first", one.told(), "alive [1]")
		r := create(t, one.controller, simple("orders", 2, 1))[0]
		if r.ID.IsZero() || r.Partitions != 2 || r.ReplicationFactor != 1 {
			t.Errorf("%+v", r)
		}
		expect(t, "after the creation", one.told(),
			"lead orders-0 leader 1 epoch 0 isr [1] version 0", "lead orders-1 leader 1 epoch 0 isr [1] version 0", "alive [1]",
			"show orders-0 leader 1 epoch 0 isr [1] version 0", "show orders-1 leader 1 epoch 0 isr [1] version 0")
		for path, want := range map[string]string{
			"/brokers/topics/orders":                    `{"partitions":{"0":[1],"1":[1]},"topic_id":"` + r.ID.String() + `","adding_replicas":{},"removing_replicas":{},"version":3}`,
			"/brokers/topics/orders/partitions/1/state": `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`,
			"/config/topics/orders":                     `{"version":1,"config":{}}`,
			"/controller_epoch":                         "1",
			"/feature":                                  `{"features":{},"version":2,"status":1}`,
		} {
			if got, ok := c.data(path); !ok || got != want {
				t.Errorf("%s holds %s, want %s", path, got, want)
			}
		}
		if image := one.controller.Image(); image.Controller != 1 || image.ControllerEpoch != 1 || image.TopicByID(r.ID) == nil {
			t.Error("the controller's image is not what it stored")
		}
	})
}

// One write for one topic on an idle broker: that is what an fsync costs.
func TestCreateIsOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		before := c.store.Tree().Zxid()
		create(t, one.controller, simple("a", 100, 1), simple("b", 1, 1))
		if n := c.store.Tree().Zxid() - before; n != 1 {
			t.Errorf("two topics took %d writes", n)
		}
		before = c.store.Tree().Zxid()
		create(t, one.controller, simple("large", 1000, 1))
		if n := c.store.Tree().Zxid() - before; n > 5 {
			t.Errorf("a topic of 1,000 partitions took %d writes", n)
		}
		if image := one.controller.Image(); len(image.Topic("large").Partitions) != 1000 || image.Partition(P.TopicPartition{Topic: "large", Partition: 999}).Leader != 1 {
			t.Error("partitions of the large topic are missing")
		}
	})
}

func TestRestartLeadsInANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("t", 1, 1))
		one.stop()
		one = c.start(1, true, znode.StopKilled)
		expect(t, "after the restart", one.told(),
			"lead t-0 leader 1 epoch 1 isr [1] version 1", "alive [1]", "show t-0 leader 1 epoch 1 isr [1] version 1")
		if epoch, ok := one.controller.Epoch(); !ok || epoch != 2 {
			t.Errorf("controller epoch %d, %v", epoch, ok)
		}
	})
}

// The broker comes back before the store has noticed that it was gone, under a controller that lives on.
func TestBounceUnderALivingController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		two := c.start(2, false, znode.StopNever)
		create(t, one.controller, NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{2, 1}}}})
		one.told()
		if err := c.store.Tree(); err == nil {
			t.Fatal("no tree")
		}
		// Hold the watch's events back, so that the end and the new beginning are seen as one.
		c.store.HoldEvents(one.session.ID())
		two.stop()
		two = c.start(2, false, znode.StopClean)
		c.store.ReleaseEvents(one.session.ID())
		expect(t, "the other", one.told(), "lead t-0 leader 1 epoch 1 isr [1] version 1", "alive [1 2]", "show t-0 leader 1 epoch 1 isr [1] version 1")
		expect(t, "the bounced one", two.told(), "lead t-0 leader 1 epoch 1 isr [1] version 1", "alive [1 2]", "show t-0 leader 1 epoch 1 isr [1] version 1")
	})
}

func TestBrokersLeaveAndJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		two, three := c.start(2, false, znode.StopNever), c.start(3, false, znode.StopNever)
		create(t, one.controller, NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{2, 3}}}})
		one.told()
		two.told()
		three.told()
		two.stop()
		expect(t, "who has no replica", one.told(), "alive [1 3]", "show t-0 leader 3 epoch 1 isr [3] version 1")
		expect(t, "the new leader", three.told(), "lead t-0 leader 3 epoch 1 isr [3] version 1", "alive [1 3]", "show t-0 leader 3 epoch 1 isr [3] version 1")
		three.stop()
		expect(t, "nobody left", one.told(), "alive [1]", "show t-0 leader -1 epoch 2 isr [3] version 2")
		two = c.start(2, false, znode.StopKilled)
		expect(t, "not in sync", two.told(), "lead t-0 leader -1 epoch 2 isr [3] version 2", "alive [1 2]", "show t-0 leader -1 epoch 2 isr [3] version 2")
		c.start(3, false, znode.StopKilled)
		expect(t, "the last in sync is back", two.told(), "lead t-0 leader 3 epoch 3 isr [3] version 3", "alive [1 2 3]", "show t-0 leader 3 epoch 3 isr [3] version 3")
	})
}

func TestControllerFailsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one, two := c.start(1, true, znode.StopNever), c.start(2, true, znode.StopNever)
		create(t, one.controller, NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{1, 2}}}})
		if r := two.controller.CreateTopics(t.Context(), []NewTopic{simple("u", 1, 1)}, false)[0]; P.CodeOf(r.Err) != P.NotController {
			t.Errorf("who is not controller said %v", r.Err)
		}
		two.told()
		one.stop()
		synctest.Wait()
		if _, ok := two.controller.Epoch(); !ok {
			t.Fatal("nobody is controller")
		}
		// The dead broker led. It does not stay in the set: the new controller has seen the cluster before, and waits
		// for nobody.
		expect(t, "at once", two.told(), "lead t-0 leader 2 epoch 1 isr [2] version 1", "alive [2]", "show t-0 leader 2 epoch 1 isr [2] version 1")
	})
}

// A controller whose session is cut off does not know that another one leads. Nothing that it does counts.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one, two := c.start(1, true, znode.StopNever), c.start(2, true, znode.StopNever)
		create(t, one.controller, simple("t", 1, 1))
		c.store.Suspend(one.session.ID())
		c.store.Expire(one.session.ID())
		synctest.Wait()
		if epoch, ok := two.controller.Epoch(); !ok || epoch != 2 {
			t.Fatal("nobody took over")
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := one.controller.CreateTopics(limited, []NewTopic{simple("ghost", 1, 1)}, false)[0]; r.Err == nil {
			t.Error("the zombie created a topic")
		}
		c.store.Resume(one.session.ID())
		synctest.Wait()
		if _, ok := one.controller.Epoch(); ok {
			t.Error("two controllers")
		}
		if _, ok := c.data("/brokers/topics/ghost"); ok {
			t.Error("the zombie's topic is there")
		}
	})
}

// What other programs write is taken over: a topic without states, more partitions, a removed topic.
func TestForeignWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		one.told()
		s := c.open()
		topic := znode.Topic{ID: P.TopicID{7}, Replicas: [][]P.BrokerID{{1}}}
		if _, _, err := s.Create(t.Context(), "/brokers/topics/t", znode.EncodeTopic(topic), coordination.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(t, "a new topic", one.told(), "lead t-0 leader 1 epoch 0 isr [1] version 0", "alive [1]", "show t-0 leader 1 epoch 0 isr [1] version 0")
		topic.Replicas = append(topic.Replicas, []P.BrokerID{1})
		if _, err := s.Set(t.Context(), "/brokers/topics/t", znode.EncodeTopic(topic), 0); err != nil {
			t.Fatal(err)
		}
		expect(t, "more partitions", one.told(), "lead t-1 leader 1 epoch 0 isr [1] version 0", "alive [1]", "show t-1 leader 1 epoch 0 isr [1] version 0")
		if _, err := s.Txn(t.Context(),
			coordination.Delete("/brokers/topics/t/partitions/0/state", -1), coordination.Delete("/brokers/topics/t/partitions/0", -1),
			coordination.Delete("/brokers/topics/t/partitions/1/state", -1), coordination.Delete("/brokers/topics/t/partitions/1", -1),
			coordination.Delete("/brokers/topics/t/partitions", -1), coordination.Delete("/brokers/topics/t", -1)); err != nil {
			t.Fatal(err)
		}
		expect(t, "removed", one.told(), "alive [1]", "show t-0 leader -2 epoch 0 isr [1] version 0", "show t-1 leader -2 epoch 0 isr [1] version 0")
		if len(one.controller.Image().Topics()) != 0 {
			t.Error("the topic is still known")
		}
	})
}

// A tool of an old Kafka makes a topic without an id, and the controller gives it one.
func TestTopicWithoutID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		c.put("/brokers/topics/t", `{"version":1,"partitions":{"0":[1]}}`)
		topic := one.controller.Image().Topic("t")
		if topic == nil || topic.ID.IsZero() || topic.Partitions[0].Leader != 1 {
			t.Fatalf("%+v", topic)
		}
		c.want("/brokers/topics/t", `{"partitions":{"0":[1]},"topic_id":"`+topic.ID.String()+`","adding_replicas":{},"removing_replicas":{},"version":3}`)
	})
}

// A broker of Kafka's hears who lives before it hears whom to follow.
func TestBrokersOfKafkaHearOfLeadersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one, two := c.start(1, true, znode.StopNever), c.start(2, false, znode.StopUnknown)
		create(t, one.controller, NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{1, 2}}}})
		two.stop()
		two = c.start(2, false, znode.StopUnknown)
		expect(t, "after its start", two.told(), "alive [1 2]",
			"lead t-0 leader 1 epoch 1 isr [1] version 1", "alive [1 2]", "show t-0 leader 1 epoch 1 isr [1] version 1")
	})
}

// A hung broker does not hold up the others, and learns only the newest when it is back.
func TestHungBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one, two := c.start(1, true, znode.StopNever), c.start(2, false, znode.StopNever)
		resume := two.hang()
		topic := NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{2, 1}}}}
		create(t, one.controller, topic)
		for range 3 { // the state changes three times
			three := c.start(3, false, znode.StopNever)
			three.stop()
		}
		one.controller.ElectLeaders(t.Context(), PreferredElection, nil)
		if got := one.told(); !strings.Contains(got, "lead t-0") {
			t.Error("the other broker was not told:", got)
		}
		resume()
		lines := strings.Split(two.told(), "\n")
		alive := 0
		for _, line := range lines {
			if strings.HasPrefix(line, "alive") {
				alive++
			}
		}
		if alive > 3 {
			t.Errorf("the hung broker was told %d times who lives:\n%s", alive, strings.Join(lines, "\n"))
		}
	})
}

func TestElectLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one, two := c.start(1, true, znode.StopNever), c.start(2, false, znode.StopNever)
		create(t, one.controller, NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{2, 1}}, {1, []P.BrokerID{1, 2}}}})
		two.stop()
		c.start(2, false, znode.StopClean)
		results := one.controller.ElectLeaders(t.Context(), PreferredElection, nil)
		if len(results) != 1 || P.CodeOf(results[0].Err) != P.PreferredLeaderNotAvailable {
			t.Errorf("%v", results)
		}
		// The follower has caught up: somebody puts it into the set, and a new controller finds it so.
		s := c.open()
		state := znode.State{ControllerEpoch: 1, Leader: 1, LeaderEpoch: 1, ISR: []P.BrokerID{1, 2}}
		for _, path := range []string{"/brokers/topics/t/partitions/0/state", "/brokers/topics/t/partitions/1/state"} {
			if _, err := s.Set(t.Context(), path, znode.EncodeState(state), -1); err != nil {
				t.Fatal(err)
			}
		}
		three := c.start(3, true, znode.StopNever)
		if err := s.Delete(t.Context(), "/controller", -1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		leader := one.controller
		if _, ok := three.controller.Epoch(); ok {
			leader = three.controller
		}
		tp := P.TopicPartition{Topic: "t", Partition: 0}
		results = leader.ElectLeaders(t.Context(), PreferredElection, []P.TopicPartition{tp, {Topic: "t", Partition: 1}, {Topic: "x"}})
		if results[0].Err != nil || P.CodeOf(results[1].Err) != P.ElectionNotNeeded || P.CodeOf(results[2].Err) != P.UnknownTopicOrPartition {
			t.Errorf("%v", results)
		}
		if p := leader.Image().Partition(tp); p.Leader != 2 || p.LeaderEpoch != 2 {
			t.Errorf("%+v", p)
		}
	})
}

// A state that is not what the controller thought is read, and decided about again.
func TestConflictingState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one, two := c.start(1, true, znode.StopNever), c.start(2, false, znode.StopNever)
		create(t, one.controller, NewTopic{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{0, []P.BrokerID{2}}}})
		s := c.open()
		state := znode.State{ControllerEpoch: 1, Leader: 2, LeaderEpoch: 5, ISR: []P.BrokerID{2}}
		if _, err := s.Set(t.Context(), "/brokers/topics/t/partitions/0/state", znode.EncodeState(state), -1); err != nil {
			t.Fatal(err)
		}
		one.told()
		two.stop()
		got := strings.TrimPrefix(one.told(), "alive [1]\n") // sometimes alone, before the state is found out
		expect(t, "after the conflict", strings.TrimPrefix(got, "alive [1]\n"), "show t-0 leader -1 epoch 6 isr [2] version 2")
	})
}

func TestPrepareAndClusterID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		s := c.open()
		id, err := Prepare(t.Context(), s, "mine")
		if err != nil || id != "mine" {
			t.Fatal(id, err)
		}
		if id, err = Prepare(t.Context(), s, ""); err != nil || id != "mine" {
			t.Error(id, err)
		}
		if _, err = Prepare(t.Context(), s, "other"); P.CodeOf(err) != P.InconsistentClusterID || !strings.Contains(err.Error(), "mine") {
			t.Error(err)
		}
		if c.store.Tree().Zxid() != 2 { // the session, and all znodes at once
			t.Errorf("preparing took %d writes", c.store.Tree().Zxid())
		}
		for n := range int32(2) {
			if drawn, err := NewBrokerID(t.Context(), s, 1000); err != nil || drawn != P.BrokerID(1001+n) {
				t.Error(drawn, err)
			}
		}
	})
}

func TestSecondBrokerWithTheSameIDWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		c.start(1, false, znode.StopNever)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Register(ctx, c.open(), znode.Registration{Broker: metadata.Broker{ID: 1}})
		if err == nil || !strings.Contains(err.Error(), "broker 1") {
			t.Error(err)
		}
	})
}
