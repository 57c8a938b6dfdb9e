package protocol

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
)

// Offset is the position of a record in a partition: the first is 0, and every record takes the next.
// A log end offset or a high watermark is exclusive: the offset after the last record that it covers.
type Offset int64

// LeaderEpoch counts the leaders of one partition; NoLeaderEpoch is Kafka's "unknown".
type LeaderEpoch int32

// PartitionEpoch is the data version of a partition's state znode: it rises with every change to it.
type PartitionEpoch int32

// ControllerEpoch counts the controllers of a cluster; the first is 1.
type ControllerEpoch int32

// BrokerEpoch tells two lives of one broker apart: it is the czxid of its registration znode.
type BrokerEpoch int64

// BrokerID names a broker; NoBroker is Kafka's "none".
type BrokerID int32

// ProducerID names an idempotent or transactional producer; NoProducerID marks batches of plain ones.
type ProducerID int64

// ProducerEpoch fences the older instances of one producer id.
type ProducerEpoch int16

// What Kafka writes where there is no value.
const (
	NoOffset        Offset         = -1
	NoLeaderEpoch   LeaderEpoch    = -1
	NoBroker        BrokerID       = -1
	NoProducerID    ProducerID     = -1
	NoProducerEpoch ProducerEpoch  = -1
	NoBrokerEpoch   BrokerEpoch    = -1
	NoPartition     int32          = -1
	AnyEpoch        PartitionEpoch = -1
)

// TopicID is the 128-bit id of a topic (KIP-516): a topic that is deleted and made again has another.
// The zero value means "no id", as on the wire.
type TopicID [16]byte

// NewTopicID draws a random id that is neither zero nor one of those that Kafka reserves, and whose text
// does not begin with a dash (Kafka's own rule: it would look like a flag).
func NewTopicID() TopicID {
	for {
		var id TopicID
		_, _ = rand.Read(id[:]) // crypto/rand.Read never fails since Go 1.24
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id.String()[0] != '-' {
			return id
		}
	}
}

// ParseTopicID reads the 22 characters of URL-safe base64 that [TopicID.String] writes.
func ParseTopicID(text string) (TopicID, error) {
	var id TopicID
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("topic id %q is not 22 characters of URL-safe base64", text)
	}
	copy(id[:], raw)
	return id, nil
}

// String is Kafka's text form: URL-safe base64 without padding.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// IsZero reports whether there is no id.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name of the partition's directory, as Kafka writes it: topic-partition.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }
