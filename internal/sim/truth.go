package sim

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// What the store says at this moment: faults aim by it, and the end of a run is judged by it.

// controller is the broker that is controller; -1 where there is none.
func (w *world) controller() int {
	data, _, err := w.store.Tree().Get(znode.ControllerPath)
	if err != nil {
		return -1
	}
	c, err := znode.DecodeController(data)
	if err != nil {
		return -1
	}
	return int(c.BrokerID)
}

// state is a partition's; false where it has none.
func (w *world) state(tp protocol.TopicPartition) (znode.State, bool) {
	data, _, err := w.store.Tree().Get(znode.StatePath(tp))
	if err != nil {
		return znode.State{}, false
	}
	s, err := znode.DecodeState(tp, data)
	return s, err == nil
}

// assigned reports whether a machine has a replica of a partition of the topic under test.
func (w *world) assigned(partition int32, m *machine) bool {
	data, _, err := w.store.Tree().Get(znode.TopicPath(topic))
	if err != nil {
		return false
	}
	t, err := znode.DecodeTopic(topic, data)
	if err != nil {
		return false
	}
	for _, id := range t.Replicas[partition] {
		if int(id) == m.id {
			return true
		}
	}
	return false
}

// holds reports whether a machine has a log of a partition of the topic under test, one that says so: of a log that has
// lost its topic id in a power cut nobody knows, and it is kept.
func (w *world) holds(partition int32, m *machine) bool {
	m.mu.Lock()
	disk := m.disk
	m.mu.Unlock()
	for _, dir := range [...]string{"/data", "/more"} {
		if id, err := log.ReadTopicID(disk, fmt.Sprintf("%s/%s-%d", dir, topic, partition)); err == nil && !id.IsZero() {
			return true
		}
	}
	return false
}

// registration is the epoch of a broker; 0 where it is not registered.
func (w *world) registration(id int) int64 {
	_, stat, err := w.store.Tree().Get(znode.BrokerPath(protocol.BrokerID(id)))
	if err != nil {
		return 0
	}
	return stat.Czxid
}

// offsets is a partition of the committed offsets.
func offsets(partition int32) protocol.TopicPartition {
	return protocol.TopicPartition{Topic: "__consumer_offsets", Partition: partition}
}
