package record

import (
	"encoding/binary"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Control batches hold the broker's own marks, one record each, which clients skip. They count as offsets all the
// same: a consumer's position moves past them. The key says what kind it is, the value depends on it:
//
//	key    0 version int16 (0)
//	       2 type    int16 (0 abort, 1 commit; the others are KRaft's)
//	value  of the end of a transaction:
//	       0 version           int16 (0)
//	       2 coordinator epoch int32 the leader epoch of the partition of __transaction_state
//
// The compactor must never match them by key with a client's records: a client may use these four bytes as a key
// (KAFKA-14055 removed markers that way, and aborted records came to light).
const (
	controlKeyBytes   = 4
	endTxnMarkerBytes = 6
)

// ControlType says what a control record marks.
type ControlType int16

// The types of control records. Those above EndCommit stand only in the metadata log of KRaft.
const (
	EndAbort       ControlType = 0
	EndCommit      ControlType = 1
	LeaderChange   ControlType = 2
	SnapshotHeader ControlType = 3
	SnapshotFooter ControlType = 4
	KRaftVersion   ControlType = 5
	KRaftVoters    ControlType = 6
)

// String is the name that Kafka's dump tool prints.
func (t ControlType) String() string {
	names := [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}
	if t < 0 || int(t) >= len(names) {
		return fmt.Sprintf("UNKNOWN(%d)", int16(t))
	}
	return names[t]
}

// ControlTypeOf reads the key of a control record. Later versions of the key are read like version 0, as Kafka
// does: what they add comes behind.
func ControlTypeOf(r Record) (ControlType, error) {
	if len(r.Key) < controlKeyBytes {
		return 0, invalid(r.Offset, "control record with a key of %d bytes", len(r.Key))
	}
	if version := int16(binary.BigEndian.Uint16(r.Key)); version < 0 {
		return 0, invalid(r.Offset, "control record with a key of version %d", version)
	}
	return ControlType(binary.BigEndian.Uint16(r.Key[2:])), nil
}

// EndTxnMarker is what a transaction coordinator writes into every partition of a transaction at its end.
type EndTxnMarker struct {
	// Type is EndAbort or EndCommit.
	Type ControlType
	// CoordinatorEpoch is the leader epoch of the coordinator's partition: markers of earlier ones are
	// refused.
	CoordinatorEpoch int32
}

// ParseEndTxnMarker reads a control record; ok is false where it marks something else.
func ParseEndTxnMarker(r Record) (marker EndTxnMarker, ok bool, err error) {
	kind, err := ControlTypeOf(r)
	if err != nil || kind != EndAbort && kind != EndCommit {
		return EndTxnMarker{}, false, err
	}
	if len(r.Value) < endTxnMarkerBytes {
		return EndTxnMarker{}, false, invalid(r.Offset, "end of a transaction in %d bytes", len(r.Value))
	}
	if version := int16(binary.BigEndian.Uint16(r.Value)); version < 0 {
		return EndTxnMarker{}, false, invalid(r.Offset, "end of a transaction of version %d", version)
	}
	return EndTxnMarker{kind, int32(binary.BigEndian.Uint32(r.Value[2:]))}, true, nil
}

// Batch is the marker as a batch, at a time in ms: the broker's, also where the transaction's records have
// the producer's. It has no sequence number, so it is never taken for a duplicate.
func (m EndTxnMarker) Batch(timestamp int64, id protocol.ProducerID, epoch protocol.ProducerEpoch) Batch {
	w := NewBuilder(BuilderOptions{
		ProducerID: id, ProducerEpoch: epoch, BaseSequence: NoSequence, Transactional: true, Control: true,
	})
	key := binary.BigEndian.AppendUint16(make([]byte, 2, controlKeyBytes), uint16(m.Type))
	value := binary.BigEndian.AppendUint32(make([]byte, 2, endTxnMarkerBytes), uint32(m.CoordinatorEpoch))
	w.Append(timestamp, key, value)
	return w.Build()
}
