package broker_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// wired is a replicated topic on three brokers, each with a wire of its own to a real ZooKeeper.
type wired struct {
	*replicated
	wires []*wire
	tree  coordination.Session
}

func startWired(t *testing.T, zk *zktest.Server, chroot string) *wired {
	c, w := &cluster{t: t}, &wired{}
	for id := range 3 {
		s := onZooKeeper(t, zk, chroot, append([]string{"broker.id", strconv.Itoa(id), "auto.leader.rebalance.enable", "false"}, shortSession...)...)
		one := &wire{only: zk.Address}
		s.dial, s.tolerates = one.dial, notBackYet
		w.wires = append(w.wires, one)
		c.sites, c.brokers = append(c.sites, s), append(c.brokers, s.start())
	}
	w.tree = observe(t, zk, chroot)
	// What is sent to a leader that is none any more, and does not know, waits for this timeout.
	w.replicated = replicate(c, kgo.ProduceRequestTimeout(time.Second))
	w.whole()
	return w
}

// registered are the epochs of the brokers that are registered.
func (w *wired) registered() map[int]int64 {
	w.t.Helper()
	epochs := map[int]int64{}
	for id := range w.brokers {
		stat, there, err := w.tree.Exists(w.ctx, znode.BrokerPath(protocol.BrokerID(id)))
		if err != nil {
			w.t.Fatal(err)
		}
		if there {
			epochs[id] = stat.Czxid
		}
	}
	return epochs
}

func TestClusterOnZooKeeper(t *testing.T) {
	zk := startZooKeeper(t)
	t.Run("a leader loses its session", func(t *testing.T) { leaderLosesSession(t, zk) })
	t.Run("all lose their sessions", func(t *testing.T) { allLoseSessions(t, zk) })
}

// A leader is cut off from ZooKeeper, and from nothing else. Others lead as soon as its session is over; what it is
// still sent it does not acknowledge; and when it is back it takes its place behind the new leader.
func leaderLosesSession(t *testing.T, zk *zktest.Server) {
	w := startWired(t, zk, "/leader")
	for range 2 {
		w.produce(20)
		zombie := w.leader()
		before := w.registered()
		w.wires[zombie].set(true)
		awaitThat(t, "the end of its session", func() bool { return w.registered()[int(zombie)] != before[int(zombie)] })
		// A broker shows a new leader after it has begun to follow it, or to lead.
		awaitThat(t, "another leader, at all others", func() bool {
			return !slices.ContainsFunc([]int32{0, 1, 2}, func(id int32) bool {
				leader := leaderAt(w.brokers[id])
				return id != zombie && (leader < 0 || leader == zombie)
			})
		})
		c := w.brokers[zombie].dial()
		q := produceRequest("orders", 0, -1, batch(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}, "too late"))
		q.TimeoutMillis = 500
		if code := ask[*kmsg.ProduceResponse](c, q).Topics[0].Partitions[0].ErrorCode; code == 0 {
			t.Errorf("broker %d acknowledged a record that it led no longer", zombie)
		}
		w.produce(20)
		w.wires[zombie].set(false)
		awaitThat(t, "its return", func() bool { return w.registered()[int(zombie)] > before[int(zombie)] })
		w.whole()
	}
	w.check()
}

// leaderAt is who leads the partition, as one broker has it.
func leaderAt(r *running) int32 {
	c := r.dial()
	defer c.Close()
	q := kmsg.NewPtrMetadataRequest()
	topic := "orders"
	q.Version, q.Topics = 9, []kmsg.MetadataRequestTopic{{Topic: &topic}}
	for _, p := range ask[*kmsg.MetadataResponse](c, q).Topics[0].Partitions {
		return p.Leader
	}
	return -1
}

// All sessions are over at once: there is one controller again, nothing is lost, and producing goes on.
func allLoseSessions(t *testing.T, zk *zktest.Server) {
	w := startWired(t, zk, "/all")
	for range 2 {
		w.produce(20)
		for _, one := range w.wires {
			one.set(true)
		}
		awaitThat(t, "the end of all sessions", func() bool { return len(w.registered()) == 0 })
		for _, one := range w.wires {
			one.set(false)
		}
		began := time.Now()
		awaitThat(t, "all registrations", func() bool { return len(w.registered()) == 3 })
		w.produce(20)
		t.Logf("producing again after %v", time.Since(began).Round(time.Millisecond))
		w.whole()
	}
	w.check()
}
