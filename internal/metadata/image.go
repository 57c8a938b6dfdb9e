package metadata

import (
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Image is the whole cluster at one moment. It is immutable: every value that it hands out is shared with
// other images and must not be written to. The zero Image is not usable; start from [Empty].
type Image struct {
	// ClusterID is the id that the first broker of the cluster gave it; empty until told.
	ClusterID string
	// Controller is the active controller, or NoBroker.
	Controller P.BrokerID
	// ControllerEpoch is that of the controller which sent the newest part of this image.
	ControllerEpoch P.ControllerEpoch

	brokers map[P.BrokerID]*Broker
	sorted  []*Broker // the same, by id
	topics  *table[string, *Topic]
	names   []string // of topics, sorted
	ids     *table[P.TopicID, *Topic]
	configs *table[Entity, map[string]string]

	partitions int
}

// Empty is the image before anything is known.
func Empty() *Image {
	return &Image{
		Controller: P.NoBroker,
		topics:     newTable[string, *Topic](hashText[string]),
		ids:        newTable[P.TopicID, *Topic](func(id P.TopicID) uint8 { return id[0] ^ id[5] ^ id[15] }),
		configs:    newTable[Entity, map[string]string](hashText[Entity]),
	}
}

// Broker finds a living broker; nil where there is none with this id.
func (i *Image) Broker(id P.BrokerID) *Broker { return i.brokers[id] }

// Alive reports whether a broker with this id is living.
func (i *Image) Alive(id P.BrokerID) bool { return i.brokers[id] != nil }

// Brokers lists the living brokers by id.
func (i *Image) Brokers() []*Broker { return i.sorted }

// Topic finds a topic by its name; nil where there is none.
func (i *Image) Topic(name string) *Topic { return i.topics.get(name) }

// TopicInFrame is Topic for a name as it lies in a request's frame: the lookup makes no string of it.
func (i *Image) TopicInFrame(name []byte) *Topic {
	return i.topics.shards[hashText(name)][string(name)]
}

// TopicByID finds a topic by its id; nil where there is none, and for the zero id.
func (i *Image) TopicByID(id P.TopicID) *Topic {
	if id.IsZero() {
		return nil
	}
	return i.ids.get(id)
}

// Topics lists the names of all topics, sorted.
func (i *Image) Topics() []string { return i.names }

// PartitionCount is how many partitions all topics have together.
func (i *Image) PartitionCount() int { return i.partitions }

// Partition finds the state of one partition; nil where it is not known.
func (i *Image) Partition(tp P.TopicPartition) *Partition {
	topic := i.topics.get(tp.Topic)
	if topic == nil {
		return nil
	}
	return topic.Partition(tp.Partition)
}

// Config is what was set on an entity itself, without defaults; nil where nothing was.
func (i *Image) Config(entity Entity) map[string]string { return i.configs.get(entity) }

// TopicConfig is what was set on a topic, also where the topic itself is not known yet.
func (i *Image) TopicConfig(name string) map[string]string { return i.Config(TopicEntity(name)) }

// BrokerConfig is what was set dynamically on one broker, or for NoBroker on all of them.
func (i *Image) BrokerConfig(id P.BrokerID) map[string]string { return i.Config(BrokerEntity(id)) }
