package record

// The bits of a batch's attributes:
//
//	15 ... 7   6                5        4              3                2 1 0
//	unused     delete horizon   control  transactional  log append time  codec
//
// Kafka leaves the others alone, and so do we: bit 7 and up are stored as they came. Format 1 knows bits 0 to 3,
// format 0 only the codec.
const (
	codecMask        Attributes = 0x07
	logAppendTimeBit Attributes = 0x08
	transactionalBit Attributes = 0x10
	controlBit       Attributes = 0x20
	deleteHorizonBit Attributes = 0x40
)

// Attributes are the flags of a batch, in all message formats; formats 0 and 1 have the lower 8 bits.
type Attributes int16

// Codec is how the records are compressed. Values above [Zstd] exist on the wire and are invalid.
func (a Attributes) Codec() Codec { return Codec(a & codecMask) }

// TimestampType says whose clock the timestamps are from.
func (a Attributes) TimestampType() TimestampType {
	if a&logAppendTimeBit != 0 {
		return LogAppendTime
	}
	return CreateTime
}

// Transactional reports whether the batch belongs to a transaction.
func (a Attributes) Transactional() bool { return a&transactionalBit != 0 }

// Control reports whether the records are the broker's own marks, which consumers skip.
func (a Attributes) Control() bool { return a&controlBit != 0 }

// HasDeleteHorizon reports whether the base timestamp is the time at which tombstones and markers of the
// batch may go (KIP-534); the log cleaner sets it.
func (a Attributes) HasDeleteHorizon() bool { return a&deleteHorizonBit != 0 }

// TimestampType says whose clock set a record's timestamp.
type TimestampType int8

// The timestamp types, by their number in the attributes.
const (
	CreateTime    TimestampType = 0
	LogAppendTime TimestampType = 1
)

// String is the name in the topic property message.timestamp.type.
func (t TimestampType) String() string {
	if t == LogAppendTime {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// NoTimestamp marks batches and messages without a time: format 0 has none.
const NoTimestamp int64 = -1

// NoSequence is the base sequence of batches of plain producers.
const NoSequence int32 = -1
