package replica

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// self is the broker of these tests.
const self = protocol.BrokerID(1)

// stage is a broker's replicas over directories in memory, and what the controller has told them.
type stage struct {
	*Replicas
	self  protocol.BrokerID
	t     testing.TB
	files *vfs.Memory
	disk  *vfs.Faulty // over files
	// broken says that the disk has failed: the broker cannot close its directories well.
	broken bool
	dirs   *logdir.Set
	image  *metadata.Image
	ids    map[string]protocol.TopicID
	// version is that of the newest state, of whatever partition.
	version protocol.PartitionEpoch
	// draining is closed where the broker stops.
	draining chan struct{}
}

func newStage(t testing.TB) *stage { return newStageOf(t, self, map[string]protocol.TopicID{}) }

// newStageOf is the stage of one broker of several, which share the ids of topics.
func newStageOf(t testing.TB, id protocol.BrokerID, ids map[string]protocol.TopicID) *stage {
	files := vfs.NewMemory()
	s := &stage{self: id, t: t, files: files, disk: vfs.NewFaulty(files), image: metadata.Empty(), ids: ids, draining: make(chan struct{})}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start opens the directories as a broker does after a clean stop.
func (s *stage) start() {
	s.t.Helper()
	c := config.Default()
	dirs, err := logdir.Open(logdir.Options{
		FS: s.disk, Dirs: []string{"/a", "/b"}, BrokerID: s.self, ClusterID: "cluster", Config: c, BootID: "boot",
	})
	s.must(err)
	s.must(dirs.Load(context.Background(), func(tp protocol.TopicPartition, _ protocol.TopicID) (config.Topic, bool) {
		settings, err := c.Topic(s.image.TopicConfig(tp.Topic))
		return settings, err == nil
	}))
	s.dirs = dirs
	s.Replicas = New(Options{Self: s.self, Dirs: dirs, Topic: c.Topic, Logger: slog.New(slog.DiscardHandler),
		Draining: func() <-chan struct{} { return s.draining }})
}

func (s *stage) stop() {
	s.t.Helper()
	if err := s.dirs.Close(context.Background()); !s.broken {
		s.must(err)
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// id is the id of a topic, the same each time.
func (s *stage) id(topic string) protocol.TopicID {
	if _, ok := s.ids[topic]; !ok {
		s.ids[topic] = protocol.NewTopicID()
	}
	return s.ids[topic]
}

func tp(topic string) protocol.TopicPartition { return protocol.TopicPartition{Topic: topic} }

// order makes the order for partition 0 of a topic, with a newer state than those before.
func (s *stage) order(topic string, role metadata.Role, epoch protocol.LeaderEpoch, inSync ...protocol.BrokerID) metadata.ReplicaChange {
	if len(inSync) == 0 {
		inSync = []protocol.BrokerID{s.self}
	}
	s.version++
	return metadata.ReplicaChange{
		TopicPartition: tp(topic), TopicID: s.id(topic), Role: role,
		State: &metadata.Partition{Leader: s.self, LeaderEpoch: epoch, Replicas: inSync, ISR: inSync, Epoch: s.version},
	}
}

// tell carries out orders and gives what failed.
func (s *stage) tell(orders ...metadata.ReplicaChange) map[protocol.TopicPartition]error {
	return s.Apply(metadata.Delta{From: s.image, To: s.image, Replicas: orders}, s.image)
}

// lead makes this broker the leader of partition 0 of a topic.
func (s *stage) lead(topic string, epoch protocol.LeaderEpoch, inSync ...protocol.BrokerID) *Partition {
	s.t.Helper()
	for partition, err := range s.tell(s.order(topic, metadata.Lead, epoch, inSync...)) {
		s.t.Fatalf("%v: %v", partition, err)
	}
	p, err := s.Partition(tp(topic))
	s.must(err)
	return p
}

// set changes the properties of an entity.
func (s *stage) set(entity metadata.Entity, values map[string]string) {
	s.t.Helper()
	next, delta := s.image.With(metadata.SetConfig{Entity: entity, Values: values})
	s.image = next
	s.Apply(delta, next)
}

// validated is a batch of n records, checked as for a client's.
func (s *stage) validated(p *Partition, n int) record.Validated {
	s.t.Helper()
	b := record.NewBuilder(record.BuilderOptions{})
	for i := range n {
		b.Append(1_700_000_000_000+int64(i), nil, fmt.Appendf(nil, "value %d", i))
	}
	v, err := p.Validate(b.Build(), record.FromClient, 9, time.UnixMilli(1_700_000_000_000))
	s.must(err)
	return v
}

// write appends n records and gives the offset of the last one.
func (s *stage) write(p *Partition, n int, acks Acks) protocol.Offset {
	s.t.Helper()
	appended, _, err := p.Append(context.Background(), s.validated(p, n), acks)
	s.must(err)
	return appended.Last
}

// wantCode checks the code of an error.
func wantCode(t testing.TB, what string, err error, code protocol.Code) {
	t.Helper()
	if protocol.CodeOf(err) != code {
		t.Errorf("%s: %v, want %v", what, err, code.Name())
	}
}

func (s *stage) now() time.Time { return time.UnixMilli(1_700_000_000_000) }
