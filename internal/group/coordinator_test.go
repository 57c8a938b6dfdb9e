package group

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
	"github.com/barnabas-mq/barnabas/internal/shard/shardtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// coordinate makes a coordinator of one partition, which is loaded.
func coordinate(t *testing.T, change func(*Config)) (*Coordinator, *shardtest.Partition) {
	t.Helper()
	c := NewCoordinator(Options{Partitions: 1, Config: func() Config {
		config := DefaultConfig()
		if change != nil {
			change(&config)
		}
		return config
	}})
	t.Cleanup(c.Close)
	p := shardtest.New(1)
	c.Lead(0, 1, p)
	if err := c.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return c, p
}

// consumer is a client in a group.
type consumer struct {
	c          *Coordinator
	name       string
	memberID   string
	generation int32
}

func (k *consumer) joinRequest(version int16) *kmsg.JoinGroupRequest {
	r := kmsg.NewJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = version, "g", k.memberID, consumerProtocol
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 60_000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription("t")}}
	return &r
}

func (k *consumer) join(ctx context.Context, version int16) *kmsg.JoinGroupResponse {
	r := k.c.JoinGroup(ctx, ClientInfo{k.name, "/127.0.0.1"}, k.joinRequest(version))
	if r.MemberID != "" {
		k.memberID = r.MemberID
	}
	k.generation = r.Generation
	return r
}

func (k *consumer) sync(ctx context.Context, assignments ...string) *kmsg.SyncGroupResponse {
	r := kmsg.NewSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 5, "g", k.memberID, k.generation
	for _, id := range assignments {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte("for " + id)})
	}
	return k.c.SyncGroup(ctx, &r)
}

func (k *consumer) heartbeat(ctx context.Context) protocol.Code {
	r := kmsg.NewHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 4, "g", k.memberID, k.generation
	return protocol.Code(k.c.Heartbeat(ctx, &r).ErrorCode)
}

func commitRequest(version int16, group string, offset int64) *kmsg.OffsetCommitRequest {
	r := kmsg.NewOffsetCommitRequest()
	r.Version, r.Group = version, group
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: 0, Offset: offset, LeaderEpoch: -1}}}}
	return &r
}

func fetchOffset(t *testing.T, c *Coordinator, group string) int64 {
	t.Helper()
	r := c.OffsetFetch(t.Context(), &kmsg.OffsetFetchRequest{Version: 2, Group: group, Topics: []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}})
	if r.ErrorCode != 0 {
		t.Fatalf("fetch: %d", r.ErrorCode)
	}
	return r.Topics[0].Partitions[0].Offset
}

func TestTwoConsumersInRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := coordinate(t, nil)
		ctx := t.Context()
		a, b := &consumer{c: c, name: "a"}, &consumer{c: c, name: "b"}
		begin := time.Now()
		done := make(chan *kmsg.JoinGroupResponse, 2)
		for _, k := range []*consumer{a, b} {
			go func() {
				if r := k.join(ctx, 9); protocol.Code(r.ErrorCode) != protocol.MemberIDRequired {
					t.Errorf("%s: %d", k.name, r.ErrorCode)
				}
				done <- k.join(ctx, 9)
			}()
		}
		for range 2 {
			if r := <-done; r.ErrorCode != 0 || r.Generation != 1 || r.Version != 9 {
				t.Errorf("%+v", r)
			}
		}
		if took := time.Since(begin); took != 6*time.Second { // the delay, extended once
			t.Errorf("the first rebalance took %s", took)
		}
		leader, follower := a, b
		if d := c.DescribeGroups(ctx, &kmsg.DescribeGroupsRequest{Version: 6, Groups: []string{"g"}}); d.Groups[0].State != "CompletingRebalance" {
			t.Errorf("%+v", d.Groups[0])
		}
		synced := make(chan string, 2)
		p.Hold(true)
		var leads string
		_ = c.runtime.Peek(ctx, 0, func(m *Machine, _ shard.Now) { leads = m.groups["g"].classic.leader })
		if leads == b.memberID {
			leader, follower = b, a
		}
		go func() { synced <- string(follower.sync(ctx).MemberAssignment) }()
		go func() { synced <- string(leader.sync(ctx, a.memberID, b.memberID).MemberAssignment) }()
		synctest.Wait()
		if len(synced) > 0 {
			t.Error("assignments were handed out before they were committed")
		}
		p.Hold(false)
		got := map[string]bool{<-synced: true, <-synced: true}
		if !got["for "+a.memberID] || !got["for "+b.memberID] {
			t.Errorf("assignments %v", got)
		}
		for range 10 {
			time.Sleep(9 * time.Second)
			if code := a.heartbeat(ctx); code != protocol.None {
				t.Fatalf("heartbeat of a: %s", code.Name())
			}
			if code := b.heartbeat(ctx); code != protocol.None {
				t.Fatalf("heartbeat of b: %s", code.Name())
			}
		}
		time.Sleep(9 * time.Second)
		a.heartbeat(ctx)
		time.Sleep(time.Second + time.Millisecond) // b's session ends
		if code := a.heartbeat(ctx); code != protocol.RebalanceInProgress {
			t.Errorf("after b's death a's heartbeat says %s", code.Name())
		}
		if r := a.join(ctx, 9); r.Generation != 2 || len(r.Members) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestDisconnectedJoinersLeaveNoMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := coordinate(t, nil)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			k := &consumer{c: c, name: "k"}
			if r := k.join(ctx, 3); protocol.Code(r.ErrorCode) != protocol.CoordinatorNotAvailable {
				t.Errorf("%+v", r)
			}
			cancel()
		}
		members := -1
		_ = c.runtime.Peek(t.Context(), 0, func(m *Machine, _ shard.Now) {
			members = 0
			if g := m.groups["g"]; g != nil {
				members = len(g.classic.members)
			}
		})
		if members != 0 {
			t.Errorf("%d members are left", members)
		}
	})
}

func TestResigningAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := coordinate(t, nil)
		c.OffsetCommit(t.Context(), commitRequest(8, "other", 1))
		a := &consumer{c: c, name: "a"}
		done := make(chan *kmsg.JoinGroupResponse)
		go func() { done <- a.join(t.Context(), 3) }()
		synctest.Wait()
		c.Resign(0)
		if r := <-done; protocol.Code(r.ErrorCode) != protocol.NotCoordinator {
			t.Errorf("%+v", r)
		}
		if code := a.heartbeat(t.Context()); code != protocol.NotCoordinator {
			t.Errorf("heartbeat: %s", code.Name())
		}
		p.SetEpoch(2, false)
		p.FailReads(errors.New("slow disk"))
		c.Lead(0, 2, p)
		synctest.Wait()
		if code := a.heartbeat(t.Context()); code != protocol.None {
			t.Errorf("while loading heartbeats are good: %s", code.Name())
		}
		loading := int16(protocol.CoordinatorLoadInProgress)
		if r := a.join(t.Context(), 3); r.ErrorCode != loading {
			t.Errorf("join while loading: %+v", r)
		}
		if r := c.OffsetCommit(t.Context(), commitRequest(8, "g", 1)); r.Topics[0].Partitions[0].ErrorCode != loading {
			t.Errorf("commit while loading: %+v", r)
		}
		if r := c.ListGroups(t.Context(), &kmsg.ListGroupsRequest{Version: 5}); r.ErrorCode != loading {
			t.Errorf("list while loading: %+v", r)
		}
		if r := c.DescribeGroups(t.Context(), &kmsg.DescribeGroupsRequest{Version: 5, Groups: []string{"g"}}); r.Groups[0].ErrorCode != loading {
			t.Errorf("describe while loading: %+v", r)
		}
		if r := c.DeleteGroups(t.Context(), &kmsg.DeleteGroupsRequest{Version: 3, Groups: []string{"g", "g"}}); len(r.Groups) != 1 || r.Groups[0].ErrorCode != loading || r.Groups[0].ErrorMessage == nil {
			t.Errorf("delete while loading: %+v", r)
		}
		p.FailReads(nil)
		if err := c.Await(t.Context(), 0); err != nil {
			t.Error(err)
		}
	})
}

// Where the error of a group stands in OffsetFetch depends on the version.
func TestOffsetFetchErrorsByVersion(t *testing.T) {
	c := NewCoordinator(Options{Partitions: 1})
	t.Cleanup(c.Close)
	want := int16(protocol.NotCoordinator)
	for version := int16(1); version <= 10; version++ {
		r := kmsg.NewOffsetFetchRequest()
		r.Version, r.Group = version, "g"
		r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group = "g"
		group.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{0, 1}}}
		r.Groups = []kmsg.OffsetFetchRequestGroup{group, group}
		response := c.OffsetFetch(t.Context(), &r)
		switch {
		case version >= 8:
			if len(response.Groups) != 2 || response.Groups[0].ErrorCode != want || len(response.Groups[0].Topics) != 0 {
				t.Errorf("version %d: %+v", version, response)
			}
		case version >= 2:
			if response.ErrorCode != want || len(response.Topics) != 0 {
				t.Errorf("version %d: %+v", version, response)
			}
		default:
			p := response.Topics[0].Partitions
			if len(p) != 2 || p[1].ErrorCode != want || p[1].Offset != -1 || *p[1].Metadata != "" {
				t.Errorf("version %d: %+v", version, response)
			}
		}
	}
}

func TestNullAndEmptyListsOfTopics(t *testing.T) {
	c, _ := coordinate(t, nil)
	c.OffsetCommit(t.Context(), commitRequest(8, "g", 5))
	for version := int16(2); version <= 9; version++ {
		for _, list := range []struct {
			topics []kmsg.OffsetFetchRequestTopic
			groups []kmsg.OffsetFetchRequestGroupTopic
			want   int
		}{
			{nil, nil, 1},
			{[]kmsg.OffsetFetchRequestTopic{}, []kmsg.OffsetFetchRequestGroupTopic{}, 0},
		} {
			r := kmsg.NewOffsetFetchRequest()
			r.Version, r.Group, r.Topics = version, "g", list.topics
			group := kmsg.NewOffsetFetchRequestGroup()
			group.Group, group.Topics = "g", list.groups
			r.Groups = []kmsg.OffsetFetchRequestGroup{group}
			// As it comes over the wire.
			over := kmsg.NewOffsetFetchRequest()
			over.Version = version
			if err := over.ReadFrom(r.AppendTo(nil)); err != nil {
				t.Fatal(err)
			}
			response := c.OffsetFetch(t.Context(), &over)
			got := len(response.Topics)
			if version >= 8 {
				got = len(response.Groups[0].Topics)
			}
			if got != list.want {
				t.Errorf("version %d, list %v: %d topics, want %d", version, list.topics, got, list.want)
			}
		}
	}
}

func TestRefusedWhateverTheGroup(t *testing.T) {
	c, _ := coordinate(t, nil)
	ctx := t.Context()
	join := func(change func(*kmsg.JoinGroupRequest)) protocol.Code {
		r := (&consumer{c: c}).joinRequest(9)
		change(r)
		return protocol.Code(c.JoinGroup(ctx, ClientInfo{}, r).ErrorCode)
	}
	long := string(make([]byte, 1<<15))
	for name, got := range map[string]protocol.Code{
		"INVALID_GROUP_ID join":           join(func(r *kmsg.JoinGroupRequest) { r.Group = "" }),
		"INVALID_GROUP_ID long":           join(func(r *kmsg.JoinGroupRequest) { r.Group = long }),
		"INVALID_SESSION_TIMEOUT short":   join(func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 5999 }),
		"INVALID_SESSION_TIMEOUT long":    join(func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1800001 }),
		"INVALID_REQUEST instance":        join(func(r *kmsg.JoinGroupRequest) { r.InstanceID = &long }),
		"INVALID_REQUEST type":            join(func(r *kmsg.JoinGroupRequest) { r.ProtocolType = long }),
		"INVALID_REQUEST protocol":        join(func(r *kmsg.JoinGroupRequest) { r.Protocols[0].Name = long }),
		"INVALID_GROUP_ID sync":           protocol.Code(c.SyncGroup(ctx, &kmsg.SyncGroupRequest{}).ErrorCode),
		"INVALID_GROUP_ID heartbeat":      protocol.Code(c.Heartbeat(ctx, &kmsg.HeartbeatRequest{}).ErrorCode),
		"INVALID_GROUP_ID leave":          protocol.Code(c.LeaveGroup(ctx, &kmsg.LeaveGroupRequest{}).ErrorCode),
		"INVALID_GROUP_ID delete offsets": protocol.Code(c.OffsetDelete(ctx, &kmsg.OffsetDeleteRequest{}).ErrorCode),
		"INVALID_GROUP_ID commit":         protocol.Code(c.OffsetCommit(ctx, commitRequest(8, long, 1)).Topics[0].Partitions[0].ErrorCode),
		"GROUP_ID_NOT_FOUND delete":       protocol.Code(c.OffsetDelete(ctx, &kmsg.OffsetDeleteRequest{Group: "none"}).ErrorCode),
	} {
		var want string
		_, _ = fmt.Sscan(name, &want)
		if got.Name() != want {
			t.Errorf("%s: got %s", name, got.Name())
		}
	}
	// The empty group id is one, for offsets.
	c.OffsetCommit(ctx, commitRequest(8, "", 7))
	if n := fetchOffset(t, c, ""); n != 7 {
		t.Errorf("offset of the group without a name: %d", n)
	}
}

func TestLeaveGroupByVersion(t *testing.T) {
	c, _ := coordinate(t, func(config *Config) { config.InitialRebalanceDelay = 0 })
	a := &consumer{c: c, name: "a"}
	if r := a.join(t.Context(), 3); r.ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	old := c.LeaveGroup(t.Context(), &kmsg.LeaveGroupRequest{Version: 2, Group: "g", MemberID: "nobody"})
	if protocol.Code(old.ErrorCode) != protocol.UnknownMemberID || old.Members != nil {
		t.Errorf("version 2: %+v", old)
	}
	members := []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}, {MemberID: a.memberID}}
	r := c.LeaveGroup(t.Context(), &kmsg.LeaveGroupRequest{Version: 5, Group: "g", Members: members})
	if r.ErrorCode != 0 || protocol.Code(r.Members[0].ErrorCode) != protocol.UnknownMemberID || r.Members[1].ErrorCode != 0 {
		t.Errorf("version 5: %+v", r)
	}
}

// Requests of one connection begin in order, and only then wait: the later commit counts.
func TestPipelinedCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := coordinate(t, nil)
		p.Hold(true)
		var waits []func(context.Context) *kmsg.OffsetCommitResponse
		for i := range int64(10) {
			waits = append(waits, c.BeginOffsetCommit(t.Context(), commitRequest(8, "g", i)))
		}
		p.Hold(false)
		for i := range waits {
			if r := waits[len(waits)-1-i](t.Context()); r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("%+v", r)
			}
		}
		if n := fetchOffset(t, c, "g"); n != 9 {
			t.Errorf("offset %d, want the last one, 9", n)
		}
	})
}

func TestCommitWhoseWaitTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := coordinate(t, nil)
		p.Hold(true)
		if r := c.OffsetCommit(t.Context(), commitRequest(8, "g", 1)); protocol.Code(r.Topics[0].Partitions[0].ErrorCode) != protocol.CoordinatorNotAvailable {
			t.Errorf("%+v", r)
		}
		p.Hold(false)
		if n := fetchOffset(t, c, "g"); n != 1 {
			t.Errorf("offset %d: it is in the log", n)
		}
	})
}

func TestForgetTopicsWaitsForTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := coordinate(t, nil)
		c.OffsetCommit(t.Context(), commitRequest(8, "g", 1))
		p.SetEpoch(2, false)
		p.FailReads(errors.New("slow disk"))
		c.Lead(0, 2, p)
		done := make(chan error)
		go func() {
			done <- c.ForgetTopics(t.Context(), func(topic string, _ protocol.TopicID) bool { return topic == "t" })
		}()
		time.Sleep(time.Second)
		p.FailReads(nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := fetchOffset(t, c, "g"); n != -1 {
			t.Errorf("offset %d of a deleted topic", n)
		}
	})
}

func TestTransactionsThroughTheCoordinator(t *testing.T) {
	c, p := coordinate(t, nil)
	r := kmsg.NewTxnOffsetCommitRequest()
	r.Version, r.Group, r.ProducerID, r.ProducerEpoch = 3, "g", 7, 2
	r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 5, LeaderEpoch: -1}}}}
	if response := c.TxnOffsetCommit(t.Context(), &r); response.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", response)
	}
	if n := fetchOffset(t, c, "g"); n != -1 {
		t.Errorf("offset %d of an open transaction", n)
	}
	if err := c.EndTransaction(t.Context(), 0, shard.Marker{Producer: shard.Producer{ID: 7, Epoch: 3}, Commit: true}); err != nil {
		t.Fatal(err)
	}
	if n := fetchOffset(t, c, "g"); n != 5 {
		t.Errorf("offset %d of a committed transaction", n)
	}
	if b := p.Batches()[0]; !b.Transactional() || b.ProducerID() != 7 || b.ProducerEpoch() != 2 {
		t.Errorf("batch of producer %d epoch %d", b.ProducerID(), b.ProducerEpoch())
	}
	r.Group = ""
	if response := c.TxnOffsetCommit(t.Context(), &r); protocol.Code(response.Topics[0].Partitions[0].ErrorCode) != protocol.InvalidGroupID {
		t.Errorf("%+v", response)
	}
}

func TestProgress(t *testing.T) {
	c, _ := coordinate(t, nil)
	begin := time.Now().UnixMilli()
	for i, group := range []string{"b", "a", "c"} {
		c.OffsetCommit(t.Context(), commitRequest(8, group, int64(i)))
	}
	var seen []string
	for p := range c.Progress(t.Context()) {
		seen = append(seen, fmt.Sprint(p.Group, p.State, p.Kind, p.Members, p.Offsets[0].Topic, p.Offsets[0].Offset))
		if at := p.Offsets[0].CommitTime; at < begin || at > begin+60_000 {
			t.Errorf("commit time %d", at)
		}
		if len(seen) == 2 {
			break
		}
	}
	if fmt.Sprint(seen) != "[aEmptyclassic0t1 bEmptyclassic0t0]" {
		t.Errorf("%v", seen)
	}
}

// A coordinator of fifty partitions with nothing to do costs nothing.
func TestIdleCoordinatorHasNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCoordinator(Options{Partitions: 50})
		t.Cleanup(c.Close)
		before := goleak.IgnoreCurrent()
		for partition := range int32(50) {
			c.Lead(partition, 1, shardtest.New(1))
		}
		synctest.Wait() // the loading goroutines have ended, or block for ever
		for partition := range int32(50) {
			if err := c.Await(t.Context(), partition); err != nil {
				t.Fatal(err)
			}
		}
		leaktest.Verify(t, before)
	})
}

func BenchmarkOffsetCommit(b *testing.B) {
	c := NewCoordinator(Options{Partitions: 1})
	b.Cleanup(c.Close)
	c.Lead(0, 1, shardtest.New(1))
	if err := c.Await(b.Context(), 0); err != nil {
		b.Fatal(err)
	}
	r := commitRequest(8, "g", 1)
	b.ReportAllocs()
	for b.Loop() {
		c.OffsetCommit(b.Context(), r)
	}
}
