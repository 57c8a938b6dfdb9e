package broker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

const (
	day = 24 * time.Hour
	// held is how long a step of the wall clock must not delete anything.
	held = 10 * time.Minute
)

// steppingClock is a wall clock that can be set.
type steppingClock struct{ step atomic.Int64 }

func (c *steppingClock) now() time.Time           { return time.Now().Add(time.Duration(c.step.Load())) }
func (c *steppingClock) set(offset time.Duration) { c.step.Store(int64(offset)) }

// TestClockSteps steps the wall clock by a day: for ten minutes nothing is deleted and nothing expires that
// would not have been otherwise; neither at once, nor by a second step, nor by the way back. In an hour
// without a step all of it goes, so that the test would notice.
func TestClockSteps(t *testing.T) {
	for _, one := range []struct {
		name string
		live func(clock *steppingClock)
		gone bool
	}{
		{"forward", func(clock *steppingClock) { clock.set(day); time.Sleep(held) }, false},
		{"back", func(clock *steppingClock) { clock.set(-day); time.Sleep(held) }, false},
		{"forward and back", func(clock *steppingClock) {
			clock.set(day)
			time.Sleep(held / 2)
			clock.set(0)
			time.Sleep(held)
		}, false},
		{"forward twice", func(clock *steppingClock) {
			clock.set(day)
			time.Sleep(held / 2)
			clock.set(2 * day)
			time.Sleep(held)
		}, false},
		{"an hour without a step", func(clock *steppingClock) { time.Sleep(2 * time.Hour) }, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testClock(t, one.live, one.gone) })
		})
	}
}

func testClock(t *testing.T, live func(clock *steppingClock), gone bool) {
	clock := new(steppingClock)
	s := &site{t: t, fs: vfs.NewMemory(), network: new(pipes), now: clock.now, properties: map[string]string{
		"log.retention.check.interval.ms": "60000", "offsets.retention.check.interval.ms": "60000",
		"producer.id.expiration.check.interval.ms": "60000", "producer.id.expiration.ms": "3600000",
		"offsets.retention.minutes": "60", "offsets.topic.num.partitions": "1", "connections.max.idle.ms": "-1",
	}}
	c := s.start().dial()
	c.create("aged", 1, "retention.ms", "3600000", "message.timestamp.after.max.ms", "9223372036854775807", "segment.index.bytes", "24", "index.interval.bytes", "0")
	c.warm("group")
	sent := sentBatch{producer: c.newProducer()}
	for i := range 10 {
		sent.sequence, sent.values = int32(i), []string{fmt.Sprint(i)}
		if answer := c.produce("aged", 0, sent.bytes()); answer.ErrorCode != 0 {
			t.Fatal(protocol.Code(answer.ErrorCode))
		}
	}
	if code := c.commit("group", "aged", 0, 5); code != protocol.None {
		t.Fatal(code)
	}
	time.Sleep(30 * time.Minute) // half of the time that everything has
	live(clock)

	start, committed := c.offset("aged", 0, -2), c.committed("group", "aged", 0)
	if gone != (start > 0) {
		t.Errorf("the log starts at %d", start)
	}
	if gone != (committed == -1) {
		t.Errorf("offset %d is committed", committed)
	}
	again := c.produce("aged", 0, sent.bytes())
	if gone != (again.BaseOffset != 9) {
		t.Errorf("a repeated batch got %v at %d", protocol.Code(again.ErrorCode), again.BaseOffset)
	}
}

// TestClockStepsDuringWaits steps the wall clock while a group joins and a fetch waits (BR-054): both end in
// their time.
func TestClockStepsDuringWaits(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(steppingClock)
			s := &site{t: t, fs: vfs.NewMemory(), memory: true, network: new(pipes), now: clock.now,
				properties: map[string]string{"group.initial.rebalance.delay.ms": "3000"}}
			r := s.start()
			c, reader := r.dial(), r.dial()
			c.create("orders", 1)
			c.warm("group")
			began := time.Now()
			fetch := fetchRequest("orders", 0, 0)
			fetch.MaxWaitMillis, fetch.MinBytes = 5000, 1
			join := joinRequest("group", "")
			reader.send(fetch)
			c.send(join)
			time.Sleep(time.Second)
			clock.set(step)
			response, err := c.receive(join)
			if err != nil || response.(*kmsg.JoinGroupResponse).ErrorCode != 0 || time.Since(began) > 4*time.Second {
				t.Errorf("a join with a step of %v: %v, %+v, after %v", step, err, response, time.Since(began))
			}
			if _, err := reader.receive(fetch); err != nil || time.Since(began) > 6*time.Second {
				t.Errorf("a fetch with a step of %v: %v, after %v", step, err, time.Since(began))
			}
			member := response.(*kmsg.JoinGroupResponse)
			c.sync("group", member)
			time.Sleep(5 * time.Second) // within the session, whatever the wall clock says
			if code := c.heartbeat("group", member); code != protocol.None {
				t.Errorf("a heartbeat after a step of %v: %v", step, code)
			}
		})
	}
}

// joinRequest joins a group with one protocol.
func joinRequest(group, member string) *kmsg.JoinGroupRequest {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version, q.Group, q.MemberID, q.ProtocolType = 2, group, member, "consumer"
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 10_000, 20_000
	q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0}}}
	return q
}

// sync ends a rebalance: the leader gives everything to itself.
func (c *conn) sync(group string, joined *kmsg.JoinGroupResponse) *kmsg.SyncGroupResponse {
	c.t.Helper()
	q := kmsg.NewPtrSyncGroupRequest()
	q.Version, q.Group, q.Generation, q.MemberID = 2, group, joined.Generation, joined.MemberID
	if joined.MemberID == joined.LeaderID {
		for _, m := range joined.Members {
			q.GroupAssignment = append(q.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: []byte(m.MemberID)})
		}
	}
	return ask[*kmsg.SyncGroupResponse](c, q)
}

func (c *conn) heartbeat(group string, joined *kmsg.JoinGroupResponse) protocol.Code {
	c.t.Helper()
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version, q.Group, q.Generation, q.MemberID = 2, group, joined.Generation, joined.MemberID
	return protocol.Code(ask[*kmsg.HeartbeatResponse](c, q).ErrorCode)
}
