package log

import "encoding/binary"

// The control record types that end a transaction.
const (
	controlAbort  = 0
	controlCommit = 1
)

// parseMarker reads key (version int16, type int16) and value (version int16, coordinator epoch int32) of a
// control record. Later versions may only add fields.
func parseMarker(key, value []byte) endMarker {
	if len(key) < 4 || len(value) < 6 {
		return endMarker{}
	}
	kind := int16(binary.BigEndian.Uint16(key[2:]))
	return endMarker{
		known:            kind == controlAbort || kind == controlCommit,
		commit:           kind == controlCommit,
		coordinatorEpoch: int32(binary.BigEndian.Uint32(value[2:])),
	}
}
