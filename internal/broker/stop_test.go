package broker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// virtual runs a test in a bubble, with a broker on a network in memory.
func virtual(t *testing.T, test func(t *testing.T, s *site)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &site{
			t: t, fs: vfs.NewMemory(), memory: true, network: new(pipes), properties: map[string]string{"offsets.topic.num.partitions": "2"},
		})
	})
}

// at once fails the test where time passes in f.
func atOnce(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

// A consumer may wait for minutes: a stop answers it with what there is, here nothing.
func TestStopEndsLongPolls(t *testing.T) {
	virtual(t, func(t *testing.T, s *site) {
		b := s.start()
		c := b.dial()
		c.create("orders", 1)
		q := fetchRequest("orders", 0, 0)
		q.MaxWaitMillis, q.MinBytes = int32((10 * time.Minute).Milliseconds()), 1
		c.send(q)
		synctest.Wait() // it waits now
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			response, err := c.receive(q)
			if err != nil {
				t.Errorf("the fetch was not answered: %v", err)
				return
			}
			if p := response.(*kmsg.FetchResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
				t.Errorf("the fetch failed: %v", protocol.Code(p.ErrorCode))
			}
		}()
		atOnce(t, "the stop", b.stop)
		<-answered
	})
}

// So may the members of a group, for the others: they learn that the coordinator is elsewhere.
func TestStopEndsRebalances(t *testing.T) {
	virtual(t, func(t *testing.T, s *site) {
		s.properties["group.initial.rebalance.delay.ms"] = "600000"
		b := s.start()
		c := b.dial()
		c.warm("group")
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version, q.Group, q.ProtocolType = 3, "group", "consumer"
		q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 30_000, 600_000
		q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{}}}
		c.send(q)
		synctest.Wait()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			response, err := c.receive(q)
			if err != nil {
				t.Errorf("the member was not answered: %v", err)
				return
			}
			if code := protocol.Code(response.(*kmsg.JoinGroupResponse).ErrorCode); code != protocol.NotCoordinator {
				t.Errorf("the member learned %v, want NOT_COORDINATOR", code)
			}
		}()
		atOnce(t, "the stop", b.stop)
		<-answered
	})
}

func TestStopTwice(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory()}
	b := s.start()
	var all sync.WaitGroup
	for range 3 {
		all.Go(b.stop)
	}
	all.Wait()
	b.stop()
	select {
	case <-b.Done():
	default:
		t.Error("stopped and not done")
	}
	if err := b.Err(); err != nil {
		t.Errorf("a stop is no failure: %v", err)
	}
	if reasons := b.Unready(); len(reasons) == 0 || reasons[0][0] != "stopping" {
		t.Errorf("a stopped broker says that it is ready: %v", reasons)
	}
}

// A stop that has no time leaves what a crash leaves, and gives back as much as one that has.
func TestStopWithoutTime(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory()}
	b := s.start()
	c := b.dial()
	c.create("orders", 1)
	if answer := c.produce("orders", 0, batch(record.BuilderOptions{}, "a", "b")); answer.ErrorCode != 0 {
		t.Fatal(protocol.Code(answer.ErrorCode))
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Stop(over); err == nil {
		t.Error("no complaint about logs that were not synced")
	}
	<-b.Done()
	c = s.start().dial() // the lock is free, and so is what the store holds
	if got := c.readAll("orders", 0); len(got) != 2 {
		t.Errorf("%d records after the crash of a process, want 2", len(got))
	}
}

// A topic is deleted that has a replica on a broker that has died and is registered still, so that the deletion does not
// end. Neither the controller nor a broker that has sent the request on to it waits for that when it stops.
func TestStopDoesNotWaitForADeletion(t *testing.T) {
	for _, name := range []string{"at the controller", "at another broker"} {
		t.Run(name, func(t *testing.T) {
			r := startReplicated(t, nil)
			r.produce(1)
			r.whole()
			r.sites[2].forgives = true
			r.store.Inject(func(o memory.Operation) memory.Fault {
				if o.Name == "close" {
					return memory.Fault{Outcome: memory.RequestLost}
				}
				return memory.Fault{}
			})
			r.brokers[2].crash()
			r.store.Inject(nil)
			asked := r.brokers[0] // the controller, since it was the first
			if name == "at another broker" {
				asked = r.brokers[1]
			}
			q := kmsg.NewPtrDeleteTopicsRequest()
			q.Version, q.TopicNames, q.TimeoutMillis = 5, []string{"orders"}, int32(time.Hour.Milliseconds())
			conn, answered := asked.dial(), make(chan error, 1)
			go func() {
				response, err := conn.request(q)
				if err == nil {
					if code := protocol.Code(response.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode); code != protocol.None {
						err = code
					}
				}
				answered <- err
			}()
			awaitThat(t, "the deletion to begin", func() bool { return r.brokers[0].log.has("controller: deleting a topic") })
			asked.stop() // which fails if it takes longer than patience

			if err := <-answered; err == nil {
				t.Error("it was answered as if the topic were deleted")
			}
		})
	}
}
