package record

import "encoding/binary"

// Options are those that build a batch like b with other records, as the log cleaner does. Where b has a
// delete horizon it is kept.
func (b Batch) Options() BuilderOptions {
	o := BuilderOptions{
		Codec: b.Codec(), BaseOffset: b.BaseOffset(), LeaderEpoch: b.LeaderEpoch(), ProducerID: b.ProducerID(),
		ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), Idempotent: true,
		Transactional: b.Transactional(), Control: b.Control(), TimestampType: b.TimestampType(),
	}
	if o.TimestampType == LogAppendTime {
		o.AppendTime = b.MaxTimestamp()
	}
	if b.HasDeleteHorizon() {
		o.DeleteHorizon = b.BaseTimestamp()
	}
	return o
}

// Emptied is b without its records: the log cleaner keeps a producer's last batch so, for the sequence numbers
// in its header. Offsets, sequences and the maximum timestamp stay; the codec and a delete horizon go.
// Without it the next batch of that producer would be out of sequence after a restart, when producer state is
// built from the log. A pass that kept nothing but such batches once stopped Kafka's cleaner (KAFKA-7385).
func (b Batch) Emptied() Batch {
	e := make(Batch, HeaderSize)
	copy(e, b)
	binary.BigEndian.PutUint32(e[lengthAt:], batchLengthMin)
	e.setAttributes(b.Attributes() & (logAppendTimeBit | transactionalBit | controlBit))
	none := NoTimestamp
	binary.BigEndian.PutUint64(e[baseTimestampAt:], uint64(none))
	binary.BigEndian.PutUint32(e[countAt:], 0)
	e.sealCRC()
	return e
}
