package api

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// consumer fetches as a client with a session does (KIP-227).
type consumer struct {
	s           *stage
	version     int16
	id, epoch   int32
	wait, bytes int32
}

// want is a partition that a request names, with the offset to read from.
type want struct {
	topic  string
	number int32
	offset int64
}

func (c *consumer) request(forget []want, wants ...want) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version, q.SessionID, q.SessionEpoch, q.MaxWaitMillis, q.MinBytes, q.MaxBytes = c.version, c.id, c.epoch, c.wait, 1, 1<<20
	if c.bytes > 0 {
		q.MaxBytes = c.bytes
	}
	for _, w := range wants {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = w.number, w.offset, 1<<20
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID, t.Partitions = w.topic, c.s.ids[w.topic], []kmsg.FetchRequestTopicPartition{p}
		q.Topics = append(q.Topics, t)
	}
	for _, w := range forget {
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID, t.Partitions = w.topic, c.s.ids[w.topic], []int32{w.number}
		q.ForgottenTopics = append(q.ForgottenTopics, t)
	}
	return q
}

// fetch sends the next request of the session.
func (c *consumer) fetch(forget []want, wants ...want) *kmsg.FetchResponse {
	c.s.t.Helper()
	response := ask[*kmsg.FetchResponse](c.s, c.request(forget, wants...))
	if response.ErrorCode == 0 {
		c.id = response.SessionID
		c.epoch = nextEpoch(c.epoch)
	}
	return response
}

// told is what an answer says, by partition: bytes of records, or an error's name.
func (c *consumer) told(response *kmsg.FetchResponse) map[string]string {
	names := map[protocol.TopicID]string{}
	for name, id := range c.s.ids {
		names[id] = name
	}
	out := map[string]string{}
	for _, t := range response.Topics {
		if c.version >= 13 {
			t.Topic = names[t.TopicID]
		}
		for _, p := range t.Partitions {
			key := fmt.Sprintf("%s-%d", t.Topic, p.Partition)
			out[key] = fmt.Sprintf("%d", p.HighWatermark)
			if p.ErrorCode != 0 {
				out[key] = protocol.Code(p.ErrorCode).Name()
			} else if len(p.RecordBatches) > 0 {
				out[key] += " records"
			}
		}
	}
	return out
}

func (c *consumer) expect(what string, response *kmsg.FetchResponse, pairs ...string) {
	c.s.t.Helper()
	wanted := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		wanted[pairs[i]] = pairs[i+1]
	}
	if got := c.told(response); !maps.Equal(got, wanted) {
		c.s.t.Errorf("%s: %s", what, cmp.Diff(wanted, got))
	}
}

// eachNaming runs a test with a version that names topics, and with one that has their ids.
func eachNaming(t *testing.T, test func(t *testing.T, s *stage, c *consumer)) {
	for _, version := range []int16{7, 12, 13, 18} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			s := newStage(t)
			s.lead("a", 3, true)
			s.lead("b", 1, true)
			test(t, s, &consumer{s: s, version: version})
		})
	}
}

// Kafka's rules of KIP-227: the first answer has every partition, the others what is new.
func TestIncrementalFetch(t *testing.T) {
	eachNaming(t, func(t *testing.T, s *stage, c *consumer) {
		s.write("a", 0, 2)
		first := c.fetch(nil, want{"a", 0, 0}, want{"a", 1, 0}, want{"b", 0, 0})
		if c.id == 0 || first.ErrorCode != 0 {
			t.Fatalf("session %d, %v", c.id, protocol.Code(first.ErrorCode))
		}
		c.expect("a full fetch", first, "a-0", "2 records", "a-1", "0", "b-0", "0")
		c.expect("records are sent until the client moves on", c.fetch(nil), "a-0", "2 records")
		c.expect("nothing is new", c.fetch(nil, want{"a", 0, 2}))
		s.write("b", 0, 1)
		c.expect("one partition has more", c.fetch(nil), "b-0", "1 records")
		c.expect("the client has it", c.fetch(nil, want{"b", 0, 1}))
		c.expect("a partition is added", c.fetch(nil, want{"a", 2, 0}), "a-2", "0")
		s.write("a", 1, 1)
		s.write("a", 2, 1)
		c.expect("one is forgotten", c.fetch([]want{{"a", 1, 0}}), "a-2", "1 records")
		c.expect("and comes back", c.fetch(nil, want{"a", 2, 1}, want{"a", 1, 0}), "a-1", "1 records")
	})
}

// While one partition has more than every answer takes no request waits, and still the others have their turn.
func TestNoPartitionStarves(t *testing.T) {
	s := newStage(t)
	s.lead("a", 1, true)
	s.lead("b", 1, true)
	c := &consumer{s: s, version: 12, bytes: 1}
	for range 20 {
		s.write("a", 0, 1)
	}
	c.expect("a full fetch", c.fetch(nil, want{"a", 0, 0}, want{"b", 0, 0}), "a-0", "20 records", "b-0", "0")
	c.expect("more of the one", c.fetch(nil, want{"a", 0, 1}), "a-0", "20 records")
	s.write("b", 0, 1)
	seen := false
	for offset := int64(2); offset < 6 && !seen; offset++ {
		_, seen = c.told(c.fetch(nil, want{"a", 0, offset}))["b-0"]
	}
	if !seen {
		t.Error("the other partition has a record that no answer tells of")
	}
}

func TestSessionErrors(t *testing.T) {
	eachNaming(t, func(t *testing.T, s *stage, c *consumer) {
		c.fetch(nil, want{"a", 0, 0})
		good := *c
		refused := func(what string, code protocol.Code, change func(*consumer)) {
			t.Helper()
			bad := good
			change(&bad)
			if got := bad.fetch(nil); protocol.Code(got.ErrorCode) != code || got.SessionID != 0 || len(got.Topics) > 0 {
				t.Errorf("%s: %v, session %d; want %v", what, protocol.Code(got.ErrorCode), got.SessionID, code)
			}
		}
		refused("an unknown session", protocol.FetchSessionIDNotFound, func(c *consumer) { c.id++ })
		refused("an epoch that was", protocol.InvalidFetchSessionEpoch, func(c *consumer) { c.epoch = 7 })
		refused("another naming", protocol.FetchSessionTopicIDError, func(c *consumer) { c.version = 25 - c.version })
		refused("both", protocol.InvalidFetchSessionEpoch, func(c *consumer) { c.version, c.epoch = 25-c.version, 7 })
		c.expect("the session goes on", c.fetch(nil))
	})
}

func TestSessionEnds(t *testing.T) {
	s := newStage(t)
	s.lead("a", 2, true)
	c := &consumer{s: s, version: 12}
	count := func(what string, sessions int) {
		t.Helper()
		if got := len(s.sessions.byID); got != sessions {
			t.Errorf("%s: %d sessions, want %d", what, got, sessions)
		}
	}
	c.fetch(nil, want{"a", 0, 0})
	count("begun", 1)
	c.epoch = sessionEpochInitial
	old := c.id
	c.fetch(nil, want{"a", 0, 0})
	count("another in its place", 1)
	if c.id == old {
		t.Error("the new session has the id of the old one")
	}
	if got := c.fetch([]want{{"a", 0, 0}}); got.SessionID != 0 {
		t.Errorf("a session without partitions goes on as %d", got.SessionID)
	}
	count("nothing left in it", 0)
	c.id, c.epoch = 0, sessionEpochInitial
	c.fetch(nil, want{"a", 0, 0})
	c.epoch = sessionEpochFinal
	if got := c.fetch(nil); got.SessionID != 0 {
		t.Errorf("the last fetch of a session answers with session %d", got.SessionID)
	}
	count("ended", 0)
	none := &consumer{s: s, version: 12, epoch: sessionEpochFinal}
	if got := none.fetch(nil, want{"a", 0, 0}); got.SessionID != 0 {
		t.Error("a session for a client that wants none")
	}
	count("none wanted", 0)
}

// The cache is full: who comes later gets none, until somebody was away for long enough.
func TestSessionCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "max.incremental.fetch.session.cache.slots=1")
		s.lead("a", 1, true)
		first, second := &consumer{s: s, version: 12}, &consumer{s: s, version: 12}
		first.fetch(nil, want{"a", 0, 0})
		second.expect("without a session", second.fetch(nil, want{"a", 0, 0}), "a-0", "0")
		if second.id != 0 {
			t.Fatal("a session more than there is room for")
		}
		time.Sleep(sessionIdle)
		second.epoch = sessionEpochInitial
		second.fetch(nil, want{"a", 0, 0})
		if second.id == 0 {
			t.Fatal("no session although the other one is idle")
		}
		if got := first.fetch(nil); protocol.Code(got.ErrorCode) != protocol.FetchSessionIDNotFound {
			t.Errorf("the evicted one: %v", protocol.Code(got.ErrorCode))
		}
	})
}

func TestLongPoll(t *testing.T) {
	for _, end := range []struct {
		name string
		by   func(s *stage)
		told []string
		took time.Duration
	}{
		{"a record", func(s *stage) { s.write("b", 0, 1) }, []string{"b-0", "1 records"}, 0},
		{"a leader that is none any more", func(s *stage) { s.remove("b") }, []string{"b-0", "UNKNOWN_TOPIC_OR_PARTITION"}, 0},
		{"the time", func(*stage) {}, nil, time.Minute},
		{"the end of the connection, or of the broker", func(s *stage) { s.asleep.Load().Post(server.Ended) }, nil, 0},
	} {
		t.Run(end.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.lead("a", 1, true)
				s.lead("b", 1, true)
				c := &consumer{s: s, version: 12}
				c.fetch(nil, want{"a", 0, 0}, want{"b", 0, 0})
				c.wait = int32(time.Minute.Milliseconds())
				q := c.request(nil)
				reply := s.begin(q)
				if reply.Phase == nil {
					t.Fatal("the request does not wait")
				}
				began := time.Now()
				answer := make(chan *kmsg.FetchResponse, 1)
				go func() { answer <- finished[*kmsg.FetchResponse](s, q, reply) }()
				synctest.Wait()
				end.by(s)
				c.expect("the answer", <-answer, end.told...)
				if took := time.Since(began); took != end.took {
					t.Errorf("answered after %v, want %v", took, end.took)
				}
			})
		})
	}
}

// A client that lost its connection begins anew while its old request still waits: that session ends with it.
func TestSessionThatEndsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("a", 1, true)
		c := &consumer{s: s, version: 12}
		c.fetch(nil, want{"a", 0, 0})
		c.wait = int32(time.Hour.Milliseconds())
		reply := s.begin(c.request(nil))
		answer := s.sleep(reply)
		waiting := s.asleep.Load()
		if got := c.fetch(nil); protocol.Code(got.ErrorCode) != protocol.InvalidFetchSessionEpoch {
			t.Errorf("the same epoch while the first still waits: %v", protocol.Code(got.ErrorCode))
		}
		next := &consumer{s: s, version: 12, id: c.id}
		next.fetch(nil, want{"a", 0, 0})
		if n := len(s.sessions.byID); n != 1 {
			t.Errorf("%d sessions, want the new one only", n)
		}
		waiting.Post(server.Ended)
		(<-answer).Release()
		next.expect("the new one goes on", next.fetch(nil))
	})
}

// A topic of the same name that was made again is another one: by name the session finds it, by id it does
// not.
func TestSessionOfADeletedTopic(t *testing.T) {
	eachNaming(t, func(t *testing.T, s *stage, c *consumer) {
		s.write("b", 0, 1)
		c.fetch(nil, want{"a", 0, 0}, want{"b", 0, 0})
		s.remove("b")
		c.expect("deleted", c.fetch(nil), "b-0", "UNKNOWN_TOPIC_OR_PARTITION")
		c.expect("and still", c.fetch(nil), "b-0", "UNKNOWN_TOPIC_OR_PARTITION")
		c.expect("forgotten", c.fetch([]want{{"b", 0, 0}}))
	})
}

// A bug in the middle of a look leaves neither a locked session nor a pinned file behind.
func TestPanicInAFetch(t *testing.T) {
	s := newStage(t)
	s.lead("a", 1, true)
	c := &consumer{s: s, version: 12}
	c.fetch(nil, want{"a", 0, 0})
	element := s.sessions.byID[c.id]
	broken := element.Value.(*session)
	broken.queue = []int{99} // there is no such place
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		s.begin(c.request(nil))
	}()
	if n := len(s.sessions.byID); n != 0 || !broken.busy.TryLock() {
		t.Errorf("%d sessions are left, or the lock of the broken one", n)
	}
}

// Consumers forget a partition while they work on its records, and add it back: that must not grow anything.
func TestForgettingAndAddingKeepsTheSize(t *testing.T) {
	s := newStage(t)
	s.lead("a", 2, true)
	s.write("a", 0, 1)
	c := &consumer{s: s, version: 12}
	c.fetch(nil, want{"a", 0, 0}, want{"a", 1, 0})
	kept := s.sessions.byID[c.id].Value.(*session)
	for range 50 {
		c.fetch([]want{{"a", 0, 0}})
		c.expect("added back", c.fetch(nil, want{"a", 0, 0}), "a-0", "1 records")
	}
	if len(kept.parts) > 2 || len(kept.queue) > 2 {
		t.Errorf("%d places and %d in the queue for two partitions", len(kept.parts), len(kept.queue))
	}
}

// Nobody can have more than max_bytes: a min_bytes above it is not waited for.
func TestMinBytesAboveMaxBytes(t *testing.T) {
	s := newStage(t)
	s.lead("a", 1, true)
	s.write("a", 0, 1)
	c := &consumer{s: s, version: 12, bytes: 10, wait: 60_000}
	q := c.request(nil, want{"a", 0, 0})
	q.MinBytes = 1 << 30
	if reply := s.begin(q); reply.Phase != nil {
		t.Error("the request waits for what it may not have")
	} else {
		reply.Response.Release()
	}
}
