package api

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// fetchSeen is everything that a request says, in a form that tests can compare.
type fetchSeen struct {
	WaitMillis, MinBytes, MaxBytes int
	Isolation                      int8
	Replica                        int32
	BrokerEpoch                    int64
	Rack                           string
	Session, Epoch                 int32
	Asked                          []fetchSeenPartition
	Forgotten                      []fetchSeenPartition
}

type fetchSeenPartition struct {
	Topic            string
	ID               [16]byte
	Number           int32
	Epoch, LastEpoch int32
	Offset, Start    int64
	MaxBytes         int32
}

// seenByUs is what our decoder finds.
func seenByUs(version int16, body []byte) (fetchSeen, error) {
	q, err := decodeFetch(version, body)
	if err != nil {
		return fetchSeen{}, err
	}
	seen := fetchSeen{
		WaitMillis: int(q.maxWait.Milliseconds()), MinBytes: q.minBytes, MaxBytes: q.maxBytes, Isolation: q.isolation,
		Replica: int32(q.replica), BrokerEpoch: int64(q.brokerEpoch), Rack: string(q.rack), Session: q.session, Epoch: q.epoch,
	}
	topics := q.topics
	q.eachPartition(&topics, func(topic fetchTopic, p fetchAsked) {
		seen.Asked = append(seen.Asked, fetchSeenPartition{
			string(topic.name), topic.id, p.number, int32(p.epoch), int32(p.lastEpoch), int64(p.offset), int64(p.start), p.maxBytes,
		})
	})
	if version >= 7 {
		forgotten := q.forgotten
		q.eachForgotten(&forgotten, func(topic fetchTopic, number int32) {
			seen.Forgotten = append(seen.Forgotten, fetchSeenPartition{Topic: string(topic.name), ID: topic.id, Number: number})
		})
	}
	return seen, nil
}

// seenByKmsg is what kmsg's decoder finds.
func seenByKmsg(version int16, body []byte) (fetchSeen, error) {
	q := kmsg.NewPtrFetchRequest()
	q.SetVersion(version)
	if err := q.ReadFrom(body); err != nil {
		return fetchSeen{}, err
	}
	seen := fetchSeen{
		WaitMillis: max(int(q.MaxWaitMillis), 0), MinBytes: int(q.MinBytes), MaxBytes: int(q.MaxBytes), Isolation: q.IsolationLevel,
		Replica: q.ReplicaID, BrokerEpoch: -1, Rack: q.Rack, Session: q.SessionID, Epoch: q.SessionEpoch,
	}
	if version >= 15 {
		seen.Replica, seen.BrokerEpoch = q.ReplicaState.ID, q.ReplicaState.Epoch
	}
	for _, t := range q.Topics {
		for _, p := range t.Partitions {
			seen.Asked = append(seen.Asked, fetchSeenPartition{
				t.Topic, t.TopicID, p.Partition, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.FetchOffset, p.LogStartOffset, p.PartitionMaxBytes,
			})
		}
	}
	for _, t := range q.ForgottenTopics {
		for _, number := range t.Partitions {
			seen.Forgotten = append(seen.Forgotten, fetchSeenPartition{Topic: t.Topic, ID: t.TopicID, Number: number})
		}
	}
	return seen, nil
}

// anyFetch makes a request with something in every field that we read.
func anyFetch(rng *rand.Rand) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.MaxWaitMillis, q.MinBytes, q.MaxBytes, q.IsolationLevel = rng.Int32N(1000), rng.Int32(), rng.Int32(), int8(rng.IntN(3))
	q.SessionID, q.SessionEpoch, q.Rack = rng.Int32(), rng.Int32(), "rack-a"
	if rng.IntN(3) == 0 {
		q.ReplicaID, q.ReplicaState.ID, q.ReplicaState.Epoch = 2, 2, rng.Int64()
	}
	for range rng.IntN(4) {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = "orders", protocol.NewTopicID()
		f := kmsg.NewFetchRequestForgottenTopic()
		f.Topic, f.TopicID = "payments", protocol.NewTopicID()
		for range rng.IntN(4) {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LastFetchedEpoch = rng.Int32(), rng.Int32(), rng.Int32()
			p.FetchOffset, p.PartitionMaxBytes, p.LogStartOffset = rng.Int64(), rng.Int32(), rng.Int64()
			p.HighWatermark = rng.Int64()
			t.Partitions = append(t.Partitions, p)
			f.Partitions = append(f.Partitions, rng.Int32())
		}
		q.Topics = append(q.Topics, t)
		q.ForgottenTopics = append(q.ForgottenTopics, f)
	}
	return q
}

func TestFetchRequestIsWhatKmsgReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for version := int16(4); version <= 18; version++ {
		for range 50 {
			q := anyFetch(rng)
			q.SetVersion(version)
			body := q.AppendTo(nil)
			want, err := seenByKmsg(version, body)
			if err != nil {
				t.Fatal(err)
			}
			got, err := seenByUs(version, body)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("version %d: %v\n%s", version, err, diff)
			}
			for cut := range len(body) {
				if _, err := seenByUs(version, body[:cut]); err == nil {
					t.Fatalf("version %d: the first %d of %d bytes pass for a request", version, cut, len(body))
				}
			}
		}
	}
}

// FuzzFetchRequest holds the decoder to kmsg's judgement wherever both take a request for whole.
func FuzzFetchRequest(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for version := int16(4); version <= 18; version++ {
		q := anyFetch(rng)
		q.SetVersion(version)
		f.Add(version, q.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 4 + (version%15+15)%15
		got, err := seenByUs(version, body)
		if err != nil {
			return
		}
		want, err := seenByKmsg(version, body)
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Fatalf("version %d: %s", version, diff)
		}
	})
}
