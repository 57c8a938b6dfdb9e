package record

import (
	"encoding/binary"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The smallest values of the length field: a batch, or a message with neither key nor value.
const (
	batchLengthMin     = HeaderSize - LogOverhead
	messageV0LengthMin = 14
	messageV1LengthMin = messageV0LengthMin + 8
)

// attributesAtLegacy is where messages of formats 0 and 1 have their attributes, one byte.
const attributesAtLegacy = 17

// Header is the decoded header of a batch of format 2, or of a message of format 0 or 1 (which may wrap
// compressed ones). Logs are scanned by headers alone, so it is small enough to be passed by value and refers
// to no bytes.
type Header struct {
	// Magic is the message format: 0, 1 or 2.
	Magic int8
	// BaseOffset is the first offset. For a wrapper of formats 0 and 1 it is unknown without
	// decompression: then it equals LastOffset.
	BaseOffset protocol.Offset
	// LastOffset is the last offset that the batch spans, whatever compaction has left in it.
	LastOffset protocol.Offset
	// Size is the length of the whole batch in bytes, LogOverhead included.
	Size int
	// LeaderEpoch is the epoch of the leader that appended the batch; NoLeaderEpoch in formats 0 and 1.
	LeaderEpoch protocol.LeaderEpoch
	// CRC is what the batch claims: Castagnoli in format 2, IEEE before.
	CRC uint32
	// Attributes are the flags.
	Attributes
	// BaseTimestamp is what the timestamp deltas count from in ms; the message's time in format 1, and
	// NoTimestamp in format 0.
	BaseTimestamp int64
	// MaxTimestamp is the largest timestamp in ms; NoTimestamp in format 0.
	MaxTimestamp int64
	// ProducerID, ProducerEpoch and BaseSequence are -1 for plain producers and in formats 0 and 1.
	ProducerID    protocol.ProducerID
	ProducerEpoch protocol.ProducerEpoch
	BaseSequence  int32
	// Count is the number of records, 1 for a message, -1 for a wrapper of formats 0 and 1.
	Count int32
}

// NextOffset is the offset after the batch.
func (h *Header) NextOffset() protocol.Offset { return h.LastOffset + 1 }

// LastSequence is the sequence number of the last record, or NoSequence.
func (h *Header) LastSequence() int32 {
	return lastSequence(h.BaseSequence, int32(h.LastOffset-h.BaseOffset))
}

// ParseHeader decodes the header at the start of b, of any format; HeaderSize bytes always suffice. It
// returns ErrShort where b ends within the header and a *CorruptError where the header cannot be true:
// offsets, length, magic and last offset delta are checked, the CRC is not.
func ParseHeader(b []byte) (Header, error) {
	if len(b) <= magicAt {
		return Header{}, ErrShort
	}
	h := Header{
		BaseOffset: protocol.Offset(binary.BigEndian.Uint64(b)),
		Magic:      int8(b[magicAt]),
		Size:       LogOverhead + int(int32(binary.BigEndian.Uint32(b[lengthAt:]))),
	}
	switch h.Magic {
	case 2:
		return h.parseBatch(b)
	case 1, 0:
		return h.parseMessage(b)
	}
	return Header{}, corrupt(h.BaseOffset, "magic %d is not a message format", h.Magic)
}

// parseBatch reads the rest of a format 2 header. A count that does not fit the last offset delta is no
// damage: compaction takes records out.
// What is checked is what a scan relies on to move forward: a size that is at least a header, so that it never
// stands still, and offsets that do not go back within the batch.
func (h Header) parseBatch(b []byte) (Header, error) {
	if h.Size < LogOverhead+batchLengthMin {
		return Header{}, corrupt(h.BaseOffset, "length %d is below the %d of an empty batch", h.Size-LogOverhead, batchLengthMin)
	}
	if len(b) < HeaderSize {
		return Header{}, ErrShort
	}
	v := Batch(b)
	h.LeaderEpoch, h.CRC, h.Attributes = v.LeaderEpoch(), v.CRC(), v.Attributes()
	h.BaseTimestamp, h.MaxTimestamp = v.BaseTimestamp(), v.MaxTimestamp()
	h.ProducerID, h.ProducerEpoch = v.ProducerID(), v.ProducerEpoch()
	h.BaseSequence, h.Count = v.BaseSequence(), v.Count()
	h.LastOffset = v.LastOffset()
	if h.BaseOffset < 0 || v.LastOffsetDelta() < 0 || h.LastOffset < h.BaseOffset {
		return Header{}, corrupt(h.BaseOffset, "last offset delta %d", v.LastOffsetDelta())
	}
	return h, nil
}

// parseMessage reads the rest of a format 0 or 1 header.
func (h Header) parseMessage(b []byte) (Header, error) {
	least := messageLengthMin(h.Magic)
	if h.BaseOffset < 0 || h.Size < LogOverhead+least {
		return Header{}, corrupt(h.BaseOffset, "length %d is below the %d of an empty message", h.Size-LogOverhead, least)
	}
	if len(b) < LogOverhead+least {
		return Header{}, ErrShort
	}
	h.CRC = binary.BigEndian.Uint32(b[LogOverhead:])
	h.Attributes = Attributes(b[attributesAtLegacy])
	h.LastOffset, h.LeaderEpoch = h.BaseOffset, protocol.NoLeaderEpoch
	h.BaseTimestamp = NoTimestamp
	if h.Magic == 1 {
		h.BaseTimestamp = int64(binary.BigEndian.Uint64(b[attributesAtLegacy+1:]))
	}
	h.MaxTimestamp = h.BaseTimestamp
	h.ProducerID, h.ProducerEpoch, h.BaseSequence = protocol.NoProducerID, protocol.NoProducerEpoch, NoSequence
	h.Count = 1
	if h.Codec() != None {
		h.Count = -1
	}
	return h, nil
}
