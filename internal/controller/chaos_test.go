package controller

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Three brokers that may all be controller, on a store that loses requests and answers, expires sessions
// and delays events, while topics come and go and brokers die and return. Whatever happens, no partition has
// two leaders in one epoch; and when it has ended, everybody is told what the store holds.
func TestChaos(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func chaos(t *testing.T, r *rand.Rand) {
	c := newCast(t)
	for id := P.BrokerID(1); id <= 3; id++ {
		c.start(id, true, znode.StopNever)
	}
	for range 40 {
		c.inject(rand.New(rand.NewPCG(r.Uint64(), 2)))
		c.step(r)
		<-time.After(time.Duration(r.IntN(2000)) * time.Millisecond)
		c.store.Inject(nil)
	}
	for id := P.BrokerID(1); id <= 3; id++ {
		if b := c.brokers[id]; b == nil || b.session.Err() != nil {
			c.restart(id, r)
		}
	}
	<-time.After(2 * time.Minute)
	synctest.Wait()
	c.check()
}

// inject makes the store lose some of what it is told from now on.
func (c *cast) inject(r *rand.Rand) {
	var mu sync.Mutex
	bad := r.IntN(3) == 0
	c.store.Inject(func(o memory.Operation) memory.Fault {
		mu.Lock()
		defer mu.Unlock()
		f := memory.Fault{Delay: time.Duration(r.IntN(20)) * time.Millisecond}
		if bad && r.IntN(5) == 0 {
			f.Outcome = []memory.Outcome{memory.NotSent, memory.RequestLost, memory.AnswerLost}[r.IntN(3)]
		}
		return f
	})
}

// step does one thing to the cluster.
func (c *cast) step(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	name := fmt.Sprint("t", r.IntN(4))
	id := P.BrokerID(1 + r.IntN(3))
	for _, b := range c.brokers {
		if _, leads := b.controller.Epoch(); !leads {
			continue
		}
		switch r.IntN(6) {
		case 0, 1:
			b.controller.CreateTopics(ctx, []NewTopic{{Name: name, Partitions: int32(1 + r.IntN(3)), ReplicationFactor: int16(1 + r.IntN(3))}}, false)
		case 2:
			b.controller.DeleteTopics(ctx, []TopicRef{{Name: name}})
		case 3:
			b.controller.CreatePartitions(ctx, []Growth{{Topic: name, Count: int32(1 + r.IntN(5))}}, false)
		case 4:
			b.controller.ElectLeaders(ctx, PreferredElection, nil)
		}
		break
	}
	switch r.IntN(6) {
	case 0:
		if b := c.brokers[id]; b != nil {
			b.stop()
		}
	case 1:
		if b := c.brokers[id]; b == nil || b.session.Err() != nil {
			c.store.Inject(nil)
			c.restart(id, r)
		}
	case 2:
		if b := c.brokers[id]; b != nil {
			c.store.Expire(b.session.ID())
		}
	case 3:
		if b := c.brokers[id]; b != nil {
			c.store.HoldEvents(b.session.ID())
			time.AfterFunc(time.Second, func() { c.store.ReleaseEvents(b.session.ID()) })
		}
	}
}

// restart brings a broker back, whatever is left of it.
func (c *cast) restart(id P.BrokerID, r *rand.Rand) {
	if b := c.brokers[id]; b != nil {
		b.stop()
	}
	c.start(id, true, []znode.Stop{znode.StopClean, znode.StopKilled, znode.StopUnclean}[r.IntN(3)])
}

// check compares the store with what the controller and the brokers know.
func (c *cast) check() {
	leading := 0
	for _, b := range c.brokers {
		image := b.controller.Image()
		if image == nil {
			continue
		}
		leading++
		if got, want := fmt.Sprint(image.Topics()), fmt.Sprint(c.children("/brokers/topics")); got != want {
			c.t.Errorf("the controller knows %s, the store holds %s", got, want)
		}
		if len(image.Brokers()) != 3 {
			c.t.Errorf("the controller sees %d brokers", len(image.Brokers()))
		}
	}
	if leading != 1 {
		c.t.Errorf("%d controllers", leading)
	}
	stored := map[P.TopicPartition]string{}
	for _, name := range c.children("/brokers/topics") {
		data, _ := c.data(znode.TopicPath(name))
		topic, err := znode.DecodeTopic(name, []byte(data))
		if err != nil {
			c.t.Error(err)
		}
		for i := range topic.Replicas {
			tp := P.TopicPartition{Topic: name, Partition: int32(i)}
			stored[tp] = c.state(tp)
		}
	}
	for _, b := range c.brokers {
		if !maps.Equal(b.shown, stored) {
			c.t.Errorf("broker %d is shown\n%s\nthe store holds\n%s", b.id, lines(b.shown), lines(stored))
		}
	}
	if left := c.children("/admin/delete_topics"); len(left) > 0 {
		c.t.Errorf("deletions of %v have not ended", left)
	}
}

// state describes the stored state of a partition, and says what is wrong with it.
func (c *cast) state(tp P.TopicPartition) string {
	s := c.open()
	defer s.Close()
	data, stat, err := s.Get(context.Background(), znode.StatePath(tp))
	if err != nil {
		c.t.Error(err)
		return ""
	}
	state, err := znode.DecodeState(tp, data)
	if err != nil {
		c.t.Error(err)
	}
	if state.Leader == P.NoBroker || !slices.Contains(state.ISR, state.Leader) {
		c.t.Errorf("%s: all brokers live, the state is %s", tp, data)
	}
	return fmt.Sprintf("leader %d epoch %d version %d", state.Leader, state.LeaderEpoch, stat.Version)
}

func lines(m map[P.TopicPartition]string) string {
	var out []string
	for _, tp := range sorted(m) {
		out = append(out, tp.String()+" "+m[tp])
	}
	return strings.Join(out, "\n")
}
