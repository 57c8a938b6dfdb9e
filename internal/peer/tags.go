package peer

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// The tags that Barnabas adds to Kafka's messages. Kafka's brokers skip tags that they do not know.
const (
	// FullMetadataTag marks an UpdateMetadata of ours that holds all partitions there are: what is not in it
	// does not exist any more. Without it a broker that did not hear of a deletion, since the controller died,
	// would show the topic for ever, as Kafka's brokers do.
	FullMetadataTag = 0x6261726e // "barn"

	// EligibleTag lists, in a partition of LeaderAndIsr and of the answer to AlterPartition, the eligible
	// replicas outside of the in-sync set (KIP-966), with four bytes each. Where there are none there is no tag.
	EligibleTag = 0x62617265 // "bare"

	// EndTag says, in a partition of the answer to LeaderAndIsr, what a replica without a leader holds: four bytes
	// of the epoch of its last record, eight of its log end offset. By that the controller chooses a leader where
	// all members of an in-sync set may have lost records.
	EndTag = 0x62656e64 // "bend"

	// WaitsTag lists, in the answer to ListPartitionReassignments, the partitions for which an unclean election will be
	// held: four bytes of the length of the topic's name, the name, four bytes of the partition, eight of the milliseconds
	// until then. It is there only where the request has the tag, too, without a value.
	WaitsTag = 0x62776169 // "bwai"

	// UncleanTag says, in a partition of LeaderAndIsr, in which leader epoch the last unclean election was, in four
	// bytes; where there was none there is no tag. A replica that was away then may have to cut what it knows to be
	// committed, also long after the leader has recovered.
	UncleanTag = 0x62756e63 // "bunc"
)

// SetEligible puts eligible replicas into the tags of a partition.
func SetEligible(tags *kmsg.Tags, ids []P.BrokerID) {
	if len(ids) == 0 {
		return
	}
	value := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		value = binary.BigEndian.AppendUint32(value, uint32(id))
	}
	tags.Set(EligibleTag, value)
}

// Eligible finds the eligible replicas in the tags of a partition; nil where there are none.
func Eligible(tags *kmsg.Tags) []P.BrokerID {
	var ids []P.BrokerID
	tags.Each(func(tag uint32, value []byte) {
		for tag == EligibleTag && len(value) >= 4 {
			ids = append(ids, P.BrokerID(binary.BigEndian.Uint32(value)))
			value = value[4:]
		}
	})
	return ids
}

// SetUncleanEpoch puts the leader epoch of the last unclean election into the tags of a partition; 0 is none.
func SetUncleanEpoch(tags *kmsg.Tags, epoch P.LeaderEpoch) {
	if epoch > 0 {
		tags.Set(UncleanTag, binary.BigEndian.AppendUint32(nil, uint32(epoch)))
	}
}

// UncleanEpoch finds the leader epoch of the last unclean election in the tags of a partition; 0 where there was none.
func UncleanEpoch(tags *kmsg.Tags) P.LeaderEpoch {
	epoch := P.LeaderEpoch(0)
	tags.Each(func(tag uint32, value []byte) {
		if tag == UncleanTag && len(value) == 4 {
			epoch = max(P.LeaderEpoch(binary.BigEndian.Uint32(value)), 0)
		}
	})
	return epoch
}

// SetEnd puts the epoch of a replica's last record and its log end offset into the tags of a partition.
func SetEnd(tags *kmsg.Tags, epoch P.LeaderEpoch, end P.Offset) {
	tags.Set(EndTag, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(epoch)), uint64(end)))
}

// End finds what SetEnd has put into the tags of a partition; false where there is nothing.
func End(tags *kmsg.Tags) (epoch P.LeaderEpoch, end P.Offset, ok bool) {
	tags.Each(func(tag uint32, value []byte) {
		if tag == EndTag && len(value) == 12 {
			epoch, end, ok = P.LeaderEpoch(binary.BigEndian.Uint32(value)), P.Offset(binary.BigEndian.Uint64(value[4:])), true
		}
	})
	return epoch, end, ok
}

// Wait is a partition for which an unclean election will be held.
type Wait struct {
	P.TopicPartition
	// Left is the time until then.
	Left time.Duration
}

// AskForWaits puts the wish for waits into the tags of a request; AsksForWaits finds it.
func AskForWaits(tags *kmsg.Tags) { tags.Set(WaitsTag, []byte{}) }

// AsksForWaits reports whether AskForWaits was called on the tags.
func AsksForWaits(tags *kmsg.Tags) bool {
	asks := false
	tags.Each(func(tag uint32, _ []byte) { asks = asks || tag == WaitsTag })
	return asks
}

// SetWaits puts waits into the tags of an answer.
func SetWaits(tags *kmsg.Tags, waits []Wait) {
	var value []byte
	for _, w := range waits {
		value = append(binary.BigEndian.AppendUint32(value, uint32(len(w.Topic))), w.Topic...)
		value = binary.BigEndian.AppendUint32(value, uint32(w.Partition))
		value = binary.BigEndian.AppendUint64(value, uint64(w.Left.Milliseconds()))
	}
	if len(value) > 0 {
		tags.Set(WaitsTag, value)
	}
}

// Waits finds what SetWaits has put into the tags of an answer, as far as it can be read.
func Waits(tags *kmsg.Tags) []Wait {
	var waits []Wait
	tags.Each(func(tag uint32, value []byte) {
		for tag == WaitsTag && len(value) >= 4 {
			name := value[4:]
			length := int64(binary.BigEndian.Uint32(value))
			if int64(len(name)) < length+12 {
				return
			}
			rest := name[length:]
			waits = append(waits, Wait{
				P.TopicPartition{Topic: string(name[:length]), Partition: int32(binary.BigEndian.Uint32(rest))},
				time.Duration(binary.BigEndian.Uint64(rest[4:])) * time.Millisecond,
			})
			value = rest[12:]
		}
	})
	return waits
}
