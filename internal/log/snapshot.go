package log

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A producer snapshot, big-endian, is Kafka's, so that a broker of either kind can start on the other's files:
//
//	 0 version            int16   1
//	 2 CRC                uint32  Castagnoli, over everything from the next field on
//	 6 count              int32
//	10 entries, 46 bytes each, in the order of producer ids:
//	    0 producer id         int64
//	    8 epoch               int16
//	   10 last sequence       int32   -1 where only a marker was written in this epoch
//	   14 last offset         int64   of the last batch, -1 without one
//	   22 offset delta        int32   last offset less first of that batch
//	   26 timestamp           int64   of the last batch or marker, in ms
//	   34 coordinator epoch   int32   of the last marker, -1 before one
//	   38 transaction start   int64   first offset of the open transaction, -1 without one
//
// Its name is the offset that it was taken at: the state before that offset. Of the five batches that are
// remembered in memory only the last is in it; recall.go finds the others. Kafka once left snapshots empty after a
// power cut (KAFKA-9892); here the CRC decides, and one that is not whole is deleted.
//
// Sizes of a producer snapshot's parts:
const (
	snapshotHeaderSize = 10 // version, CRC, count
	snapshotEntrySize  = 46
	snapshotVersion    = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeSnapshot makes the content of a snapshot file; entries are in the order of ids, so that the same
// state gives the same bytes.
func encodeSnapshot(byID map[protocol.ProducerID]*producer) []byte {
	ids := make([]protocol.ProducerID, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	b := make([]byte, 0, snapshotHeaderSize+len(ids)*snapshotEntrySize)
	b = binary.BigEndian.AppendUint16(b, snapshotVersion)
	b = binary.BigEndian.AppendUint32(b, 0) // the CRC, below
	b = binary.BigEndian.AppendUint32(b, uint32(len(ids)))
	for _, id := range ids {
		p := byID[id]
		last := p.last()
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.BigEndian.AppendUint16(b, uint16(p.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(last.lastSequence))
		b = binary.BigEndian.AppendUint64(b, uint64(last.lastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(last.offsetDelta))
		b = binary.BigEndian.AppendUint64(b, uint64(p.lastTimestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(p.coordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.txnStart))
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

// decodeSnapshot reads the content of a snapshot file; anything that is not exactly one is an error.
func decodeSnapshot(b []byte) (map[protocol.ProducerID]*producer, error) {
	if len(b) < snapshotHeaderSize {
		return nil, fmt.Errorf("producer snapshot of %d bytes is cut short", len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return nil, fmt.Errorf("producer snapshot has version %d", v)
	}
	if got, want := crc32.Checksum(b[6:], castagnoli), binary.BigEndian.Uint32(b[2:]); got != want {
		return nil, fmt.Errorf("producer snapshot has CRC %08x, claims %08x", got, want)
	}
	n := int64(int32(binary.BigEndian.Uint32(b[6:])))
	if n < 0 || snapshotHeaderSize+n*snapshotEntrySize != int64(len(b)) {
		return nil, fmt.Errorf("producer snapshot of %d bytes announces %d entries", len(b), n)
	}
	byID := make(map[protocol.ProducerID]*producer, n)
	for b = b[snapshotHeaderSize:]; len(b) > 0; b = b[snapshotEntrySize:] {
		id, p := decodeProducer(b)
		byID[id] = p
	}
	return byID, nil
}

// decodeProducer reads one entry.
func decodeProducer(b []byte) (protocol.ProducerID, *producer) {
	p := newProducer()
	p.restored = true
	p.epoch = protocol.ProducerEpoch(binary.BigEndian.Uint16(b[8:]))
	p.lastTimestamp = int64(binary.BigEndian.Uint64(b[26:]))
	p.coordinatorEpoch = int32(binary.BigEndian.Uint32(b[34:]))
	if first := protocol.Offset(binary.BigEndian.Uint64(b[38:])); first >= 0 {
		p.txnStart = first
	}
	last := batchMeta{
		lastSequence: int32(binary.BigEndian.Uint32(b[10:])),
		lastOffset:   protocol.Offset(binary.BigEndian.Uint64(b[14:])),
		offsetDelta:  int32(binary.BigEndian.Uint32(b[22:])),
		timestamp:    p.lastTimestamp,
	}
	if last.lastOffset >= 0 {
		p.add(last)
	}
	return protocol.ProducerID(binary.BigEndian.Uint64(b)), p
}
