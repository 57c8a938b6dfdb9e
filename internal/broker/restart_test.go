package broker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// ends are the ways in which a broker's life ends: in order, or without a chance to write anything more.
var ends = []struct {
	name string
	end  func(r *running)
}{
	{"stopped", (*running).stop},
	{"killed", (*running).crash},
}

// TestRestartDuringRebalance ends a broker in each phase of a rebalance. The group goes on from the last
// generation that was complete: its members are still members, whoever was on the way joins again, and
// committed offsets are as they were.
func TestRestartDuringRebalance(t *testing.T) {
	for _, phase := range []string{"stable", "preparing", "completing"} {
		for _, how := range ends {
			t.Run(phase+" "+how.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &site{t: t, fs: vfs.NewMemory(), network: new(pipes), forgives: true, properties: map[string]string{"offsets.topic.num.partitions": "1"}}
					r := s.start()
					one := r.rebalance(phase)
					how.end(r)
					s.start().afterRebalance(phase, one)
				})
			})
		}
	}
}

// rebalance brings a group of one member into a rebalance with a second one, as far as phase, and returns the
// membership of the first in the generation that was complete.
func (r *running) rebalance(phase string) *kmsg.JoinGroupResponse {
	a, b := r.dial(), r.dial()
	a.create("orders", 1)
	a.warm("group")
	one := ask[*kmsg.JoinGroupResponse](a, joinRequest("group", ""))
	a.sync("group", one)
	q := commitRequest("group", "orders", 0, 7)
	q.MemberID, q.Generation = one.MemberID, one.Generation
	if code := ask[*kmsg.OffsetCommitResponse](a, q).Topics[0].Partitions[0].ErrorCode; code != 0 {
		r.t.Fatal(protocol.Code(code))
	}
	if phase == "stable" {
		return one
	}
	b.send(joinRequest("group", ""))
	synctest.Wait() // the second one waits for the first
	if code := a.heartbeat("group", one); code != protocol.RebalanceInProgress {
		r.t.Fatalf("a heartbeat while another member joins: %v", code)
	}
	if phase == "completing" {
		again := ask[*kmsg.JoinGroupResponse](a, joinRequest("group", one.MemberID))
		if again.Generation != one.Generation+1 {
			r.t.Fatalf("generation %d follows %d", again.Generation, one.Generation)
		}
	}
	return one
}

// afterRebalance goes on with the group in the broker's next life.
func (r *running) afterRebalance(phase string, one *kmsg.JoinGroupResponse) {
	a, b := r.dial(), r.dial()
	if got := a.committed("group", "orders", 0); got != 7 {
		r.t.Errorf("offset %d is committed, want 7", got)
	}
	if code := a.heartbeat("group", one); code != protocol.None {
		r.t.Errorf("a heartbeat of the member in the last complete generation: %v", code)
	}
	b.send(joinRequest("group", ""))
	synctest.Wait()
	if code := a.heartbeat("group", one); code != protocol.RebalanceInProgress {
		r.t.Errorf("a heartbeat while the other member joins again: %v", code)
	}
	again := ask[*kmsg.JoinGroupResponse](a, joinRequest("group", one.MemberID))
	answer, err := b.receive(joinRequest("group", ""))
	if err != nil {
		r.t.Fatal(err)
	}
	two := answer.(*kmsg.JoinGroupResponse)
	if again.ErrorCode != 0 || two.ErrorCode != 0 || again.Generation != one.Generation+1 || two.Generation != again.Generation {
		r.t.Fatalf("after %s: %+v and %+v", phase, again, two)
	}
	leader, follower, first, second := a, b, again, two
	if two.LeaderID == two.MemberID {
		leader, follower, first, second = b, a, two, again
	}
	if len(first.Members) != 2 {
		r.t.Errorf("%d members in generation %d", len(first.Members), first.Generation)
	}
	if got := leader.sync("group", first); got.ErrorCode != 0 || string(got.MemberAssignment) != first.MemberID {
		r.t.Errorf("the leader's assignment: %+v", got)
	}
	if got := follower.sync("group", second); got.ErrorCode != 0 || string(got.MemberAssignment) != second.MemberID {
		r.t.Errorf("the other's assignment: %+v", got)
	}
}

// TestRestartsUnderIdempotentLoad stops and kills a broker again and again under idempotent producers that
// repeat what they got no answer for (BR-108): in the end every record is there once, in order, at the offset
// that was acknowledged.
func TestRestartsUnderIdempotentLoad(t *testing.T) {
	const producers, lives = 3, 6
	s := &site{t: t, fs: vfs.NewMemory(), network: new(pipes), forgives: true}
	r := s.start()
	r.dial().create("orders", producers, "segment.index.bytes", "256", "index.interval.bytes", "0")
	done := make(chan struct{})
	var running sync.WaitGroup
	acked := make([]map[string]int64, producers)
	progress := make(chan struct{}, 1)
	for p := range int32(producers) {
		acked[p] = map[string]int64{}
		sent := sentBatch{producer: r.dial().newProducer()}
		running.Go(func() { s.insist(p, sent, acked[p], progress, done) })
	}
	random := rand.New(rand.NewPCG(1, 2))
	for life := range lives {
		for range 30 + random.IntN(100) {
			<-progress
		}
		ends[life%len(ends)].end(r)
		r = s.start()
	}
	close(done)
	running.Wait()
	c := r.dial()
	for p := range int32(producers) {
		all := c.readAll("orders", p)
		for i, got := range all {
			if got.value != fmt.Sprint(i) || got.offset != int64(i) {
				t.Fatalf("partition %d: %q is at %d", p, got.value, got.offset)
			}
		}
		for value, offset := range acked[p] {
			if offset >= int64(len(all)) || all[offset].value != value {
				t.Errorf("partition %d: %s was acknowledged at %d of %d", p, value, offset, len(all))
			}
		}
	}
}

// insist produces to one partition over all lives of the broker. A batch goes out again until it is
// acknowledged, on a new connection where the old one is gone.
func (s *site) insist(partition int32, next sentBatch, acked map[string]int64, progress chan<- struct{}, done <-chan struct{}) {
	var c *conn
	for value := 0; ; value++ {
		next.values = []string{fmt.Sprint(value)}
		for answered := false; !answered; {
			select {
			case <-done:
				return
			default:
			}
			if c == nil {
				network, err := s.network.dial()
				if err != nil {
					continue // between two lives
				}
				c = newConn(s.t, network)
			}
			response, err := c.request(produceRequest("orders", partition, -1, next.bytes()))
			if err != nil {
				c = nil
				continue
			}
			answer := response.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			switch code := protocol.Code(answer.ErrorCode); {
			case code == protocol.None:
				acked[next.values[0]], answered = answer.BaseOffset, true
			case !code.Retriable():
				s.t.Errorf("partition %d: %s: %v", partition, next.values[0], code)
				return
			}
		}
		next.sequence++
		select {
		case progress <- struct{}{}:
		default:
		}
	}
}

// TestRepeatsAfterARestart repeats, after a restart, the five batches that a producer may have in flight: a
// client whose connection broke does not know which of them were taken. All are duplicates, though what is on
// the disk of a producer names the last one alone; other producers and segments between them do no harm.
func TestRepeatsAfterARestart(t *testing.T) {
	for _, how := range ends {
		for _, segments := range []string{"one segment", "many segments"} {
			t.Run(how.name+", "+segments, func(t *testing.T) {
				s := &site{t: t, fs: vfs.NewMemory(), network: new(pipes), forgives: true}
				r := s.start()
				c := r.dial()
				properties := []string{"index.interval.bytes", "0"}
				if segments == "many segments" {
					properties = append(properties, "segment.index.bytes", "32")
				}
				c.create("orders", 1, properties...)
				one, other := sentBatch{producer: c.newProducer()}, sentBatch{producer: c.newProducer()}
				var sent []sentBatch
				for i := range 9 {
					for _, p := range []*sentBatch{&one, &other} {
						p.values = slices.Repeat([]string{fmt.Sprint(i)}, 1+i%3)
						answer := c.produce("orders", 0, p.bytes())
						if answer.ErrorCode != 0 {
							t.Fatal(protocol.Code(answer.ErrorCode))
						}
						p.offset = answer.BaseOffset
						if p == &one {
							sent = append(sent, one)
						}
						p.sequence += int32(len(p.values))
					}
				}
				how.end(r)
				s.start().stop() // a life in which the client does not come back
				c = s.start().dial()
				for _, again := range sent[len(sent)-5:] {
					if answer := c.produce("orders", 0, again.bytes()); answer.ErrorCode != 0 || answer.BaseOffset != again.offset {
						t.Errorf("sequence %d got %v at %d, want a duplicate at %d", again.sequence, protocol.Code(answer.ErrorCode), answer.BaseOffset, again.offset)
					}
				}
				gap := one
				gap.sequence++
				if answer := c.produce("orders", 0, gap.bytes()); protocol.Code(answer.ErrorCode) != protocol.OutOfOrderSequenceNumber {
					t.Errorf("a gap got %v", protocol.Code(answer.ErrorCode))
				}
				if answer := c.produce("orders", 0, one.bytes()); answer.ErrorCode != 0 {
					t.Errorf("the next batch got %v", protocol.Code(answer.ErrorCode))
				}
			})
		}
	}
}
