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
	for seed := range uint64(40) {
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
		if b := c.brokers[id]; b == nil || b.session.Err() != nil || c.leaving[id] {
			c.restart(id, r)
		}
	}
	<-time.After(2 * time.Minute)
	synctest.Wait()
	c.settle()
	<-time.After(2 * time.Minute)
	synctest.Wait()
	c.check()
}

// someOf chooses at least one of some brokers, in random order.
func someOf(r *rand.Rand, of ...P.BrokerID) []P.BrokerID {
	chosen := make([]P.BrokerID, len(of))
	for i, at := range r.Perm(len(of)) {
		chosen[i] = of[at]
	}
	return chosen[:1+r.IntN(len(of))]
}

// propose lets the leaders of all partitions ask for some in-sync set of living replicas, in the life in which
// they are. Some leaders know what is not so any more.
func (c *cast) propose(ctx context.Context, controller *Controller, r *rand.Rand) {
	image := controller.Image()
	if image == nil { // it has just been deposed
		return
	}
	for _, name := range image.Topics() {
		for i, p := range image.Topic(name).Partitions {
			leader := image.Broker(p.Leader)
			if leader == nil {
				continue
			}
			a := Alteration{
				TopicPartition: P.TopicPartition{Topic: name, Partition: int32(i)},
				LeaderEpoch:    p.LeaderEpoch, Epoch: p.Epoch - P.PartitionEpoch(r.IntN(4)/3), Recovering: p.Recovering,
			}
			a.ISR = append(a.ISR, Member{p.Leader, leader.Epoch})
			for _, id := range someOf(r, p.Replicas...) {
				if b := image.Broker(id); b != nil && id != p.Leader && !p.Recovering {
					a.ISR = append(a.ISR, Member{id, b.Epoch})
				}
			}
			_, _ = controller.AlterPartition(ctx, p.Leader, leader.Epoch, []Alteration{a})
		}
	}
}

// settle brings all replicas into sync, as followers do that are left in peace, until nothing moves.
func (c *cast) settle() {
	for range 5 {
		for _, b := range c.brokers {
			image := b.controller.Image()
			if image == nil {
				continue
			}
			for _, name := range image.Topics() {
				for i, p := range image.Topic(name).Partitions {
					if p.Leader == P.NoBroker {
						continue
					}
					a := Alteration{TopicPartition: P.TopicPartition{Topic: name, Partition: int32(i)}, LeaderEpoch: p.LeaderEpoch, Epoch: p.Epoch}
					for _, id := range p.Replicas {
						a.ISR = append(a.ISR, Member{id, image.Broker(id).Epoch})
					}
					_, _ = b.controller.AlterPartition(context.Background(), p.Leader, image.Broker(p.Leader).Epoch, []Alteration{a})
				}
			}
		}
		<-time.After(time.Second)
	}
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
	id := P.BrokerID(1 + r.IntN(3))
	for _, b := range c.brokers {
		if _, leads := b.controller.Epoch(); leads {
			for range 3 {
				c.ask(ctx, b.controller, r)
			}
			break
		}
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

// ask has the controller do one thing.
func (c *cast) ask(ctx context.Context, controller *Controller, r *rand.Rand) {
	name := fmt.Sprint("t", r.IntN(4))
	switch n := r.IntN(20); {
	case n < 4:
		controller.CreateTopics(ctx, []NewTopic{{Name: name, Partitions: int32(1 + r.IntN(3)), ReplicationFactor: int16(1 + r.IntN(3))}}, false)
	case n < 5:
		controller.DeleteTopics(ctx, []TopicRef{{Name: name}})
	case n < 6:
		controller.CreatePartitions(ctx, []Growth{{Topic: name, Count: int32(1 + r.IntN(5))}}, false)
	case n < 7:
		controller.ElectLeaders(ctx, PreferredElection, nil)
	case n < 13:
		c.propose(ctx, controller, r)
	case n < 18:
		_, _ = controller.AlterPartitionReassignments(ctx, []Reassignment{{P.TopicPartition{Topic: name}, someOf(r, 1, 2, 3)}}, false)
	case n < 19:
		_, _ = controller.AlterPartitionReassignments(ctx, []Reassignment{{P.TopicPartition{Topic: name}, nil}}, false)
	default:
		id := P.BrokerID(1 + r.IntN(3))
		_, _ = controller.ControlledShutdown(ctx, id, P.NoBrokerEpoch)
		c.leaving[id] = true
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
		if all, err := b.controller.ListPartitionReassignments(context.Background(), nil); err != nil || len(all) > 0 {
			c.t.Errorf("reassignments of %v have not ended, %v", all, err)
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
		if len(topic.Adding)+len(topic.Removing) > 0 {
			c.t.Errorf("%s is still reassigned: %s", name, data)
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
