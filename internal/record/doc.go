// Package record knows the bytes of record batches, of message format 2 (Kafka 0.11 and later) and of the
// formats 0 and 1 that older segments hold: it walks, validates, compresses and builds them. It does no I/O.
//
// A batch of format 2, big-endian:
//
//	 0 base offset        int64   the broker's; outside the CRC
//	 8 length             int32   of what follows this field
//	12 leader epoch       int32   the broker's; outside the CRC
//	16 magic              int8    2; at the same place in all formats
//	17 CRC                uint32  Castagnoli, over everything from the next field on
//	21 attributes         int16   bits 0-2 codec, 3 log append time, 4 transactional, 5 control,
//	                              6 base timestamp is the delete horizon
//	23 last offset delta  int32   count-1 as producers write it; kept when compaction takes records out
//	27 base timestamp     int64   of the first record, in ms, or the delete horizon
//	35 max timestamp      int64   of all records, in ms, or the append time
//	43 producer id        int64   -1: a plain producer
//	51 producer epoch     int16
//	53 base sequence      int32
//	57 count              int32
//	61 the records, compressed as a whole if attributes name a codec
//
// A record; varints are zig-zag:
//
//	length varint (of what follows) | attributes int8 (0) | timestamp delta varlong | offset delta varint |
//	key length varint (-1: null), key | value length varint (-1: null), value |
//	headers varint, each: key length varint, key | value length varint (-1: null), value
//
// The formats 0 and 1 are drawn in message.go, the framing of snappy and lz4 in snappy.go and lz4.go.
//
// # Where things are
//
// A batch is a view on its bytes ([Batch]); nothing is decoded that nobody asks for. [ParseHeader] is for who
// has only the first bytes, as when a segment is scanned; [Batches] and [Entries] walk what is in memory, the
// latter with formats 0 and 1 among it; [Batch.Records] walks what is in a batch.
//
// A produced batch passes through [Validate] once, where it is judged and, if its topic says so, stamped with
// the append time or compressed with another codec. The log then sets base offset and leader epoch, which the
// CRC leaves out for that reason, and never looks inside again. Brokers build batches of their own with a
// [Builder]: coordinators their records, [EndTxnMarker] the ends of transactions, the log cleaner what it
// keeps.
//
// # Memory
//
// Records alias the batch, or a buffer that the next record overwrites. Compressed payloads are decompressed
// in chunks, with buffers out of a [Decompressor], which the caller shares between all its batches; nothing
// is allocated for a length that bytes merely claim. A client can send a batch that expands a thousand
// times, and does not get more memory for it than for another.
package record
