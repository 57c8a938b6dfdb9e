package replica

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

const (
	sendingRate  = "leader.replication.throttled.rate"
	fetchingRate = "follower.replication.throttled.rate"
)

// withRate is a broker's configuration with a rate; a negative one is none.
func withRate(t *testing.T, property, rate string) *config.Broker {
	t.Helper()
	c, err := config.Default().WithDynamic(map[string]string{property: rate}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestQuota(t *testing.T) {
	c, now := config.Default(), time.Duration(0)
	q := quota{config: func() *config.Broker { return c }, property: sendingRate, clock: func() time.Duration { return now }}
	step := func(what string, want time.Duration) {
		t.Helper()
		if got := q.held(); got < want || got > want+time.Millisecond {
			t.Errorf("%s: held for %v, want %v", what, got, want)
		}
	}
	q.add(1 << 40)
	step("no rate", 0)
	c = withRate(t, sendingRate, "1000")
	step("a rate begins with nothing", 0)
	q.add(5000)
	step("5000 bytes at once", 5*time.Second)
	now += 4 * time.Second
	step("4 seconds later", time.Second)
	c = withRate(t, sendingRate, "2000")
	step("at twice the rate", time.Second/2)
	now += time.Hour
	q.add(2000)
	step("an hour saves up one window", 0)
	q.add(1000)
	step("what is more", time.Second/2)
	c = withRate(t, sendingRate, "0")
	step("nothing at all", time.Hour)
	c = config.Default()
	step("no rate any more", 0)
}

// rate gives a stage a rate.
func (s *stage) rate(t *testing.T, property, rate string) {
	c := withRate(t, property, rate)
	s.options.Config = func() *config.Broker { return c }
}

func TestThrottledLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(metadata.TopicEntity("t"), map[string]string{"leader.replication.throttled.replicas": "0:1,0:2"})
		s.set(metadata.TopicEntity("u"), map[string]string{"leader.replication.throttled.replicas": "1:1,0:2"})
		p, other := s.lead("t", 0, 1, 3), s.lead("u", 0, 1, 3)
		expect := func(what string, p *Partition, follower protocol.BrokerID, counts bool, held time.Duration) {
			t.Helper()
			if c, h := p.Throttled(t.Context(), follower); c != counts || h < held || h > held+time.Millisecond {
				t.Errorf("%s: counts %v, held for %v", what, c, h)
			}
		}
		expect("without a rate", p, 2, false, 0)
		s.rate(t, sendingRate, "1000")
		expect("nothing sent yet", p, 2, true, 0)
		s.Sent(3000)
		expect("three seconds' worth", p, 2, true, 3*time.Second)
		expect("a follower in sync", p, 3, false, 0)
		expect("a replica that is not in the list", other, 2, false, 0)
		time.Sleep(3 * time.Second)
		expect("afterwards", p, 2, true, 0)
	})
}

// newThrottled has partitions 0 and 1 of t fetched, the first one at 100 bytes a second.
func newThrottled(t *testing.T) *fetching {
	f := newFetching(t, 17)
	f.rate(t, fetchingRate, "100")
	f.set(metadata.TopicEntity("t"), map[string]string{"follower.replication.throttled.replicas": "0:2"})
	for number := range int32(2) {
		order := f.order("t", metadata.Follow, 3, 1)
		order.Partition, order.State.Leader, order.State.Replicas = number, 1, []protocol.BrokerID{1, 2}
		f.tell(order)
	}
	f.run()
	return f
}

// What is throttled is left out of fetches until the rate allows more, and what is in sync is not throttled.
func TestThrottledFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newThrottled(t)
		defer f.stop()
		q, named := f.next()
		if !slices.Equal(named, []int32{0, 1}) {
			t.Fatalf("names %v, want both", named)
		}
		batch := f.stage.validated(f.partition(0), 100).Batch
		batch.SetLeaderEpoch(3)
		seconds := time.Duration(len(batch)) * time.Second / 100
		began := time.Now()
		got, rest := part(0, 0), part(1, 0)
		got.RecordBatches, got.HighWatermark = batch, 1000
		f.answer(q, 5, got, rest)
		for len(named) != 1 || named[0] != 0 {
			if q, named = f.next(); time.Since(began) < seconds && slices.Contains(named, 0) {
				t.Errorf("partition 0 is fetched again after %v, %d bytes at 100 a second", time.Since(began), len(batch))
			}
			if len(q.ForgottenTopics) > 0 && (time.Since(began) > 0 || !slices.Equal(q.ForgottenTopics[0].Partitions, []int32{0})) {
				t.Errorf("forgets %+v after %v", q.ForgottenTopics, time.Since(began))
			}
			if q.MaxWaitMillis > 500 {
				t.Errorf("waits for %d ms", q.MaxWaitMillis)
			}
			if len(named) == 0 {
				time.Sleep(time.Duration(q.MaxWaitMillis) * time.Millisecond)
				f.answer(q, 5)
			}
		}
		if late := time.Since(began) - seconds; late < 0 || late > 10*time.Millisecond {
			t.Errorf("partition 0 is fetched again %v too late", late)
		}
		got = part(0, 0)
		got.HighWatermark = 100 // it has all there is
		f.answer(q, 5, got)
		q, _ = f.next()
		batch = f.stage.validated(f.partition(0), 100).Batch
		batch.SetLeaderEpoch(3)
		batch.SetBaseOffset(100)
		got.RecordBatches, got.HighWatermark = batch, 200
		f.answer(q, 5, got)
		if _, named = f.next(); !slices.Equal(named, []int32{0}) {
			t.Errorf("names %v, want the replica that has caught up", named)
		}
		f.reply <- nil
	})
}

// What is held up while another session begins, without it, is fetched again as well.
func TestThrottledFollowerInANewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newThrottled(t)
		defer f.stop()
		q, _ := f.next()
		batch := f.stage.validated(f.partition(0), 100).Batch
		batch.SetLeaderEpoch(3)
		got := part(0, 0)
		got.RecordBatches, got.HighWatermark = batch, 1000
		f.answer(q, 0, got, part(1, 0)) // no session
		q, named := f.next()
		if q.SessionEpoch != 0 || !slices.Equal(named, []int32{1}) {
			t.Fatalf("session epoch %d, names %v, want another session with partition 1", q.SessionEpoch, named)
		}
		f.answer(q, 5, part(1, 0))
		q, _ = f.next()
		time.Sleep(time.Duration(len(batch))*time.Second/100 + time.Millisecond)
		f.answer(q, 5)
		if q, named = f.next(); q.SessionEpoch != 2 || !slices.Equal(named, []int32{0}) {
			t.Errorf("session epoch %d, names %v, want partition 0", q.SessionEpoch, named)
		}
		f.reply <- nil
	})
}

// A higher rate, or none, holds at once.
func TestThrottleThatIsLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, 17)
		defer f.stop()
		f.rate(t, fetchingRate, "1")
		var now atomic.Pointer[config.Broker]
		now.Store(f.stage.options.Config())
		f.stage.options.Config = now.Load
		f.set(metadata.TopicEntity("t"), map[string]string{"follower.replication.throttled.replicas": "*"})
		order := f.order("t", metadata.Follow, 3, 1)
		order.State.Leader = 1
		f.tell(order)
		f.run()
		q, _ := f.next()
		batch := f.stage.validated(f.partition(0), 100).Batch
		batch.SetLeaderEpoch(3)
		got := part(0, 0)
		got.RecordBatches, got.HighWatermark = batch, 1000
		f.answer(q, 5, got)
		synctest.Wait()
		select {
		case <-f.asked:
			t.Fatal("it fetches on")
		default:
		}
		now.Store(config.Default())
		f.set(metadata.BrokerEntity(2), map[string]string{})
		if q, _ := f.next(); q.Topics[0].Partitions[0].FetchOffset != 100 {
			t.Errorf("%+v", q)
		}
		f.reply <- nil
	})
}
