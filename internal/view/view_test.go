package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stage is a view of broker 1, and what it handed on.
type stage struct {
	*View
	heard []string
	fail  map[P.TopicPartition]error
}

func newStage(t *testing.T) *stage {
	s := &stage{fail: map[P.TopicPartition]error{}}
	s.View = New(Options{Self: 1, ClusterID: "c", Apply: s.apply})
	t.Cleanup(s.Close)
	return s
}

// apply notes a change in one line a replica, entity or broker.
func (s *stage) apply(d metadata.Delta, image *metadata.Image) map[P.TopicPartition]error {
	for _, b := range d.Brokers {
		s.heard = append(s.heard, fmt.Sprintf("broker %d alive %v", b, image.Alive(b)))
	}
	for _, e := range d.Configs {
		s.heard = append(s.heard, fmt.Sprint(e, image.Config(e)))
	}
	for _, p := range d.Partitions {
		s.heard = append(s.heard, fmt.Sprintf("%s shown %v", p, p.New != nil))
	}
	for _, r := range d.Replicas {
		line := fmt.Sprint(r.Role, " ", r)
		if r.State != nil {
			line += fmt.Sprintf(" leader %d epoch %d new %v config %v", r.State.Leader, r.State.LeaderEpoch, r.New, image.TopicConfig(r.Topic))
		}
		s.heard = append(s.heard, line)
	}
	return s.fail
}

func (s *stage) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(s.heard, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("heard:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	s.heard = nil
}

// leads makes a LeaderAndIsr 7 about t-0 on brokers 1 and 2.
func leads(leader, epoch int32) *kmsg.LeaderAndISRRequest {
	q := kmsg.NewPtrLeaderAndISRRequest()
	q.Version, q.ControllerID, q.ControllerEpoch = 7, 1, 1
	q.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: [16]byte{7}, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
		{Leader: leader, LeaderEpoch: epoch, ISR: []int32{1, 2}, Replicas: []int32{1, 2}, IsNew: epoch == 0},
	}}}
	return q
}

func code(r *kmsg.LeaderAndISRResponse) P.Code {
	if r.ErrorCode != 0 {
		return P.Code(r.ErrorCode)
	}
	return P.Code(r.Topics[0].Partitions[0].ErrorCode)
}

func stops(epoch int32, erase bool) *peer.StopReplica {
	q := peer.NewStopReplica(4)
	q.ControllerEpoch = 1
	q.Topics = []kmsg.StopReplicaRequestTopic{{Topic: "t", PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{{LeaderEpoch: epoch, Delete: erase}}}}
	return q
}

func shows(leader int32, brokers ...int32) *kmsg.UpdateMetadataRequest {
	q := kmsg.NewPtrUpdateMetadataRequest()
	q.Version, q.ControllerID, q.ControllerEpoch = 8, 1, 1
	for _, id := range brokers {
		q.LiveBrokers = append(q.LiveBrokers, kmsg.UpdateMetadataRequestLiveBroker{ID: id, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{{Host: "h", Port: id, ListenerName: "L"}}})
	}
	q.TopicStates = []kmsg.UpdateMetadataRequestTopicState{{Topic: "t", TopicID: [16]byte{7}, PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{
		{Leader: leader, ISR: []int32{1, 2}, Replicas: []int32{1, 2}},
	}}}
	return q
}

func TestOrdersToReplicas(t *testing.T) {
	s := newStage(t)
	for _, step := range []struct {
		leader, epoch int32
		want          P.Code
	}{{1, 0, P.None}, {1, 0, P.StaleControllerEpoch}, {2, 1, P.None}, {1, 0, P.StaleControllerEpoch}, {-1, 2, P.None}} {
		if got := code(s.LeaderAndISR(leads(step.leader, step.epoch))); got != step.want {
			t.Errorf("leader %d epoch %d: %s", step.leader, step.epoch, got.Name())
		}
	}
	s.expect(t, "lead t-0 leader 1 epoch 0 new true config map[]", "follow t-0 leader 2 epoch 1 new false config map[]",
		"follow t-0 leader -1 epoch 2 new false config map[]")
	other := leads(1, 9)
	other.TopicStates[0].TopicID = [16]byte{8}
	if got := code(s.LeaderAndISR(other)); got != P.InconsistentTopicID {
		t.Error(got.Name())
	}
	elsewhere := leads(2, 9)
	elsewhere.TopicStates[0].PartitionStates[0].Replicas = []int32{2, 3}
	if got := code(s.LeaderAndISR(elsewhere)); got != P.UnknownTopicOrPartition {
		t.Error(got.Name())
	}
	path := leads(1, 0)
	path.TopicStates[0].Topic = "../x"
	if got := code(s.LeaderAndISR(path)); got != P.InvalidRequest {
		t.Error(got.Name())
	}
	s.expect(t)
	if s.Image().Topic("t") != nil {
		t.Error("an order to a replica is shown to clients")
	}
}

func TestFailedOrderMayBeRepeated(t *testing.T) {
	s := newStage(t)
	tp := P.TopicPartition{Topic: "t"}
	s.fail[tp] = P.Errorf(P.KafkaStorageError, "the disk is broken")
	if got := code(s.LeaderAndISR(leads(1, 0))); got != P.KafkaStorageError {
		t.Error(got.Name())
	}
	delete(s.fail, tp)
	if got := code(s.LeaderAndISR(leads(1, 0))); got != P.None {
		t.Error(got.Name())
	}
	s.fail[tp] = errors.New("anything")
	if r := s.StopReplica(stops(-2, true)); P.Code(r.Partitions[0].ErrorCode) != P.UnknownServerError {
		t.Error(r.Partitions)
	}
}

func TestEpochsFence(t *testing.T) {
	s := newStage(t)
	s.SetBrokerEpoch(50)
	old, now, later := leads(1, 0), leads(1, 0), leads(1, 1)
	old.BrokerEpoch, now.BrokerEpoch, later.BrokerEpoch = 49, 50, 60
	now.ControllerEpoch, later.ControllerEpoch = 5, 5
	for i, q := range []*kmsg.LeaderAndISRRequest{old, now, later} {
		if got, want := code(s.LeaderAndISR(q)), []P.Code{P.StaleBrokerEpoch, P.None, P.None}[i]; got != want {
			t.Errorf("%d: %s", i, got.Name())
		}
	}
	deposed := shows(1, 1)
	deposed.ControllerEpoch = 4
	if r := s.UpdateMetadata(deposed); P.Code(r.ErrorCode) != P.StaleControllerEpoch {
		t.Error(P.Code(r.ErrorCode).Name())
	}
	if r := s.StopReplica(stops(9, true)); P.Code(r.ErrorCode) != P.StaleControllerEpoch {
		t.Error(P.Code(r.ErrorCode).Name())
	}
	select {
	case <-s.Ready():
		t.Error("a refused request made the view ready")
	default:
	}
}

func TestStopReplica(t *testing.T) {
	s := newStage(t)
	s.LeaderAndISR(leads(1, 5))
	s.heard = nil
	for _, step := range []struct {
		epoch int32
		erase bool
		want  P.Code
	}{{4, true, P.FencedLeaderEpoch}, {5, false, P.None}, {-1, false, P.None}, {-2, false, P.None}, {-2, true, P.None}, {-2, true, P.None}, {-2, false, P.None}} {
		r := s.StopReplica(stops(step.epoch, step.erase))
		if got := P.Code(r.Partitions[0].ErrorCode); got != step.want {
			t.Errorf("epoch %d delete %v: %s", step.epoch, step.erase, got.Name())
		}
	}
	s.expect(t, "stop t-0", "stop t-0", "stop t-0", "delete t-0", "delete t-0")
	if got := code(s.LeaderAndISR(leads(1, 0))); got != P.None {
		t.Error("a deleted partition cannot be made again:", got.Name())
	}
}

func TestUpdateMetadataReplacesBrokersAndMergesTopics(t *testing.T) {
	s := newStage(t)
	s.SetBrokerEpoch(9)
	s.UpdateMetadata(shows(1, 1, 2))
	<-s.Ready()
	image := s.Image()
	if image.ClusterID != "c" || image.Broker(1).Epoch != 9 || image.Broker(2).Epoch != P.NoBrokerEpoch || image.Controller != 1 {
		t.Errorf("%+v", image)
	}
	s.expect(t, "broker 1 alive true", "broker 2 alive true", "t-0 shown true")
	none := shows(1, 1)
	none.TopicStates = nil
	s.UpdateMetadata(none)
	s.expect(t, "broker 2 alive false")
	s.UpdateMetadata(none)
	s.expect(t)
	stale := shows(leaderDuringDelete, 1)
	stale.TopicStates[0].TopicID = [16]byte{6}
	s.UpdateMetadata(stale)
	s.expect(t)
	s.UpdateMetadata(shows(leaderDuringDelete, 1))
	s.expect(t, "t-0 shown false")
	if s.Image().Topic("t") != nil {
		t.Error("a deleted topic is shown")
	}
	s.UpdateMetadata(shows(1, 1))
	s.heard = nil
	full := shows(1, 1)
	full.TopicStates[0].Topic, full.TopicStates[0].TopicID = "u", [16]byte{9}
	full.UnknownTags.Set(peer.FullMetadataTag, nil)
	s.UpdateMetadata(full)
	s.expect(t, "t-0 shown false", "u-0 shown true")
	bad := shows(1, 1)
	bad.TopicStates[0].PartitionStates[0].Partition = 1 << 30
	if r := s.UpdateMetadata(bad); P.Code(r.ErrorCode) != P.InvalidRequest {
		t.Error(P.Code(r.ErrorCode).Name())
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		seen := make(chan error)
		go func() {
			seen <- s.Wait(t.Context(), func(i *metadata.Image) bool { return i.Topic("t") != nil && !i.Alive(2) })
		}()
		s.UpdateMetadata(shows(1, 1, 2))
		synctest.Wait()
		select {
		case <-seen:
			t.Fatal("not yet")
		default:
		}
		s.UpdateMetadata(shows(1, 1))
		if err := <-seen; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Wait(ctx, func(*metadata.Image) bool { return false }); P.CodeOf(err) != P.RequestTimedOut {
			t.Error(err)
		}
	})
}

func put(t *testing.T, s coordination.Session, path string, data []byte) {
	t.Helper()
	if err := coordination.EnsurePath(t.Context(), s, coordination.Parent(path)); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Create(t.Context(), path, data, coordination.CreateOptions{})
	if errors.Is(err, coordination.ErrNodeExists) {
		_, err = s.Set(t.Context(), path, data, coordination.AnyVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, store *memory.Store) coordination.Session {
	t.Helper()
	s, err := store.Open(t.Context(), coordination.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func values(kv ...string) []byte {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return znode.EncodeConfig(m)
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		defer store.Close()
		writer := open(t, store)
		put(t, writer, "/config/topics/t", values("a", "1"))
		put(t, writer, "/config/topics/gone", values("a", "1"))
		put(t, writer, "/config/brokers/<default>", values("b", "2"))
		put(t, writer, "/config/users/u/clients/c", values("q", "3"))
		put(t, writer, "/config/changes/config_change_0000000000", znode.EncodeConfigChange("topics/t"))
		s := newStage(t)
		first := open(t, store)
		if err := s.Follow(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "brokers/<default>map[b:2]", "topics/gonemap[a:1]", "topics/tmap[a:1]", "users/u/clients/cmap[q:3]")
		put(t, writer, "/config/topics/t", values("a", "2"))
		synctest.Wait()
		s.expect(t, "topics/tmap[a:2]")
		put(t, writer, "/config/topics/t", []byte("damaged"))
		synctest.Wait()
		s.expect(t)
		put(t, writer, "/config/topics/t", values())
		synctest.Wait()
		s.expect(t, "topics/tmap[]")
		if names := s.Configured(metadata.TopicEntities); !slices.Equal(names, []string{"gone"}) {
			t.Errorf("%v have properties", names)
		}
		// A session ends, things happen, another one begins.
		_ = first.Close()
		put(t, writer, "/config/topics/t", values("a", "3"))
		if err := writer.Delete(t.Context(), "/config/topics/gone", -1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.expect(t)
		if err := s.Follow(t.Context(), open(t, store)); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "topics/gonemap[]", "topics/tmap[a:3]")
		if err := s.Follow(t.Context(), first); !errors.Is(err, coordination.ErrSessionLost) {
			t.Error(err)
		}
		s.Close()
	})
}

// The watch is late; the replica begins with the topic's own configuration all the same, also where the
// store does not answer for a while.
func TestReplicaBeginsWithItsConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		defer store.Close()
		writer, session := open(t, store), open(t, store)
		put(t, writer, "/config/topics/x", values())
		s := newStage(t)
		if err := s.Follow(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		s.heard = nil
		store.HoldEvents(session.ID())
		put(t, writer, "/config/topics/t", values("retention.ms", "-1"))
		failures := 3
		store.Inject(func(o memory.Operation) memory.Fault {
			if failures--; failures >= 0 {
				return memory.Fault{Outcome: memory.NotSent}
			}
			return memory.Fault{}
		})
		if got := code(s.LeaderAndISR(leads(1, 0))); got != P.None {
			t.Error(got.Name())
		}
		s.expect(t, "topics/tmap[retention.ms:-1]", "lead t-0 leader 1 epoch 0 new true config map[retention.ms:-1]")
		store.Inject(nil)
		store.ReleaseEvents(session.ID())
		synctest.Wait()
		s.expect(t)
		s.Close()
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		other := leads(1, 0)
		other.TopicStates[0].Topic = "u"
		if r := s.LeaderAndISR(other); P.Code(r.ErrorCode) != P.UnknownServerError {
			t.Error("an order was carried out without the topic's configuration")
		}
	})
}

// elsewhere shows t-0 on brokers 2 and 3.
func elsewhere(epoch int32) *kmsg.UpdateMetadataRequest {
	q := shows(2, 1, 2, 3)
	q.TopicStates[0].PartitionStates[0].LeaderEpoch, q.TopicStates[0].PartitionStates[0].Replicas = epoch, []int32{2, 3}
	return q
}

// orderedBy is the first order to a replica that comes of what is shown.
func (s *stage) orderedBy(q *kmsg.UpdateMetadataRequest) string {
	s.heard = nil
	s.UpdateMetadata(q)
	for _, line := range s.heard {
		if !strings.Contains(line, "shown") && !strings.Contains(line, "alive") {
			return line
		}
	}
	return ""
}

// A broker that was dead to the controller finds by what it is shown which replicas it has no more.
func TestReplicaIsMovedWhileItsBrokerIsNotRegistered(t *testing.T) {
	s := newStage(t)
	tp := P.TopicPartition{Topic: "t"}
	s.SetBrokerEpoch(3)
	s.LeaderAndISR(leads(1, 5))
	if got := s.orderedBy(elsewhere(6)); got != "" {
		t.Errorf("in the same life, where StopReplica will come: %s", got)
	}
	s.SetBrokerEpoch(4)
	if got := code(s.LeaderAndISR(leads(1, 5))); got != P.StaleControllerEpoch {
		t.Errorf("an order that is known: %s", got.Name())
	}
	if got := s.orderedBy(elsewhere(6)); got != "" {
		t.Errorf("in the next life, which has heard of the replica: %s", got)
	}
	s.SetBrokerEpoch(5)
	s.fail[tp] = P.Errorf(P.KafkaStorageError, "the disk is broken")
	if got := s.orderedBy(elsewhere(6)); got != "delete t-0" || len(s.hosted) != 1 {
		t.Errorf("%q, and %d replicas are known where a log could not be deleted", got, len(s.hosted))
	}
	delete(s.fail, tp)
	for _, want := range []string{"delete t-0", ""} {
		if got := s.orderedBy(elsewhere(6)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := code(s.LeaderAndISR(leads(2, 4))); got != P.None {
		t.Error("a replica that comes back is refused:", got.Name())
	}
	early := elsewhere(6)
	early.BrokerEpoch = 6 // of which the broker hears itself a moment later
	if got := s.orderedBy(early); got != "delete t-0" {
		t.Errorf("in a later life: %q", got)
	}
}

// Nothing is deleted of which it is not certain that it was moved away.
func TestReplicaIsKeptByABrokerThatWasNotRegistered(t *testing.T) {
	s := newStage(t)
	s.SetBrokerEpoch(3)
	s.LeaderAndISR(leads(1, 5))
	s.SetBrokerEpoch(4)
	for name, c := range map[string]struct {
		change func(*kmsg.UpdateMetadataRequestTopicState, *kmsg.UpdateMetadataRequestTopicPartition)
		want   string
	}{
		"nobody leads": {func(_ *kmsg.UpdateMetadataRequestTopicState, p *kmsg.UpdateMetadataRequestTopicPartition) {
			p.Leader = -1
		}, ""},
		"it is being deleted": {func(_ *kmsg.UpdateMetadataRequestTopicState, p *kmsg.UpdateMetadataRequestTopicPartition) {
			p.Leader = -2
		}, ""},
		"the epoch is not later": {func(_ *kmsg.UpdateMetadataRequestTopicState, p *kmsg.UpdateMetadataRequestTopicPartition) {
			p.LeaderEpoch = 5
		}, ""},
		"the replica is here": {func(_ *kmsg.UpdateMetadataRequestTopicState, p *kmsg.UpdateMetadataRequestTopicPartition) {
			p.Replicas = []int32{2, 1}
		}, ""},
		"it is not shown": {func(t *kmsg.UpdateMetadataRequestTopicState, _ *kmsg.UpdateMetadataRequestTopicPartition) {
			t.Topic = "u"
		}, ""},
		"it is another topic": {func(t *kmsg.UpdateMetadataRequestTopicState, _ *kmsg.UpdateMetadataRequestTopicPartition) {
			t.TopicID[0]++
		}, "stop t-0"},
	} {
		q := elsewhere(6)
		c.change(&q.TopicStates[0], &q.TopicStates[0].PartitionStates[0])
		if got := s.orderedBy(q); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if h := s.hosted[P.TopicPartition{Topic: "t"}]; h.topicID != [16]byte{7} || h.epoch != 5 {
			t.Errorf("%s: the replica is %+v", name, h)
		}
	}
}

// A topic that was deleted and made again while this broker was not registered, and had lost its replica of it before.
func TestTopicIsMadeAgainWhileABrokerIsNotRegistered(t *testing.T) {
	s := newStage(t)
	s.SetBrokerEpoch(3)
	s.LeaderAndISR(leads(1, 5))
	again := leads(1, 0)
	again.TopicStates[0].TopicID = [16]byte{8}
	if got := code(s.LeaderAndISR(again)); got != P.InconsistentTopicID {
		t.Errorf("in the same life: %s", got.Name())
	}
	s.heard = nil
	again.BrokerEpoch = 4 // of which the broker hears itself a moment later
	if got := code(s.LeaderAndISR(again)); got != P.None {
		t.Errorf("in a later life: %s", got.Name())
	}
	s.SetBrokerEpoch(4)
	s.expect(t, "lead t-0 leader 1 epoch 0 new true config map[]")
	late := leads(1, 9)
	late.BrokerEpoch = 4
	if got := code(s.LeaderAndISR(late)); got != P.InconsistentTopicID {
		t.Errorf("about the earlier topic: %s", got.Name())
	}
}
