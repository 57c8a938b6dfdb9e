package replica

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// proposing is a leader, broker 1, whose follower, broker 2, has caught up; asked gets what the controller is asked.
type proposing struct {
	*stage
	p      *Partition
	asked  chan *kmsg.AlterPartitionRequest
	reply  chan *kmsg.AlterPartitionResponse // nil for no answer
	cancel context.CancelFunc
	ended  chan struct{}
}

func newProposing(t *testing.T, withIDs bool) *proposing {
	s := newStage(t)
	if !withIDs {
		s.ids["t"] = protocol.TopicID{}
	}
	c := &proposing{stage: s, asked: make(chan *kmsg.AlterPartitionRequest), reply: make(chan *kmsg.AlterPartitionResponse), ended: make(chan struct{})}
	s.options.BrokerEpoch = func() protocol.BrokerEpoch { return 11 }
	s.options.Controller = func(ctx context.Context, q kmsg.Request) (kmsg.Response, error) {
		select {
		case c.asked <- q.(*kmsg.AlterPartitionRequest):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if response := <-c.reply; response != nil {
			return response, nil
		}
		return nil, errors.New("the connection is gone")
	}
	order := s.order("t", metadata.Lead, 4, 1)
	order.State.Replicas, order.State.Epoch = []protocol.BrokerID{1, 2}, 6
	for _, err := range s.tell(order) {
		t.Fatal(err)
	}
	p, err := s.Partition(tp("t"))
	s.must(err)
	c.p = p
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() { defer close(c.ended); s.Run(ctx) }()
	return c
}

func (c *proposing) stop() {
	c.cancel()
	<-c.ended
}

// fetches lets broker 2 say that it has all up to offset.
func (c *proposing) fetches(offset protocol.Offset) {
	c.t.Helper()
	c.must(c.p.Followed(context.Background(), partition.Fetch{Replica: 2, Epoch: 22, Offset: offset}, 4))
}

// answer answers a request with a code and a state in leader epoch 4.
func (c *proposing) answer(q *kmsg.AlterPartitionRequest, code protocol.Code, epoch int32, inSync ...int32) {
	c.answerIn(4, q, code, epoch, inSync...)
}

// answerIn is answer in any leader epoch.
func (c *proposing) answerIn(leaderEpoch int32, q *kmsg.AlterPartitionRequest, code protocol.Code, epoch int32, inSync ...int32) {
	response := q.ResponseKind().(*kmsg.AlterPartitionResponse)
	topic := kmsg.NewAlterPartitionResponseTopic()
	topic.Topic, topic.TopidID = q.Topics[0].Topic, q.Topics[0].TopicID
	one := kmsg.NewAlterPartitionResponseTopicPartition()
	one.ErrorCode, one.LeaderID, one.LeaderEpoch, one.PartitionEpoch, one.ISR = int16(code), 1, leaderEpoch, epoch, inSync
	topic.Partitions = append(topic.Partitions, one)
	response.Topics = append(response.Topics, topic)
	c.reply <- response
}

func (c *proposing) wantInSync(want ...protocol.BrokerID) {
	c.t.Helper()
	synctest.Wait()
	if r, ok := c.p.Replication([]protocol.BrokerID{2}); !ok || !slices.Equal(r.InSync, want) {
		c.t.Errorf("in sync are %v, want %v", r.InSync, want)
	}
}

func TestProposalOfACaughtUpReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		c.write(c.p, 3, AcksLeader)
		c.fetches(3)
		q := <-c.asked
		one := q.Topics[0].Partitions[0]
		if q.Version != 3 || q.BrokerID != 1 || q.BrokerEpoch != 11 || q.Topics[0].TopicID != c.id("t") || one.LeaderEpoch != 4 || one.PartitionEpoch != 6 {
			t.Errorf("asks %+v", q)
		}
		want := []kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{{BrokerID: 1, BrokerEpoch: 11}, {BrokerID: 2, BrokerEpoch: 22}}
		if len(one.NewEpochISR) != 2 || one.NewEpochISR[0].BrokerEpoch != want[0].BrokerEpoch || one.NewEpochISR[1].BrokerEpoch != want[1].BrokerEpoch {
			t.Errorf("asks for %+v, want %+v", one.NewEpochISR, want)
		}
		c.answer(q, protocol.None, 7, 1, 2)
		c.wantInSync(1, 2)
		if s := c.Stats(); s != (Stats{Expands: 1}) {
			t.Errorf("%+v", s)
		}
		// It stands still. In the end it leaves.
		c.write(c.p, 1, AcksLeader)
		q = <-c.asked
		if got := q.Topics[0].Partitions[0]; len(got.NewEpochISR) != 1 || got.PartitionEpoch != 7 {
			t.Errorf("asks for %+v from %d, want broker 1 alone from 7", got.NewEpochISR, got.PartitionEpoch)
		}
		c.answer(q, protocol.None, 8, 1)
		c.wantInSync(1)
		if b := c.p.Bounds(); b.HighWatermark != 4 {
			t.Errorf("bounds %+v", b)
		}
	})
}

// What gets no definite answer is asked again, and nothing else meanwhile.
func TestProposalWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		c.fetches(0)
		q := <-c.asked
		c.reply <- nil
		again := <-c.asked
		if again.Topics[0].Partitions[0].PartitionEpoch != q.Topics[0].Partitions[0].PartitionEpoch {
			t.Errorf("asks %+v, then %+v", q, again)
		}
		refusal := again.ResponseKind().(*kmsg.AlterPartitionResponse)
		refusal.ErrorCode = int16(protocol.NotController)
		c.reply <- refusal
		q = <-c.asked
		c.wantInSync(1)
		c.answer(q, protocol.None, 7, 1, 2)
		c.wantInSync(1, 2)
	})
}

// A proposal is asked again and again while there is no controller. When this broker leads in another epoch by then, there
// is another proposal, and the answer to the old one says nothing about it.
func TestProposalOfAnEpochThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		c.fetches(0)
		<-c.asked
		c.reply <- nil
		synctest.Wait() // it is to be asked again in a while
		order := c.order("t", metadata.Lead, 5, 1)
		order.State.Replicas, order.State.Epoch = []protocol.BrokerID{1, 2}, 7
		for _, err := range c.tell(order) {
			t.Fatal(err)
		}
		c.must(c.p.Followed(context.Background(), partition.Fetch{Replica: 2, Epoch: 22}, 5))
		q := <-c.asked
		if asked := q.Topics[0].Partitions; len(asked) != 1 || asked[0].LeaderEpoch != 5 || asked[0].PartitionEpoch != 7 {
			t.Errorf("asks %+v, want what epoch 5 proposes alone", asked)
		}
		c.answerIn(5, q, protocol.None, 8, 1, 2)
		c.wantInSync(1, 2)
	})
}

// A refused replica that waits for records says nothing more. It is proposed again all the same.
func TestRefusedReplicaIsProposedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, false)
		defer c.stop()
		c.fetches(0)
		q := <-c.asked
		if q.Version != 1 || q.Topics[0].Topic != "t" || !slices.Equal(q.Topics[0].Partitions[0].NewISR, []int32{1, 2}) {
			t.Errorf("asks %+v", q)
		}
		c.answer(q, protocol.IneligibleReplica, 0)
		began := time.Now()
		q = <-c.asked
		if waited := time.Since(began); waited < partition.HoldOff || waited > 2*partition.HoldOff {
			t.Errorf("asks again after %v, want about %v", waited, partition.HoldOff)
		}
		c.answer(q, protocol.None, 7, 1, 2)
		c.wantInSync(1, 2)
	})
}

// A success in another leader epoch says nothing about the proposal, and does not silence the partition for long.
func TestSuccessInAnotherEpochIsAskedForAgain(t *testing.T) {
	for _, epoch := range []int32{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := newProposing(t, true)
			defer c.stop()
			c.fetches(0)
			c.answerIn(epoch, <-c.asked, protocol.None, 9, 1, 2)
			c.wantInSync(1)
			began := time.Now()
			q := <-c.asked
			if waited := time.Since(began); waited < partition.HoldOff || waited > 2*partition.HoldOff {
				t.Errorf("asks again after %v, want about %v", waited, partition.HoldOff)
			}
			c.answer(q, protocol.None, 7, 1, 2)
			c.wantInSync(1, 2)
		})
	}
}

// A controller that does not let a member go, as another one has just restarted, is not asked again and again meanwhile.
func TestRefusedLeaveIsNotAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		c.fetches(0)
		c.answer(<-c.asked, protocol.None, 7, 1, 2)
		c.write(c.p, 1, AcksLeader)
		q := <-c.asked
		if got := q.Topics[0].Partitions[0]; len(got.NewEpochISR) != 1 {
			t.Errorf("asks for %+v, want broker 1 alone", got.NewEpochISR)
		}
		c.answer(q, protocol.IneligibleReplica, 0)
		began := time.Now()
		c.answer(<-c.asked, protocol.None, 8, 1)
		if waited := time.Since(began); waited < partition.HoldOff || waited > 2*partition.HoldOff {
			t.Errorf("asks again after %v, want about %v", waited, partition.HoldOff)
		}
		c.wantInSync(1)
	})
}

// Of two partitions that are refused one soon after the other, each is proposed again when its own hold-off is over.
func TestRefusedOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		order := c.order("u", metadata.Lead, 4, 1)
		order.State.Replicas, order.State.Epoch = []protocol.BrokerID{1, 2}, 6
		for _, err := range c.tell(order) {
			t.Fatal(err)
		}
		second, err := c.Partition(tp("u"))
		c.must(err)
		c.fetches(0)
		c.answer(<-c.asked, protocol.IneligibleReplica, 0)
		<-time.After(partition.HoldOff / 2)
		c.must(second.Followed(context.Background(), partition.Fetch{Replica: 2, Epoch: 22}, 4))
		c.answer(<-c.asked, protocol.IneligibleReplica, 0)
		began := time.Now()
		for _, want := range []string{"t", "u"} {
			q := <-c.asked
			if got := q.Topics[0].TopicID; got != c.id(want) {
				t.Errorf("asks for %v, want %s", got, want)
			}
			c.answer(q, protocol.None, 7, 1, 2)
		}
		if waited := time.Since(began); waited < partition.HoldOff || waited > 2*partition.HoldOff {
			t.Errorf("the second one is asked for again after %v, want about %v", waited, partition.HoldOff)
		}
	})
}

// A replica that hangs outside of the in-sync set holds records up for as long as it may lag, and then no longer,
// although nothing is appended and nobody fetches.
func TestWatermarkDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		c.fetches(0)
		q := <-c.asked
		c.write(c.p, 1, AcksLeader)
		c.answer(q, protocol.IneligibleReplica, 0)
		hang, cancel := context.WithTimeout(context.Background(), 2*partition.HoldOff)
		defer cancel()
		<-hang.Done()
		c.write(c.p, 1, AcksLeader)
		if b := c.p.Bounds(); b.HighWatermark != 1 {
			t.Errorf("bounds %+v: the watermark waits for a replica that may join", b)
		}
		limit, cancel := context.WithTimeout(context.Background(), 2*c.options.Config().Duration("replica.lag.time.max.ms"))
		defer cancel()
		if err := c.p.Wait(limit, 4, 2); err != nil {
			t.Errorf("the second record is not committed: %v", err)
		}
	})
}

// The state that UpdateMetadata shows counts, and ends a proposal that it makes impossible.
func TestStateFromTheImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProposing(t, true)
		defer c.stop()
		c.fetches(0)
		q := <-c.asked
		c.answer(q, protocol.InvalidUpdateVersion, 0)
		c.wantInSync(1)
		shown := &metadata.Partition{Leader: 1, LeaderEpoch: 4, Epoch: 9, Replicas: []protocol.BrokerID{1, 2}, ISR: []protocol.BrokerID{1, 2}}
		c.Apply(metadata.Delta{From: c.image, To: c.image, Partitions: []metadata.PartitionChange{{TopicPartition: tp("t"), TopicID: c.id("t"), New: shown}}}, c.image)
		c.wantInSync(1, 2)
	})
}
