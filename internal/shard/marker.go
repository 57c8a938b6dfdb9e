package shard

import (
	"encoding/binary"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// The types of control records that end transactions; there are others, which say nothing here.
const (
	controlAbort  = 0
	controlCommit = 1
)

// markerBatch is the control batch of a marker:
//
//	key    version int16 0 | type int16
//	value  version int16 0 | coordinator epoch int32
func markerBatch(m Marker, now Now) record.Batch {
	kind := uint16(controlAbort)
	if m.Commit {
		kind = controlCommit
	}
	b := record.NewBuilder(record.BuilderOptions{
		LeaderEpoch: protocol.NoLeaderEpoch, ProducerID: m.ID, ProducerEpoch: m.Epoch, BaseSequence: record.NoSequence,
		Transactional: true, Control: true,
	})
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, kind)
	b.Append(now.Wall, key, binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(m.CoordinatorEpoch)))
	return b.Build()
}

// markerOf reads the control record of a marker; ends is false for control records of other kinds.
func markerOf(r record.Record) (commit, ends bool, err error) {
	if len(r.Key) < 4 {
		return false, false, fmt.Errorf("control record at offset %d has a key of %d bytes", r.Offset, len(r.Key))
	}
	kind := binary.BigEndian.Uint16(r.Key[2:])
	return kind == controlCommit, kind == controlCommit || kind == controlAbort, nil
}
