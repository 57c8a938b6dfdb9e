package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// filledCast is two brokers with thirty partitions, and a third one that joins.
func filledCast(t *testing.T, properties ...string) *cast {
	c := newCast(t)
	c.configure(properties...)
	c.start(1, true, znode.StopNever)
	c.start(2, true, znode.StopNever)
	var replicas [][]P.BrokerID
	for i := range 30 {
		replicas = append(replicas, [][]P.BrokerID{{1, 2}, {2, 1}}[i%2])
	}
	assign(t, c.leader(), "t", replicas...)
	c.start(3, true, znode.StopNever)
	return c
}

// leader is the active controller.
func (c *cast) leader() *Controller {
	c.t.Helper()
	for _, b := range c.brokers {
		if b.controller.Image() != nil {
			return b.controller
		}
	}
	c.t.Fatal("no controller")
	return nil
}

// follow lets every leader put into its in-sync set whatever replica lives, and returns how many did.
func (c *cast) follow() (grown int) {
	one := c.leader()
	image := one.Image()
	for _, name := range image.Topics() {
		for i, p := range image.Topic(name).Partitions {
			var set []P.BrokerID
			for _, id := range p.Replicas {
				if image.Alive(id) {
					set = append(set, id)
				}
			}
			if p.Leader != P.NoBroker && len(set) > len(p.ISR) {
				inSync(c.t, one, P.TopicPartition{Topic: name, Partition: int32(i)}, set...)
				grown++
			}
		}
	}
	return grown
}

// has is what a broker holds and leads, by the controller.
func (c *cast) has(id P.BrokerID) (replicas, leads int) {
	image := c.leader().Image()
	for _, p := range image.Topic("t").Partitions {
		if slices.Contains(target(p), id) {
			replicas++
		}
		if p.Leader == id {
			leads++
		}
	}
	return replicas, leads
}

// A broker that has joined gets its share, a batch at a time and slowed down, with leaders; then there is peace.
func TestNewBrokerGetsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filledCast(t, "auto.balance.enable=true")
		<-time.After(fillAfter + time.Second)
		synctest.Wait()
		all, err := c.leader().ListPartitionReassignments(t.Context(), nil)
		if err != nil || len(all) != fillAtOnce {
			t.Fatalf("%d partitions are on their way, %v", len(all), err)
		}
		if n := c.leader().Moving(); n != fillAtOnce {
			t.Errorf("%d partitions are counted as moving", n)
		}
		rates, _ := c.data("/config/brokers/<default>")
		lists, _ := c.data("/config/topics/t")
		first := all[0]
		if !strings.Contains(rates, `"leader.replication.throttled.rate":"50000000"`) || !strings.Contains(rates, `"follower.replication.throttled.rate":"50000000"`) ||
			!strings.Contains(lists, fmt.Sprintf(`%d:%d`, first.Partition, first.Adding[0])) {
			t.Errorf("no throttle: %s %s", rates, lists)
		}
		for range 10 {
			c.follow()
			<-time.After(2 * fillPoll)
		}
		if replicas, leads := c.has(3); replicas != 18 || leads < 9 || leads > 10 { // nine tenths of a share, and leaders
			t.Errorf("the new broker has %d replicas and leads %d", replicas, leads)
		}
		<-time.After(2 * fillEvery)
		rates, _ = c.data("/config/brokers/<default>")
		lists, _ = c.data("/config/topics/t")
		if strings.Contains(rates+lists, "throttled") {
			t.Errorf("a throttle has stayed: %s %s", rates, lists)
		}
		if all, unclean := c.leader().Elections(); all < 9 || unclean != 0 || c.leader().Moving() != 0 {
			t.Errorf("%d elections, %d unclean, %d partitions moving", all, unclean, c.leader().Moving())
		}
		before := c.store.Tree().Zxid()
		<-time.After(time.Hour)
		if n := c.store.Tree().Zxid() - before; n != 0 {
			t.Errorf("%d writes in an hour in which nothing happened", n)
		}
	})
}

// The controller dies in every phase of it, and the next one carries on; the throttle goes at the end.
func TestSharesSurviveControllers(t *testing.T) {
	for step := range 12 {
		synctest.Test(t, func(t *testing.T) {
			c := filledCast(t, "auto.balance.enable=true")
			for i := range 20 {
				<-time.After(fillAfter/4 + fillPoll)
				if i == step {
					old := c.leader().options.BrokerID
					c.brokers[old].stop()
					<-time.After(time.Second)
					c.start(old, true, znode.StopClean)
				}
				c.follow()
			}
			<-time.After(2 * fillEvery)
			for range 6 {
				c.follow()
				<-time.After(fillEvery)
			}
			if replicas, _ := c.has(3); replicas != 18 {
				t.Errorf("controller died in step %d: the new broker has %d replicas", step, replicas)
			}
			rates, _ := c.data("/config/brokers/<default>")
			lists, _ := c.data("/config/topics/t")
			if strings.Contains(rates+lists, "throttled") {
				t.Errorf("controller died in step %d: a throttle has stayed: %s %s", step, rates, lists)
			}
		})
	}
}

// A broker that restarts is not replaced while it is away, and nothing moves while somebody else moves something.
func TestSharesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filledCast(t, "auto.balance.enable=true")
		c.brokers[2].stop()
		<-time.After(time.Hour)
		if replicas, _ := c.has(3); replicas != 0 {
			t.Errorf("%d replicas moved while a broker was away", replicas)
		}
		c.start(2, true, znode.StopClean)
		c.follow()
		reassign(t, c.leader(), 1, 3)
		<-time.After(fillAfter + fillEvery)
		if replicas, _ := c.has(3); replicas != 1 {
			t.Errorf("the new broker has %d replicas while somebody else moves one", replicas)
		}
		for range 10 {
			c.follow()
			<-time.After(2 * fillPoll)
		}
		if replicas, _ := c.has(3); replicas != 18 {
			t.Errorf("the new broker has %d replicas in the end", replicas)
		}
	})
}

// Without auto.balance.enable nothing moves by itself.
func TestNoSharesByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filledCast(t)
		<-time.After(time.Hour)
		if replicas, _ := c.has(3); replicas != 0 {
			t.Errorf("%d replicas moved", replicas)
		}
	})
}

// set sets properties of an entity.
func (c *cast) set(entity metadata.Entity, keys []string, values ...string) {
	c.t.Helper()
	change := ConfigChange{Entity: entity}
	for i, key := range keys {
		change.Ops = append(change.Ops, config.Op{Name: key, Kind: config.OpSet, Value: &values[i]})
	}
	if err := c.leader().AlterConfigs(c.t.Context(), []ConfigChange{change}, false)[0]; err != nil {
		c.t.Fatal(err)
	}
}

// Where an operator slows all replicas of a topic down, brokers get their share as well.
func TestSharesBesideThrottlesOfOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filledCast(t, "auto.balance.enable=true")
		c.set(metadata.TopicEntity("t"), config.ThrottledLists[:1], "*")
		for range 12 {
			<-time.After(fillAfter)
			c.follow()
		}
		if replicas, _ := c.has(3); replicas != 18 {
			t.Errorf("the new broker has %d replicas", replicas)
		}
		<-time.After(2 * fillEvery)
		if lists, _ := c.data("/config/topics/t"); !strings.Contains(lists, `"leader.replication.throttled.replicas":"*"`) || strings.Contains(lists, config.ThrottledLists[1]) {
			t.Errorf("%s", lists)
		}
	})
}

// A throttle that an operator has set for all brokers is not the controller's to take away, nor is a list of all replicas.
func TestThrottlesOfOperatorsStay(t *testing.T) {
	const all = "leader rate, follower rate, leader list, follower list"
	for _, test := range []struct {
		rate, leader string
		// ours is what an earlier controller has left as its own, "" for nothing.
		ours, want string
	}{
		{"777", "0:1", "", all},
		{"50000000", "0:1", "", all}, // what auto.balance.throttled.rate is, too
		{"50000000", "0:1", "[50000000]", "follower list"},
		{"60000000", "0:1", "[50000000,60000000]", "follower list"},
		{"50000000", "*", "[50000000]", "leader list, follower list"},
		{"777", "0:1", "[50000000]", "leader rate, follower rate, follower list"},
		{"777", "0:1", "[]", "leader rate, follower rate, follower list"},
		{"777", "0:1", "damaged", "leader rate, follower rate, follower list"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := filledCast(t)
			if test.ours != "" {
				c.put(znode.BalanceThrottlePath, `{"version":1,"rates":`+test.ours+`}`)
			}
			c.set(metadata.BrokerEntity(P.NoBroker), config.ThrottledRates[:], test.rate, test.rate)
			c.set(metadata.TopicEntity("t"), config.ThrottledLists[:], test.leader, "*")
			<-time.After(fillAfter + 2*fillEvery)
			rates, _ := c.data("/config/brokers/<default>")
			lists, _ := c.data("/config/topics/t")
			var stayed []string
			for i, name := range []string{"leader", "follower"} {
				if strings.Contains(rates, config.ThrottledRates[i]) {
					stayed = append(stayed, name+" rate")
				}
			}
			for i, name := range []string{"leader", "follower"} {
				if strings.Contains(lists, config.ThrottledLists[i]) {
					stayed = append(stayed, name+" list")
				}
			}
			if got := strings.Join(stayed, ", "); got != test.want {
				t.Errorf("rate %s, list %s, ours %s: %s stayed", test.rate, test.leader, test.ours, got)
			}
			if data, ok := c.data(znode.BalanceThrottlePath); ok {
				t.Errorf("rate %s: %s stayed", test.rate, data)
			}
		})
	}
}

// The rates that an operator has set for all brokers hold for what the controller moves, too, and stay as they are.
func TestSharesUnderTheRateOfAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filledCast(t, "auto.balance.enable=true")
		c.set(metadata.BrokerEntity(P.NoBroker), config.ThrottledRates[:], "777", "777")
		before, _ := c.data("/config/brokers/<default>")
		<-time.After(fillAfter + time.Second)
		synctest.Wait()
		if lists, _ := c.data("/config/topics/t"); !strings.Contains(lists, config.ThrottledLists[0]) {
			t.Errorf("nothing is slowed down: %s", lists)
		}
		for range 12 {
			c.follow()
			<-time.After(fillAfter)
		}
		<-time.After(2 * fillEvery)
		if replicas, _ := c.has(3); replicas != 18 {
			t.Errorf("the new broker has %d replicas", replicas)
		}
		after, _ := c.data("/config/brokers/<default>")
		if lists, _ := c.data("/config/topics/t"); after != before || strings.Contains(lists, "throttled") {
			t.Errorf("left are %s and %s", after, lists)
		}
	})
}
