package replica

import (
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// shown is what a broker hears of a topic with one partition, in the given state.
func (s *stage) shown(topic string, id protocol.TopicID, state *metadata.Partition) {
	s.t.Helper()
	next, delta := s.image.With(metadata.PutTopic{Name: topic, ID: id, Partitions: []*metadata.Partition{state}})
	s.image = next
	for tp, err := range s.Apply(delta, next) {
		s.t.Errorf("%v: %v", tp, err)
	}
}

// The log of a replica that was moved away while its broker was down is deleted, and no other.
func TestLogOfAReplicaThatWasMovedAway(t *testing.T) {
	s := newStage(t)
	topics := []string{"moved", "mine", "leaderless", "another", "unknown"}
	for _, topic := range topics {
		s.write(s.lead(topic, 0), 1, AcksLeader)
	}
	dir, _ := s.dirs.DirOf(tp("unknown"))
	s.must(s.files.Remove(dir + "/unknown-0/partition.metadata")) // as a power cut may do
	s.stop()
	s.start()
	elsewhere := &metadata.Partition{Leader: 2, LeaderEpoch: 3, Replicas: []protocol.BrokerID{2, 3}, ISR: []protocol.BrokerID{2}}
	offline := *elsewhere
	offline.Leader = protocol.NoBroker
	s.lead("mine", 5)
	s.shown("mine", s.id("mine"), &metadata.Partition{Leader: 1, LeaderEpoch: 5, Replicas: []protocol.BrokerID{1}, ISR: []protocol.BrokerID{1}})
	s.shown("moved", s.id("moved"), elsewhere)
	s.shown("leaderless", s.id("leaderless"), &offline)
	s.shown("another", protocol.NewTopicID(), elsewhere)
	s.shown("unknown", s.id("unknown"), elsewhere)
	for _, topic := range topics {
		if there := s.dirs.Get(tp(topic)) != nil; there == (topic == "moved") {
			t.Errorf("%s: log there: %v", topic, there)
		}
	}
	s.shown("leaderless", s.id("leaderless"), elsewhere)
	if s.dirs.Get(tp("leaderless")) != nil {
		t.Error("the log stays although others lead the partition now")
	}
	s.shown("mine", s.id("mine"), elsewhere) // the order to delete it is on its way
	if s.dirs.Get(tp("mine")) == nil {
		t.Error("the log of a replica that served was deleted without an order")
	}
}

// A store that was set back to an old backup does not know of the moves since: the log may have what nobody else has.
func TestLogOfAReplicaThatAnOlderStoreDoesNotKnow(t *testing.T) {
	for _, epoch := range []protocol.LeaderEpoch{3, 4} {
		s := newStage(t)
		s.write(s.lead("moved-here", epoch), 1, AcksLeader)
		s.stop()
		s.start()
		s.shown("moved-here", s.id("moved-here"), &metadata.Partition{Leader: 2, LeaderEpoch: 3, Replicas: []protocol.BrokerID{2, 3}, ISR: []protocol.BrokerID{2}})
		if s.dirs.Get(tp("moved-here")) == nil {
			t.Errorf("a log with leader epoch %d was deleted for a state of leader epoch 3", epoch)
		}
	}
}
