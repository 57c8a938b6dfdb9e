package api

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// produced is the answer for the only partition of a request.
func produced(response *kmsg.ProduceResponse) kmsg.ProduceResponseTopicPartition {
	return response.Topics[0].Partitions[0]
}

// idempotent is a batch of one record in a producer's sequence.
func idempotent(producer protocol.ProducerID, sequence int32) []byte {
	b := record.NewBuilder(record.BuilderOptions{Idempotent: true, ProducerID: producer, BaseSequence: sequence})
	b.Append(1000, nil, fmt.Appendf(nil, "record %d", sequence))
	return b.Build()
}

func TestAcks(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, true)
	for i, acks := range []int16{1, -1} {
		if got := produced(ask[*kmsg.ProduceResponse](s, s.producing("t", acks, records(2)))); got.ErrorCode != 0 || got.BaseOffset != int64(2*i) || got.LogAppendTime != -1 {
			t.Errorf("acks=%d: %+v", acks, got)
		}
	}
	for _, acks := range []int16{2, -2} {
		got := produced(ask[*kmsg.ProduceResponse](s, s.producing("t", acks, records(1))))
		if protocol.Code(got.ErrorCode) != protocol.InvalidRequiredAcks || got.BaseOffset != -1 {
			t.Errorf("acks=%d: %+v, want INVALID_REQUIRED_ACKS", acks, got)
		}
	}
	if reply := s.begin(s.producing("t", 0, records(1))); !reply.NoResponse || reply.Close {
		t.Errorf("acks=0: %+v, want no answer", reply)
	}
	if reply := s.begin(s.producing("nobody", 0, records(1))); !reply.NoResponse || !reply.Close {
		t.Errorf("acks=0 and an error: %+v, want a closed connection", reply)
	}
	if got := produced(ask[*kmsg.ProduceResponse](s, s.producing("t", 1, records(1)))); got.BaseOffset != 5 {
		t.Errorf("offset %d after five records, want 5", got.BaseOffset)
	}
}

// Two requests that the client sends without waiting append in their order, whatever they wait for later.
func TestPipelinedBatchesAppendInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("t", 1, false)
		first, second := s.producing("t", -1, idempotent(7, 0)), s.producing("t", -1, idempotent(7, 1))
		waiting := s.begin(first)
		behind := s.begin(second)
		again := s.begin(s.producing("t", -1, idempotent(7, 0))) // the client's retry of the first
		if waiting.Phase == nil || behind.Phase == nil || again.Phase == nil {
			t.Fatal("acks=all is answered although broker 2 has nothing, or for a repeated batch that it has not")
		}
		s.inSync("t", self)
		if got := produced(finished[*kmsg.ProduceResponse](s, second, behind)); got.ErrorCode != 0 || got.BaseOffset != 1 {
			t.Errorf("the second: %+v", got)
		}
		if got := produced(finished[*kmsg.ProduceResponse](s, first, waiting)); got.ErrorCode != 0 || got.BaseOffset != 0 {
			t.Errorf("the first: %+v", got)
		}
		if got := produced(finished[*kmsg.ProduceResponse](s, first, again)); got.ErrorCode != 0 || got.BaseOffset != 0 {
			t.Errorf("the repeated one: %+v, want the offset of the first", got)
		}
		if got := produced(ask[*kmsg.ProduceResponse](s, s.producing("t", -1, idempotent(7, 3)))); protocol.Code(got.ErrorCode) != protocol.OutOfOrderSequenceNumber {
			t.Errorf("a gap in the sequence: %v", protocol.Code(got.ErrorCode))
		}
	})
}

// Each partition of a request waits for itself: one that is committed is a success although another one's time
// is up.
func TestAcksAllTimesOutByPartition(t *testing.T) {
	for _, timeout := range []time.Duration{0, 3 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.lead("slow", 1, false)
				s.lead("quick", 1, true)
				q := s.producing("slow", -1, records(1))
				q.Topics = append(q.Topics, s.producing("quick", -1, records(1)).Topics...)
				q.TimeoutMillis = int32(timeout.Milliseconds())
				began := time.Now()
				response := ask[*kmsg.ProduceResponse](s, q)
				if got := produced(response); protocol.Code(got.ErrorCode) != protocol.RequestTimedOut || got.BaseOffset != -1 {
					t.Errorf("the slow one: %+v, want REQUEST_TIMED_OUT", got)
				}
				if got := response.Topics[1].Partitions[0]; got.ErrorCode != 0 || got.BaseOffset != 0 {
					t.Errorf("the quick one: %+v", got)
				}
				if took := time.Since(began).Truncate(time.Millisecond); took != timeout {
					t.Errorf("answered after %v, want %v", took, timeout)
				}
			})
		})
	}
}

// What ends a wait is not lost where it comes before the wait has begun, as a timeout of 0 may.
func TestAcksAllThatEndsBeforeItBegins(t *testing.T) {
	for why, want := range map[server.Why]protocol.Code{
		server.TimeUp: protocol.RequestTimedOut, server.Ended: protocol.NotLeaderOrFollower,
	} {
		s := newStage(t)
		s.lead("t", 1, false)
		q := s.producing("t", -1, records(1))
		var response *server.Response
		asleep := server.NewSleep(s.begin(q).Phase, func(r *server.Response, _ *server.Bug) { response = r })
		asleep.Post(why)
		asleep.Begin(0)
		if response == nil {
			t.Fatalf("it waits on after %v, and nothing else will end it", want)
		}
		if got := produced(decoded(s, q, response).(*kmsg.ProduceResponse)); protocol.Code(got.ErrorCode) != want {
			t.Errorf("%v, want %v", protocol.Code(got.ErrorCode), want)
		}
	}
}

// A member that dies takes the partition into the next epoch. What waits is not refused for that.
func TestAcksAllIntoTheNextEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("t", 1, false)
		q := s.producing("t", -1, records(1))
		reply := s.begin(q)
		s.lead("t", 1, true)
		if got := produced(finished[*kmsg.ProduceResponse](s, q, reply)); got.ErrorCode != 0 || got.BaseOffset != 0 {
			t.Errorf("%v, offset %d, want none and 0", protocol.Code(got.ErrorCode), got.BaseOffset)
		}
	})
}

func TestAcksAllAndALostLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("t", 1, false)
		q := s.producing("t", -1, records(1))
		reply := s.begin(q)
		s.epochs["t"]++
		s.lead("t", 1, true) // again, but somebody else may have led in between
		if got := produced(finished[*kmsg.ProduceResponse](s, q, reply)); protocol.Code(got.ErrorCode) != protocol.NotLeaderOrFollower {
			t.Errorf("%v, want NOT_LEADER_OR_FOLLOWER", protocol.Code(got.ErrorCode))
		}
	})
}

// What is kept of a request must not lie in its frame, which belongs to somebody else once the first phase is
// over.
func TestWaitingProduceDoesNotNeedItsFrame(t *testing.T) {
	for _, version := range []int16{3, 8, 9, 12, 13} {
		s := newStage(t)
		s.lead("orders", 1, false)
		q := s.producing("orders", -1, records(3))
		q.Version = version
		q.Topics = append(q.Topics, s.producing("missing", -1, records(1)).Topics...)
		q.Topics[1].TopicID = protocol.NewTopicID()
		frame := frameOf(q)
		reply := s.handle(frame)
		for i := range frame {
			frame[i] = 0xee
		}
		for range 3 { // the pooled parts of requests go round
			s.write("orders", 0, 1)
		}
		s.inSync("orders", self)
		response := finished[*kmsg.ProduceResponse](s, q, reply)
		if got := produced(response); got.ErrorCode != 0 || got.BaseOffset != 0 {
			t.Errorf("version %d: %+v", version, got)
		}
		want := protocol.UnknownTopicOrPartition
		if version >= 13 {
			want = protocol.UnknownTopicID
		}
		if got := response.Topics[1]; protocol.Code(got.Partitions[0].ErrorCode) != want {
			t.Errorf("version %d: the missing topic: %+v, want %v", version, got, want.Name())
		}
		if version < 13 && (response.Topics[0].Topic != "orders" || response.Topics[1].Topic != "missing") {
			t.Errorf("version %d: topics %q and %q", version, response.Topics[0].Topic, response.Topics[1].Topic)
		}
	}
}

func TestProduceRefusals(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, true)
	damaged := bytes.Clone(records(1))
	damaged[len(damaged)-1]++
	for _, refusal := range []struct {
		name string
		q    *kmsg.ProduceRequest
		want protocol.Code
	}{
		{"an internal topic", s.producing(protocol.GroupMetadataTopic, 1, records(1)), protocol.InvalidTopic},
		{"no such topic", s.producing("nobody", 1, records(1)), protocol.UnknownTopicOrPartition},
		{"damaged records", s.producing("t", 1, damaged), protocol.CorruptMessage},
		{"no records", s.producing("t", 1, nil), protocol.InvalidRecord},
		{"two batches", s.producing("t", 1, append(bytes.Clone(records(1)), records(1)...)), protocol.InvalidRecord},
	} {
		got := produced(ask[*kmsg.ProduceResponse](s, refusal.q))
		if protocol.Code(got.ErrorCode) != refusal.want || got.BaseOffset != -1 || got.LogStartOffset != -1 {
			t.Errorf("%s: %+v, want %v", refusal.name, got, refusal.want.Name())
		}
	}
	s.traffic.All(func(topic string, _ *TopicTraffic) {
		if topic != "t" {
			t.Errorf("counters for %q, which does not exist", topic)
		}
	})
}

// A leader that lives may have no address on the listener that the client uses.
func TestLeaderWithoutTheClientsListener(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, true)
	s.conn.Listener = "OUTSIDE"
	for version, want := range map[int16]protocol.Code{1: protocol.LeaderNotAvailable, 5: protocol.LeaderNotAvailable, 6: protocol.ListenerNotFound, 13: protocol.ListenerNotFound} {
		q := kmsg.NewPtrMetadataRequest()
		q.Version = version
		response := ask[*kmsg.MetadataResponse](s, q)
		if p := response.Topics[0].Partitions[0]; protocol.Code(p.ErrorCode) != want || p.Leader != -1 || len(response.Brokers) != 0 {
			t.Errorf("version %d: %+v and %d brokers, want %v", version, p, len(response.Brokers), want.Name())
		}
	}
	s.conn.Listener = "INSIDE"
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 9
	response := ask[*kmsg.MetadataResponse](s, q)
	if len(response.Brokers) != 1 || response.Brokers[0].Host != "inside" || response.Brokers[0].Port != 9093 {
		t.Errorf("brokers for the inside: %+v", response.Brokers)
	}
}
