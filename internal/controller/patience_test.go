package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// lonely is a cluster of three whose partition t-0 only broker 3 is in sync with; 2 holds more than 1. The topic
// allows unclean elections where unclean is true. Then 3 dies.
func lonely(t *testing.T, unclean bool) (*cast, *Controller) {
	t.Helper()
	c, brokers := three(t)
	c.holds[1], c.holds[2] = 5, 7
	one := brokers[0].controller
	assign(t, one, "t", []P.BrokerID{3, 1, 2})
	inSync(t, one, P.TopicPartition{Topic: "t"}, 3)
	if unclean {
		allowUnclean(t, one)
	}
	brokers[2].stop()
	return c, one
}

func allowUnclean(t *testing.T, c *Controller) {
	t.Helper()
	yes := "true"
	change := ConfigChange{Entity: metadata.TopicEntity("t"), Ops: []config.Op{{Name: "unclean.leader.election.enable", Value: &yes}}}
	if errs := c.AlterConfigs(t.Context(), []ConfigChange{change}, false); errs[0] != nil {
		t.Fatal(errs[0])
	}
	synctest.Wait()
}

// Until unclean.recovery.timeout.ms is over nobody leads, and anybody can see until when; then the longest log does.
func TestUncleanElectionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one := lonely(t, true)
		tp := P.TopicPartition{Topic: "t"}
		until := time.Now().Add(30 * time.Second)
		<-time.After(30*time.Second - 1)
		synctest.Wait()
		if p := one.Image().Partition(tp); p.Leader != P.NoBroker {
			t.Errorf("before the time is over: %+v", p)
		}
		if waits := one.Waits(); len(waits) != 1 || waits[0].TopicPartition != tp || !waits[0].Until.Equal(until) {
			t.Errorf("waiting for %v, and not until %v", waits, until)
		}
		<-time.After(1)
		synctest.Wait()
		if p := one.Image().Partition(tp); fmt.Sprint(p.Leader, p.ISR, p.Recovering) != "2 [2] true" {
			t.Errorf("when it is over: %+v", p)
		}
		if _, unclean := one.Elections(); unclean != 1 || len(one.Waits()) != 0 {
			t.Errorf("%d unclean elections, waiting for %v", unclean, one.Waits())
		}
	})
}

// Who comes back in time leads, and has everything.
func TestUncleanElectionIsAvoided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, one := lonely(t, true)
		<-time.After(29 * time.Second)
		c.start(3, false, znode.StopKilled)
		if p := one.Image().Partition(P.TopicPartition{Topic: "t"}); p.Leader != 3 || p.Recovering || len(one.Waits()) != 0 {
			t.Errorf("%+v, waiting for %v", p, one.Waits())
		}
	})
}

// While no replica lives nothing is waited for. The first one that is back waits for the others.
func TestUncleanElectionWaitsForWhoIsSlowToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, brokers := three(t)
		one, tp := brokers[0].controller, P.TopicPartition{Topic: "t"}
		assign(t, one, "t", []P.BrokerID{3, 2})
		inSync(t, one, tp, 3)
		allowUnclean(t, one)
		brokers[2].stop()
		<-time.After(20 * time.Second)
		brokers[1].stop()
		<-time.After(time.Hour)
		synctest.Wait()
		if waits := one.Waits(); len(waits) != 0 {
			t.Errorf("waiting for %v", waits)
		}
		c.start(2, false, znode.StopKilled)
		<-time.After(30*time.Second - 1)
		synctest.Wait()
		if p := one.Image().Partition(tp); p.Leader != P.NoBroker || len(one.Waits()) != 1 {
			t.Errorf("before the time is over: %+v, waiting for %v", p, one.Waits())
		}
		<-time.After(1)
		synctest.Wait()
		if p := one.Image().Partition(tp); p.Leader != 2 || !p.Recovering {
			t.Errorf("when it is over: %+v", p)
		}
	})
}

// An operator who gives up what is lost is heard soon, through whatever the topic's property was changed, and does not
// wait for what has been waited for already.
func TestUncleanElectionAllowedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, one := lonely(t, false)
		<-time.After(time.Hour)
		synctest.Wait()
		if waits := one.Waits(); len(waits) != 0 {
			t.Errorf("waiting for %v, which nobody allowed", waits)
		}
		config := []byte(`{"version":1,"config":{"unclean.leader.election.enable":"true"}}`)
		if _, err := c.open().Set(t.Context(), "/config/topics/t", config, coordination.AnyVersion); err != nil {
			t.Fatal(err)
		}
		<-time.After(lookAtStuck)
		synctest.Wait()
		if p := one.Image().Partition(P.TopicPartition{Topic: "t"}); p.Leader != 2 {
			t.Errorf("%+v", p)
		}
	})
}

// No election is held for a topic that is being deleted, however long its deletion takes.
func TestUncleanElectionOfADeletedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one := lonely(t, true)
		if r := one.DeleteTopics(t.Context(), []TopicRef{{Name: "t"}})[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
		<-time.After(lookAtStuck)
		synctest.Wait()
		if waits := one.Waits(); len(waits) != 0 {
			t.Errorf("waiting for %v", waits)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if p := one.Image().Partition(P.TopicPartition{Topic: "t"}); p != nil && p.Leader != P.NoBroker {
			t.Errorf("%+v", p)
		}
	})
}

// The directory of the only replica in sync has failed, and its broker lives: it is waited for as if the broker were dead.
func TestUncleanElectionOfAFailedDirectory(t *testing.T) {
	for name, back := range map[string]bool{"it stays away": false, "it is back in time": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, brokers := three(t)
				c.holds[1], c.holds[2] = 5, 7
				one, tp := brokers[0].controller, P.TopicPartition{Topic: "t"}
				assign(t, one, "t", []P.BrokerID{3, 1, 2})
				inSync(t, one, tp, 3)
				allowUnclean(t, one)
				brokers[2].breakDisk()
				until := time.Now().Add(30 * time.Second)
				if waits := one.Waits(); len(waits) != 1 || !waits[0].Until.Equal(until) {
					t.Errorf("waiting for %v, and not until %v", waits, until)
				}
				want := "2 [2] true [3]"
				if back {
					<-time.After(29 * time.Second)
					brokers[2].stop()
					c.start(3, false, znode.StopKilled)
					want = "3 [3] false []"
				}
				<-time.After(30 * time.Second)
				synctest.Wait()
				if p := one.Image().Partition(tp); fmt.Sprint(p.Leader, p.ISR, p.Recovering, p.Offline) != want || len(one.Waits()) != 0 {
					t.Errorf("%+v, waiting for %v; want %s", p, one.Waits(), want)
				}
			})
		})
	}
}

// A wait under way goes by what unclean.recovery.timeout.ms is now, as soon as the controller looks.
func TestUncleanElectionWaitsByTheChangedProperty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, one := lonely(t, true)
		began, tp := time.Now(), P.TopicPartition{Topic: "t"}
		set := func(timeout string) {
			t.Helper()
			c.configure("unclean.recovery.timeout.ms=" + timeout)
			<-time.After(lookAtStuck)
			synctest.Wait()
		}
		set("60000")
		if waits := one.Waits(); len(waits) != 1 || !waits[0].Until.Equal(began.Add(time.Minute)) {
			t.Errorf("waiting for %v, and not until %v", waits, began.Add(time.Minute))
		}
		<-time.After(40 * time.Second)
		synctest.Wait()
		if p := one.Image().Partition(tp); p.Leader != P.NoBroker {
			t.Errorf("the longer time is not over: %+v", p)
		}
		set("10000")
		if p := one.Image().Partition(tp); p.Leader != 2 || len(one.Waits()) != 0 {
			t.Errorf("the shorter time is over: %+v, waiting for %v", p, one.Waits())
		}
	})
}
