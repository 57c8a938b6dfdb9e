package record

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A message of format 0 (Kafka 0.8) or 1 (0.10), big-endian:
//
//	 0 offset      int64
//	 8 length      int32   of what follows this field
//	12 CRC         uint32  IEEE, over everything from the next field on
//	16 magic       int8    0 or 1
//	17 attributes  int8    bits 0-2 codec, 3 log append time (format 1)
//	18 timestamp   int64   only in format 1, in ms
//	   key length int32 (-1: null), key | value length int32 (-1: null), value
//
// A message whose attributes name a codec is a wrapper: its value is a compressed set of such messages and
// its offset that of the last of them. Inside, format 0 has the absolute offsets and format 1 ones that count
// from the first message; a wrapper at offset 0 is taken as starting at 0, since old librdkafka did not set
// the offset. With log append time the wrapper's timestamp holds for all messages in it.
//
//	wrapper at offset 14, three messages       inside       added to each
//	format 0                                   12 13 14     0
//	format 1                                    0  1  2     14 - 2 = 12
//	format 1, the middle one compacted away     0     2     14 - 2 = 12
//
// So the broker of format 0 had to decompress and compress every produced wrapper to number its messages; format
// 1 was made to spare it that (KIP-31). We read both, and write neither.
const (
	messageCRCAt = LogOverhead
	messageV0At  = 18
	messageV1At  = messageV0At + 8
)

var (
	errMessage      = errors.New("message does not fit into its length")
	errMessageMagic = errors.New("message in a wrapper of another format")
	errMessageCodec = errors.New("compressed message in a compressed message")
	errMessageOrder = errors.New("offset of the wrapper is below that of its last message")
	errMessageEmpty = errors.New("wrapper without messages")
)

// message is a view on one complete message of format 0 or 1, as [Entries] or a wrapper's stream has cut it:
// at least the smallest that its format has.
type message []byte

func (m message) offset() int64          { return int64(binary.BigEndian.Uint64(m)) }
func (m message) magic() int8            { return int8(m[magicAt]) }
func (m message) attributes() Attributes { return Attributes(m[attributesAtLegacy]) }

func (m message) validCRC() bool {
	return crc32.ChecksumIEEE(m[magicAt:]) == binary.BigEndian.Uint32(m[messageCRCAt:])
}

// timestamp is in ms; format 0 has none.
func (m message) timestamp() int64 {
	if m.magic() == 0 {
		return NoTimestamp
	}
	return int64(binary.BigEndian.Uint64(m[messageV0At:]))
}

// keyValue reads the rest of the message; nil is null.
func (m message) keyValue() (key, value []byte, ok bool) {
	at := messageV0At
	if m.magic() == 1 {
		at = messageV1At
	}
	key, rest, ok := cutBytes32(m[at:])
	if !ok {
		return nil, nil, false
	}
	value, rest, ok = cutBytes32(rest)
	return key, value, ok && len(rest) == 0
}

// cutBytes32 reads a byte string with a length of four bytes, nil for a negative one.
func cutBytes32(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := int(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	if size < 0 {
		return nil, b, true
	}
	if size > len(b) {
		return nil, nil, false
	}
	return b[:size:size], b[size:], true
}

// record reads the message as a record at an offset.
func (m message) record(offset protocol.Offset) (Record, error) {
	key, value, ok := m.keyValue()
	if !ok {
		return Record{}, errMessage
	}
	return Record{
		Offset: offset, Timestamp: m.timestamp(), Key: key, Value: value,
		Attributes: int8(m.attributes()), Size: len(m),
	}, nil
}

// messageRecords walks a message, or those in a wrapper.
func (m message) messageRecords(d *Decompressor, yield func(Record, error) bool) error {
	r, err := m.record(protocol.Offset(m.offset()))
	if err != nil {
		return err
	}
	codec := m.attributes().Codec()
	if codec == None {
		if !yield(r, nil) {
			return errLeft
		}
		return nil
	}
	base, err := m.wrappedBase(d, r.Value)
	if err != nil {
		return err
	}
	return m.walkInner(d, r.Value, func(inner message) error {
		offset := inner.offset() + base
		r, err := inner.record(protocol.Offset(offset))
		if err != nil {
			return err
		}
		if m.magic() == 1 && m.attributes().TimestampType() == LogAppendTime {
			r.Timestamp = m.timestamp()
		}
		if !yield(r, nil) {
			return errLeft
		}
		return nil
	})
}

// Wrappers are walked inner message by inner message, for the same reason as batches: the payload may expand
// to far more than it is.

// wrappedBase is what must be added to the offsets of the messages in a wrapper. Format 1 shows it only at
// the last message, so they are decompressed twice.
func (m message) wrappedBase(d *Decompressor, payload []byte) (int64, error) {
	if m.magic() == 0 || m.offset() == 0 {
		return 0, nil
	}
	last := int64(-1)
	err := m.walkInner(d, payload, func(inner message) error {
		last = inner.offset()
		return nil
	})
	if err == nil && last > m.offset() {
		err = errMessageOrder
	}
	return m.offset() - last, err
}

// walkInner calls each for the messages in a wrapper. A message is valid until each returns.
func (m message) walkInner(d *Decompressor, payload []byte, each func(message) error) error {
	mode := ordinary
	if m.magic() == 0 {
		mode = legacy
	}
	s, err := d.open(m.attributes().Codec(), payload, mode)
	if err != nil {
		return err
	}
	defer d.close(s)
	for n := 0; ; n++ {
		inner, err := s.message(m.magic())
		if err == io.EOF && n > 0 {
			return nil
		}
		if err == io.EOF {
			return errMessageEmpty
		}
		if err != nil {
			return err
		}
		if err := each(inner); err != nil {
			return err
		}
	}
}

// message reads the next message of a wrapper; io.EOF behind the last. It is valid until the next call.
func (s *stream) message(magic int8) (message, error) {
	if done, err := s.finished(); done || err != nil {
		if done {
			err = io.EOF
		}
		return nil, err
	}
	head, err := s.take(LogOverhead)
	if err != nil {
		return nil, err
	}
	var fixed [LogOverhead]byte
	copy(fixed[:], head)
	size := int(int32(binary.BigEndian.Uint32(fixed[lengthAt:])))
	if size < messageLengthMin(magic) {
		return nil, errMessage
	}
	if size > s.recordMax {
		return nil, errTooLarge
	}
	b, err := s.takeBehind(fixed[:], size)
	if err != nil {
		return nil, err
	}
	switch m := message(b); {
	case m.magic() != magic:
		return nil, errMessageMagic
	case m.attributes().Codec() != None:
		return nil, errMessageCodec
	default:
		return m, nil
	}
}

// messageLengthMin is the smallest value of the length field.
func messageLengthMin(magic int8) int {
	if magic == 0 {
		return messageV0LengthMin
	}
	return messageV1LengthMin
}
