package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// reassign begins a reassignment of t-0.
func reassign(t *testing.T, c *Controller, replicas ...P.BrokerID) {
	t.Helper()
	results, err := c.AlterPartitionReassignments(t.Context(), []Reassignment{{P.TopicPartition{Topic: "t"}, replicas}}, false)
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	synctest.Wait()
}

// written writes the reassignments under way.
func written(all []Ongoing) string {
	var out []string
	for _, o := range all {
		out = append(out, fmt.Sprint(o.TopicPartition, o.Replicas, o.Adding, o.Removing))
	}
	return strings.Join(out, "\n")
}

// assignment is what the topic's znode says, without the id.
func (c *cast) assignment(topic string) string {
	data, _ := c.data("/brokers/topics/" + topic)
	before, after, _ := strings.Cut(data, `,"topic_id":"`)
	return before + after[strings.Index(after, `"`)+1:]
}

// A replica moves from 1 to 3 in the steps of KIP-455: what is written, and what everybody hears.
func TestReassignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{1, 2})
		for _, b := range brokers {
			b.told()
		}
		before := c.store.Tree().Zxid()
		reassign(t, one, 2, 3)
		if n := c.store.Tree().Zxid() - before; n != 1 {
			t.Errorf("%d writes", n)
		}
		if got := c.assignment("t"); got != `{"partitions":{"0":[2,3,1]},"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]},"version":3}` {
			t.Error(got)
		}
		for _, b := range brokers {
			expect(t, fmt.Sprint("at the beginning ", b.id), b.told(), "lead t-0 leader 1 epoch 1 isr [1 2] version 1", "alive [1 2 3]", "show t-0 leader 1 epoch 1 isr [1 2] version 1")
		}
		all, err := one.ListPartitionReassignments(t.Context(), nil)
		if err != nil || written(all) != "t-0 [2 3 1] [3] [1]" {
			t.Error(all, err)
		}
		resume := brokers[0].hang()
		inSync(t, one, P.TopicPartition{Topic: "t"}, 1, 2, 3)
		if all, _ = one.ListPartitionReassignments(t.Context(), nil); written(all) != "t-0 [2 3 1] [3] [1]" {
			t.Error("while the old replica is not deleted:", all)
		}
		c.want("/brokers/topics/t/partitions/0/state", `{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":2,"isr":[2,3]}`)
		resume()
		// The larger set may have been shown before, or may not.
		heard := strings.TrimPrefix(brokers[0].told(), "alive [1 2 3]\nshow t-0 leader 1 epoch 1 isr [1 2 3] version 2\n")
		expect(t, "who loses its replica", heard, "alive [1 2 3]", "show t-0 leader 2 epoch 2 isr [2 3] version 3", "stop t-0 epoch 2 delete false", "stop t-0 epoch 2 delete true")
		if got := c.assignment("t"); got != `{"partitions":{"0":[2,3]},"adding_replicas":{},"removing_replicas":{},"version":3}` {
			t.Error(got)
		}
		if all, _ = one.ListPartitionReassignments(t.Context(), []P.TopicPartition{{Topic: "t"}}); len(all) != 0 {
			t.Error(all)
		}
	})
}

// The controller dies after each step, and the next one carries on.
func TestReassignmentSurvivesControllers(t *testing.T) {
	for step := range 4 {
		synctest.Test(t, func(t *testing.T) {
			c := newCast(t)
			for id := P.BrokerID(1); id <= 4; id++ {
				c.start(id, id >= 3, znode.StopNever)
			}
			leader := func() *Controller {
				for _, id := range []P.BrokerID{3, 4} {
					if b := c.brokers[id]; b != nil && b.controller.Image() != nil {
						return b.controller
					}
				}
				t.Fatal("no controller")
				return nil
			}
			die := func(after int) {
				if after == step {
					old := leader().options.BrokerID
					c.brokers[old].stop()
					c.start(old, true, znode.StopClean)
					<-time.After(time.Minute)
				}
			}
			assign(t, leader(), "t", []P.BrokerID{1})
			reassign(t, leader(), 2)
			die(0)
			inSync(t, leader(), P.TopicPartition{Topic: "t"}, 1)
			die(1)
			resume := c.brokers[1].hang()
			inSync(t, leader(), P.TopicPartition{Topic: "t"}, 1, 2)
			die(2) // the old replica has not been deleted
			resume()
			synctest.Wait()
			die(3)
			<-time.After(10 * time.Second)
			if got := c.assignment("t"); got != `{"partitions":{"0":[2]},"adding_replicas":{},"removing_replicas":{},"version":3}` {
				t.Errorf("controller died after step %d: %s", step, got)
			}
			if p := leader().Image().Partition(P.TopicPartition{Topic: "t"}); fmt.Sprint(p.Leader, p.ISR, p.Replicas) != "2 [2] [2]" {
				t.Errorf("controller died after step %d: %+v", step, p)
			}
			if got := c.brokers[1].told(); !strings.Contains(got, "delete true") {
				t.Error("the old replica was not deleted:", got)
			}
		})
	}
}

// The old replica's broker is dead: the reassignment ends without it.
func TestReassignmentAwayFromTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 1})
		brokers[1].stop()
		reassign(t, one, 1, 3)
		inSync(t, one, P.TopicPartition{Topic: "t"}, 1, 3)
		if got := c.assignment("t"); got != `{"partitions":{"0":[1,3]},"adding_replicas":{},"removing_replicas":{},"version":3}` {
			t.Error(got)
		}
	})
}

func TestReassignmentIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{1, 2})
		before := c.assignment("t")
		reassign(t, one, 3)
		reassign(t, one)
		if got := c.assignment("t"); got != before {
			t.Error(got)
		}
		if got := brokers[2].told(); !strings.Contains(got, "stop t-0 epoch 2 delete true") {
			t.Error(got)
		}
		results, err := one.AlterPartitionReassignments(t.Context(), []Reassignment{
			{P.TopicPartition{Topic: "t"}, nil}, {P.TopicPartition{Topic: "t", Partition: 1}, nil}, {P.TopicPartition{Topic: "u"}, []P.BrokerID{1}},
		}, false)
		if err != nil || P.CodeOf(results[0].Err) != P.NoReassignmentInProgress ||
			P.CodeOf(results[1].Err) != P.UnknownTopicOrPartition || P.CodeOf(results[2].Err) != P.UnknownTopicOrPartition {
			t.Error(results, err)
		}
		if _, err := brokers[1].controller.AlterPartitionReassignments(t.Context(), nil, false); P.CodeOf(err) != P.NotController {
			t.Error(err)
		}
	})
}

// A deletion is not held up by a reassignment, and takes it along.
func TestReassignmentAndDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{1})
		reassign(t, one, 2, 3)
		if r := one.DeleteTopics(t.Context(), []TopicRef{{Name: "t"}}); r[0].Err != nil {
			t.Fatal(r)
		}
		if got := brokers[2].told(); !strings.Contains(got, "stop t-0 epoch -2 delete true") {
			t.Error(got)
		}
		if all, err := one.ListPartitionReassignments(t.Context(), nil); len(all) != 0 || err != nil {
			t.Error(all, err)
		}
		if len(c.children("/brokers/topics")) != 0 {
			t.Error("the topic is still there")
		}
	})
}

// The requests of old tools: what is wrong is left out, and the znode goes when all has ended.
func TestReassignmentByZnode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{1}, []P.BrokerID{1})
		c.put(znode.ReassignPartitionsPath, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2]},
			{"topic":"t","partition":1,"replicas":[3]},{"topic":"t","partition":7,"replicas":[3]}]}`)
		c.want(znode.ReassignPartitionsPath, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2]},{"topic":"t","partition":1,"replicas":[3]}]}`)
		inSync(t, one, P.TopicPartition{Topic: "t"}, 1, 2)
		c.want(znode.ReassignPartitionsPath, `{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[3]}]}`)
		inSync(t, one, P.TopicPartition{Topic: "t", Partition: 1}, 1, 3)
		if _, ok := c.data(znode.ReassignPartitionsPath); ok {
			t.Error("the request is still there")
		}
		c.put(znode.ReassignPartitionsPath, `nonsense`)
		if _, ok := c.data(znode.ReassignPartitionsPath); ok {
			t.Error("the damaged request is still there")
		}
	})
}

func TestPreferredElectionByZnode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 1})
		brokers[1].stop()
		c.start(2, true, znode.StopClean)
		inSync(t, one, P.TopicPartition{Topic: "t"}, 1, 2)
		c.put(znode.PreferredElectionPath, `{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":0}]}`)
		if p := one.Image().Partition(P.TopicPartition{Topic: "t"}); p.Leader != 2 {
			t.Errorf("%+v", p)
		}
		if _, ok := c.data(znode.PreferredElectionPath); ok {
			t.Error("the request is still there")
		}
	})
}

// Leaders of old Kafka versions write states themselves, and say so afterwards.
func TestIsrChangeNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 1})
		s := c.open()
		state := znode.State{ControllerEpoch: 1, Leader: 2, ISR: []P.BrokerID{2}}
		if _, err := s.Set(t.Context(), "/brokers/topics/t/partitions/0/state", znode.EncodeState(state), 0); err != nil {
			t.Fatal(err)
		}
		brokers[2].told()
		if _, _, err := s.Create(t.Context(), znode.IsrChangesPath+"/isr_change_", znode.EncodePartitions([]P.TopicPartition{{Topic: "t"}, {Topic: "u"}}), coordination.CreateOptions{Sequential: true}); err != nil {
			t.Fatal(err)
		}
		expect(t, "after the announcement", brokers[2].told(), "alive [1 2 3]", "show t-0 leader 2 epoch 0 isr [2] version 1")
		if len(c.children(znode.IsrChangesPath)) != 0 {
			t.Error("the announcement is still there")
		}
	})
}

// breakDisk makes a broker answer that it can serve none of its replicas, and announce that a directory has failed.
func (b *fakeBroker) breakDisk() {
	b.cast.t.Helper()
	b.mu.Lock()
	b.answers[4] = P.KafkaStorageError
	b.mu.Unlock()
	if err := AnnounceLogDirFailure(b.cast.t.Context(), b.session, b.id); err != nil {
		b.cast.t.Fatal(err)
	}
	synctest.Wait()
}

// repairDisk lets it serve them again, within the same life.
func (b *fakeBroker) repairDisk() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[4] = P.None
}

// A log directory fails: the broker says so, is asked, and another one leads what was in it. What nobody else is in
// sync with has no leader. When the broker is back in another life the replicas count again.
func TestLogDirFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one, two := brokers[0].controller, brokers[1]
		assign(t, one, "t", []P.BrokerID{2, 3}, []P.BrokerID{3, 2})
		assign(t, one, "alone", []P.BrokerID{2})
		two.breakDisk()
		partitions := append(slices.Clone(one.Image().Topic("t").Partitions), one.Image().Topic("alone").Partitions...)
		if got := fmt.Sprint(partitions[0].Leader, partitions[0].ISR, partitions[1].Leader, partitions[1].ISR, partitions[2].Leader, partitions[2].ISR); got != "3 [3] 3 [3] -1 [2]" {
			t.Error(got)
		}
		if len(c.children(znode.LogDirEventsPath)) != 0 {
			t.Error("the announcement is still there")
		}
		two.stop()
		c.start(2, false, znode.StopClean)
		inSync(t, one, P.TopicPartition{Topic: "t"}, 3, 2)
		if p := one.Image().Partition(P.TopicPartition{Topic: "t"}); fmt.Sprint(p.ISR, p.Offline) != "[3 2] []" {
			t.Errorf("%+v", p)
		}
		if p := one.Image().Partition(P.TopicPartition{Topic: "alone"}); p.Leader != 2 {
			t.Errorf("%+v", p)
		}
	})
}

// Where the only replica in sync cannot be served for a while, as its disk is full, nobody leads until the broker has
// carried out an order that is repeated to it.
func TestLogDirIsFullForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one, two, tp := brokers[0].controller, brokers[1], P.TopicPartition{Topic: "t"}
		assign(t, one, "t", []P.BrokerID{2, 3})
		inSync(t, one, tp, 2)
		two.breakDisk()
		before := c.store.Tree().Zxid()
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if p := one.Image().Partition(tp); fmt.Sprint(p.Leader, p.LeaderEpoch, p.ISR, p.Offline) != "-1 1 [2] [2]" || c.store.Tree().Zxid() != before {
			t.Errorf("%+v after %d writes", p, c.store.Tree().Zxid()-before)
		}
		two.told()
		two.repairDisk()
		<-time.After(repeatOrdersMax)
		orders := slices.DeleteFunc(strings.Split(two.told(), "\n"), func(line string) bool { return !strings.HasPrefix(line, "lead ") })
		expect(t, "when there is space", strings.Join(orders, "\n"), "lead t-0 leader -1 epoch 1 isr [2] version 2", "lead t-0 leader 2 epoch 2 isr [2] version 3")
	})
}

// Leadership moves back by itself when the controller looks, and not before.
func TestBalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one := brokers[0].controller
		assign(t, one, "t", []P.BrokerID{2, 1})
		<-time.After(firstBalance + time.Second)
		brokers[1].stop()
		c.start(2, true, znode.StopClean)
		inSync(t, one, P.TopicPartition{Topic: "t"}, 1, 2)
		leader := func() P.BrokerID { return one.Image().Partition(P.TopicPartition{Topic: "t"}).Leader }
		<-time.After(4 * time.Minute)
		if leader() != 1 {
			t.Error("leadership moved too early")
		}
		<-time.After(time.Minute)
		if synctest.Wait(); leader() != 2 {
			t.Error("leadership did not move back")
		}
	})
}

// The cluster grows from one broker to three, and the brokers' own topics with it.
func TestInternalTopicsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever).controller
		create(t, one, NewTopic{Name: P.GroupMetadataTopic, Partitions: 3, ReplicationFactor: -1}, simple("t", 1, 1))
		c.start(2, false, znode.StopNever)
		c.start(3, false, znode.StopNever)
		<-time.After(widenAfter + time.Second)
		for i, p := range one.Image().Topic(P.GroupMetadataTopic).Partitions {
			if len(p.Replicas) != 3 || len(p.Adding) != 2 || p.Leader != 1 {
				t.Errorf("%d: %+v", i, p)
			}
			inSync(t, one, P.TopicPartition{Topic: P.GroupMetadataTopic, Partition: int32(i)}, 1, 2, 3)
		}
		if got := c.assignment(P.GroupMetadataTopic); got != `{"partitions":{"0":[1,2,3],"1":[2,1,3],"2":[3,1,2]},"adding_replicas":{},"removing_replicas":{},"version":3}` {
			t.Error(got)
		}
		<-time.After(6 * time.Minute) // leadership is spread when the controller looks
		if leads := one.Image().Topic(P.GroupMetadataTopic).Partitions; leads[1].Leader != 2 || leads[2].Leader != 3 {
			t.Error(leads[1], leads[2])
		}
		if p := one.Image().Topic("t").Partitions[0]; len(p.Replicas) != 1 {
			t.Error("another topic has grown", p)
		}
	})
}
