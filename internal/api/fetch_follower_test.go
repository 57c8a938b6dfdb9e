package api

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// following makes a consumer's request one of broker 2, which follows in leader epoch epoch and has records of last.
func following(q *kmsg.FetchRequest, epoch, last int32) *kmsg.FetchRequest {
	q.ReplicaState.ID, q.ReplicaState.Epoch = other, 9
	for i := range q.Topics {
		for j := range q.Topics[i].Partitions {
			p := &q.Topics[i].Partitions[j]
			p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = epoch, last, 0
		}
	}
	return q
}

// watermark is that of partition 0 of a topic.
func (s *stage) watermark(topic string) protocol.Offset {
	s.t.Helper()
	p, err := s.Replicas.Partition(protocol.TopicPartition{Topic: topic})
	if err != nil {
		s.t.Fatal(err)
	}
	return p.Bounds().HighWatermark
}

// only is the only partition of an answer.
func only(t *testing.T, response *kmsg.FetchResponse) kmsg.FetchResponseTopicPartition {
	t.Helper()
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		t.Fatalf("not one partition: %+v", response)
	}
	return response.Topics[0].Partitions[0]
}

// A follower reads up to the log end, and where it reads from is what it has.
func TestFollowerFetch(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, false)
	s.write("t", 0, 3)
	c := &consumer{s: s, version: 17}
	got := only(t, ask[*kmsg.FetchResponse](s, following(c.request(nil, want{"t", 0, 0}), 0, -1)))
	if got.ErrorCode != 0 || len(got.RecordBatches) == 0 || got.HighWatermark != 0 || s.watermark("t") != 0 {
		t.Errorf("code %d, %d bytes, watermark %d there and %d here", got.ErrorCode, len(got.RecordBatches), got.HighWatermark, s.watermark("t"))
	}
	if got = only(t, ask[*kmsg.FetchResponse](s, c.request(nil, want{"t", 0, 0}))); len(got.RecordBatches) != 0 {
		t.Error("a consumer got what is not committed")
	}
	only(t, ask[*kmsg.FetchResponse](s, following(c.request(nil, want{"t", 0, 3}), 0, 0)))
	if w := s.watermark("t"); w != 3 {
		t.Errorf("watermark %d, want 3: the follower has all", w)
	}
}

// A follower names its partitions no more while they have nothing new. What it said counts again after its broker has left the cluster
// and come back without a restart, as one does whose session with the store has expired; and it counts for the life in
// which the broker registers then.
func TestFollowerThatWasAway(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, false)
	s.write("t", 0, 3)
	s.inSync("t", self) // of which broker 2 is not one
	c := &consumer{s: s, version: 17}
	follow := func(life int64, wants ...want) *kmsg.FetchResponse {
		q := following(c.request(nil, wants...), 0, 0)
		q.ReplicaState.Epoch = life
		response := ask[*kmsg.FetchResponse](s, q)
		c.id, c.epoch = response.SessionID, nextEpoch(c.epoch)
		return response
	}
	behind := func(when string, records int64) {
		t.Helper()
		p, err := s.Replicas.Partition(protocol.TopicPartition{Topic: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := p.Replication([]protocol.BrokerID{other}); r.Lags[0] != records {
			t.Errorf("%s the leader takes it for %d records behind, want %d", when, r.Lags[0], records)
		}
	}
	follow(9, want{"t", 0, 2}) // with 3 it would be proposed to join
	behind("when it fetches", 1)
	image, _ := s.View.Image().With(metadata.PutBroker{Broker: &metadata.Broker{ID: other}})
	without, left := image.With(metadata.DropBroker{ID: other})
	s.Replicas.Apply(left, without)
	behind("away", 3)
	follow(9)
	behind("back", 1)

	follow(10)
	q := following(c.request(nil, want{"t", 0, 2}), 0, 0)
	q.SessionID, q.SessionEpoch, q.ReplicaState.Epoch = 0, -1, 9
	if got := only(t, ask[*kmsg.FetchResponse](s, q)); protocol.Code(got.ErrorCode) != protocol.NotLeaderOrFollower {
		t.Errorf("an earlier life than the one that was heard last: %v", protocol.Code(got.ErrorCode))
	}
}

// What does not agree with the leader's log says nothing about the follower (BR-070).
func TestFollowerFetchThatDoesNotCount(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, false)
	s.lead("t", 1, false) // epoch 1
	s.write("t", 0, 3)
	c := &consumer{s: s, version: 17}
	for _, one := range []struct {
		name        string
		epoch, last int32
		offset      int64
		replica     int32
		code        protocol.Code
		diverging   int32
	}{
		{"an older epoch", 0, 0, 3, other, protocol.FencedLeaderEpoch, -1},
		{"a newer epoch", 2, 1, 3, other, protocol.UnknownLeaderEpoch, -1},
		{"records of an epoch without any", 1, 0, 3, other, protocol.None, 0},
		{"more than there is", 1, 1, 5, other, protocol.None, 1},
		{"behind the end, without an epoch", 1, -1, 5, other, protocol.OffsetOutOfRange, -1},
		{"a broker without a replica", 1, 1, 3, 7, protocol.UnknownLeaderEpoch, -1},
	} {
		q := following(c.request(nil, want{"t", 0, one.offset}), one.epoch, one.last)
		q.ReplicaState.ID = one.replica
		got := only(t, ask[*kmsg.FetchResponse](s, q))
		if protocol.Code(got.ErrorCode) != one.code || got.DivergingEpoch.Epoch != one.diverging {
			t.Errorf("%s: %v, diverging %+v", one.name, protocol.Code(got.ErrorCode), got.DivergingEpoch)
		}
		if w := s.watermark("t"); w != 0 {
			t.Errorf("%s: watermark %d, want 0", one.name, w)
		}
	}
}

// A follower waits for records. What is committed meanwhile it is told when its time is up, and not before.
func TestFollowerWaitsForRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("t", 1, false)
		s.write("t", 0, 2)
		c := &consumer{s: s, version: 17, wait: 500}
		q := following(c.request(nil, want{"t", 0, 2}), 0, 0)
		began := time.Now()
		got := only(t, finished[*kmsg.FetchResponse](s, q, s.begin(q)))
		if waited := time.Since(began); waited != 500*time.Millisecond || got.HighWatermark != 2 || len(got.RecordBatches) != 0 {
			t.Errorf("after %v: watermark %d, %d bytes; want 2 and none after 500 ms", waited, got.HighWatermark, len(got.RecordBatches))
		}
		reply := s.begin(q)
		answer := make(chan *kmsg.FetchResponse)
		go func() { answer <- finished[*kmsg.FetchResponse](s, q, reply) }()
		synctest.Wait()
		began = time.Now()
		s.write("t", 0, 1)
		if got = only(t, <-answer); time.Since(began) != 0 || len(got.RecordBatches) == 0 {
			t.Errorf("after %v: %d bytes; want records at once", time.Since(began), len(got.RecordBatches))
		}
	})
}

// A follower that sends something behind a fetch which waits has more to fetch.
func TestFollowerThatHasMoreToFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("t", 1, false)
		c := &consumer{s: s, version: 17, wait: 500}
		q := following(c.request(nil, want{"t", 0, 0}), 0, -1)
		reply := s.begin(q)
		if !reply.Yields {
			t.Error("a follower's request does not yield")
		}
		answer := make(chan *kmsg.FetchResponse)
		go func() { answer <- finished[*kmsg.FetchResponse](s, q, reply) }()
		synctest.Wait()
		began := time.Now()
		s.asleep.Load().Post(server.Overtaken)
		<-answer
		if waited := time.Since(began); waited != 0 {
			t.Errorf("answered after %v, want at once", waited)
		}
	})
}

// bytesOf is how many bytes of a partition's records are in an answer about one topic.
func bytesOf(response *kmsg.FetchResponse, partition int32) int {
	for _, p := range response.Topics[0].Partitions {
		if p.Partition == partition {
			return len(p.RecordBatches)
		}
	}
	return 0
}

// A follower that is not in sync gets no more than the rate allows; it waits no longer than it has to, and nothing else
// waits for it.
func TestThrottledFollowerFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "leader.replication.throttled.rate=1000")
		s.lead("t", 2, false)
		s.inSync("t", self, 3) // of which broker 2 is not one
		throttled := metadata.SetConfig{Entity: metadata.TopicEntity("t"), Values: map[string]string{"leader.replication.throttled.replicas": "0:1"}}
		image, delta := s.View.Image().With(throttled)
		s.Replicas.Apply(delta, image)
		s.write("t", 0, 100)
		c := &consumer{s: s, version: 17, wait: 500}
		first := only(t, ask[*kmsg.FetchResponse](s, following(c.request(nil, want{"t", 0, 0}), 0, -1)))
		if len(first.RecordBatches) < 1000 {
			t.Fatalf("%d bytes", len(first.RecordBatches))
		}
		s.write("t", 0, 1)
		owed := time.Duration(len(first.RecordBatches)) * time.Millisecond
		began := time.Now()
		q := following(c.request(nil, want{"t", 0, 100}, want{"t", 1, 0}), 0, -1)
		for n := 0; ; n++ {
			got := finished[*kmsg.FetchResponse](s, q, s.begin(q))
			waited := time.Since(began)
			if bytesOf(got, 0) > 0 {
				if waited < owed || waited > owed+time.Millisecond {
					t.Errorf("%d bytes at 1000 a second: more after %v, want %v", len(first.RecordBatches), waited, owed)
				}
				break
			}
			if waited != time.Duration(n+1)*500*time.Millisecond {
				t.Errorf("answer %d without records after %v", n, waited)
			}
		}
		q = following(c.request(nil, want{"t", 0, 101}, want{"t", 1, 0}), 0, 0)
		s.write("t", 0, 100)
		s.write("t", 1, 1)
		time.Sleep(time.Second)
		if got := ask[*kmsg.FetchResponse](s, q); bytesOf(got, 0) == 0 {
			t.Error("no records although the debt is paid")
		}
		if got := ask[*kmsg.FetchResponse](s, q); bytesOf(got, 0) != 0 || bytesOf(got, 1) == 0 {
			t.Errorf("%d bytes of what is throttled, %d of what is not", bytesOf(got, 0), bytesOf(got, 1))
		}
	})
}

// Until all that earlier leaders may have promised is committed, nobody is told where the log ends.
func TestOffsetsOfANewLeader(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, false)
	s.write("t", 0, 3)
	s.lead("t", 1, false) // epoch 1 begins at 3
	for version, code := range map[int16]protocol.Code{7: protocol.OffsetNotAvailable, 4: protocol.LeaderNotAvailable} {
		if got := s.listed(version, "t", latestOffset, -1); protocol.Code(got.ErrorCode) != code || got.Offset != -1 {
			t.Errorf("version %d: %v, offset %d, want %v", version, protocol.Code(got.ErrorCode), got.Offset, code.Name())
		}
	}
	if got := s.listed(7, "t", earliestOffset, -1); got.ErrorCode != 0 || got.Offset != 0 {
		t.Errorf("the earliest: %v, offset %d", protocol.Code(got.ErrorCode), got.Offset)
	}
	if got := s.listed(7, "t", 1001, -1); protocol.Code(got.ErrorCode) != protocol.OffsetNotAvailable {
		t.Errorf("a time: %v, offset %d", protocol.Code(got.ErrorCode), got.Offset)
	}
	c := &consumer{s: s, version: 17}
	ask[*kmsg.FetchResponse](s, following(c.request(nil, want{"t", 0, 3}), 1, 0))
	if got := s.listed(7, "t", latestOffset, -1); got.ErrorCode != 0 || got.Offset != 3 {
		t.Errorf("afterwards: %v, offset %d", protocol.Code(got.ErrorCode), got.Offset)
	}
}

// Where there is no room for another session, a follower's takes that of a consumer, and never the other way round.
func TestFollowersComeFirst(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, false)
	s.sessions.slots = 2
	first, second := &consumer{s: s, version: 17}, &consumer{s: s, version: 17}
	first.fetch(nil, want{"t", 0, 0})
	second.fetch(nil, want{"t", 0, 0})
	if first.id == 0 || second.id == 0 {
		t.Fatalf("sessions %d and %d", first.id, second.id)
	}
	follow := func() int32 {
		c := &consumer{s: s, version: 17}
		return ask[*kmsg.FetchResponse](s, following(c.request(nil, want{"t", 0, 0}), 0, -1)).SessionID
	}
	if follow() == 0 {
		t.Error("a follower got no session")
	}
	if got := first.fetch(nil); protocol.Code(got.ErrorCode) != protocol.FetchSessionIDNotFound {
		t.Errorf("the consumer that was idle longest: %v", protocol.Code(got.ErrorCode))
	}
	if got := second.fetch(nil); got.ErrorCode != 0 {
		t.Errorf("the other consumer: %v", protocol.Code(got.ErrorCode))
	}
	if follow() == 0 || follow() != 0 {
		t.Error("the second follower takes the last consumer's place, and the third finds none")
	}
}
