package record

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// differential is a batch that was sent to Apache Kafka 4.4 byte by byte. What Kafka answered and stored is in
// testdata/kafka-4.4.jsonl.
type differential struct {
	name string
	// topic is one of differentialTopics, version that of the produce request.
	topic   string
	version int16
	raw     []byte
}

// differentialTopics are the configs of the topics that the batches went to.
func differentialTopics() map[string]map[string]string {
	return map[string]map[string]string{
		"plain":       {},
		"compacted":   {"cleanup.policy": "compact"},
		"append-time": {"message.timestamp.type": "LogAppendTime"},
		"limits":      {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"},
		"both":        {"cleanup.policy": "compact", "message.timestamp.after.max.ms": "3600000"},
		"gzip":        {"compression.type": "gzip"},
		"none":        {"compression.type": "uncompressed", "max.message.bytes": "2000"},
		"small":       {"max.message.bytes": "200"},
	}
}

// differentialNow is far from the clock of any broker, so that limits are clearly met or not.
func differentialNow() time.Time { return time.UnixMilli(1_900_000_000_000) }

// rec is a record to be built wrongly.
type rec struct {
	timestampDelta, offsetDelta int64
	attributes                  byte
	key, value                  []byte
	tail                        []byte // headers; nil is none
}

// encode is the record with its length.
func (r rec) encode() []byte {
	body := []byte{r.attributes}
	body = appendVarint(body, r.timestampDelta)
	body = appendVarint(body, r.offsetDelta)
	body = appendBytes(body, r.key)
	body = appendBytes(body, r.value)
	if r.tail == nil {
		r.tail = []byte{0}
	}
	body = append(body, r.tail...)
	return append(appendVarint(nil, int64(len(body))), body...)
}

// forge is a batch whose parts are set one by one.
type forge struct {
	codec           Codec
	attributes      Attributes
	baseOffset      int64
	lastOffsetDelta int32
	count           int32
	base, max       int64
	producerID      int64
	producerEpoch   int16
	sequence        int32
	payload         []byte // instead of the compressed records
	records         []byte
}

// forged is a sound forge of n records.
func forged(n int) forge {
	f := forge{
		lastOffsetDelta: int32(n - 1), count: int32(n), base: 1_700_000_000_000, max: 1_700_000_000_000 + int64(n-1),
		producerID: -1, producerEpoch: -1, sequence: -1,
	}
	for i := range int64(n) {
		f.records = append(f.records, rec{timestampDelta: i, offsetDelta: i, key: []byte("key"), value: []byte("value")}.encode()...)
	}
	return f
}

func (f forge) build() Batch {
	b := make([]byte, HeaderSize)
	payload := f.payload
	if payload == nil {
		var c Compressor
		payload = c.Compress(nil, f.records, f.codec, 0)
	}
	b = append(b, payload...)
	putHeader(b, &BuilderOptions{
		Codec: f.codec, BaseOffset: protocol.Offset(f.baseOffset), LeaderEpoch: -1, ProducerID: protocol.ProducerID(f.producerID),
		ProducerEpoch: protocol.ProducerEpoch(f.producerEpoch), BaseSequence: f.sequence,
	}, headerTail{f.lastOffsetDelta, f.base, f.max, f.count})
	Batch(b).setAttributes(Batch(b).Attributes() | f.attributes)
	Batch(b).sealCRC()
	return b
}

// with changes a sound batch of two records.
func with(change func(f *forge)) []byte {
	f := forged(2)
	change(&f)
	return f.build()
}

// oneRecord is a batch of one record.
func oneRecord(r rec) []byte {
	f := forged(1)
	f.records = r.encode()
	return f.build()
}

// patch changes bytes of a sound batch without a new CRC.
func patch(at int, value ...byte) []byte {
	b := forged(2).build()
	copy(b[at:], value)
	return b
}

// legacyMessage is a message of format 0 or 1.
func legacyMessage(magic byte) []byte {
	body := []byte{magic, 0}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, 1_700_000_000_000)
	}
	body = append(body, 0, 0, 0, 1, 'k', 0, 0, 0, 1, 'v')
	b := binary.BigEndian.AppendUint64(nil, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)+4))
	b = binary.BigEndian.AppendUint32(b, ieee(body))
	return append(b, body...)
}

func differentials() []differential {
	var all []differential
	add := func(topic, name string, version int16, raw []byte) {
		all = append(all, differential{topic + ": " + name, topic, version, raw})
	}
	addFraming(func(name string, raw []byte) { add("plain", name, 11, raw) })
	addHeaders(func(name string, change func(f *forge)) { add("plain", name, 11, with(change)) })
	addRecords(func(name string, raw []byte) { add("plain", name, 11, raw) })
	addPayloads(func(name string, raw []byte) { add("plain", name, 11, raw) })
	addEncodings(func(name string, raw []byte) { add("plain", name, 11, raw) })
	addTopics(add)
	return all
}

// addFraming: what is around the batch.
func addFraming(add func(name string, raw []byte)) {
	good := []byte(forged(2).build())
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	add("good", good)
	add("nothing", []byte{})
	add("null", nil)
	for _, cut := range []int{1, 11, 12, 16, 17, 20, 60, 61, len(good) - 1} {
		add("cut to "+itoa(cut), good[:cut])
	}
	add("two batches", join(good, good))
	add("then 5 zeros", join(good, make([]byte, 5)))
	add("then 40 zeros", join(good, make([]byte, 40)))
	add("then 40 times 255", join(good, bytes.Repeat([]byte{255}, 40)))
	add("then half a batch", join(good, good[:50]))
	add("wrong CRC", patch(crcAt, 1, 2, 3, 4))
	add("wrong byte", patch(len(good)-2, 'X'))
	for _, length := range []int32{-1, 0, 13, 14, 20, 48, 49, 1 << 30} {
		add("length "+itoa(int(length)), patch(lengthAt, byte(length>>24), byte(length>>16), byte(length>>8), byte(length)))
	}
	for _, magic := range []byte{0, 1, 3, 127, 255} {
		add("magic byte "+itoa(int(magic)), patch(magicAt, magic))
	}
	add("message of format 0", legacyMessage(0))
	add("message of format 1", legacyMessage(1))
	add("batch then message", join(good, legacyMessage(1)))
	add("leader epoch 7", patch(leaderEpochAt, 0, 0, 0, 7))
}

// addHeaders: what the header says.
func addHeaders(add func(name string, change func(f *forge))) {
	add("base offset 5", func(f *forge) { f.baseOffset = 5 })
	add("base offset -1", func(f *forge) { f.baseOffset = -1 })
	add("last offset delta 5", func(f *forge) { f.lastOffsetDelta = 5 })
	add("last offset delta 0", func(f *forge) { f.lastOffsetDelta = 0 })
	add("last offset delta -1", func(f *forge) { f.lastOffsetDelta = -1 })
	add("count 0", func(f *forge) { f.count = 0 })
	add("count 0, delta -1", func(f *forge) { f.count, f.lastOffsetDelta = 0, -1 })
	add("count -1", func(f *forge) { f.count = -1 })
	add("count and delta too large", func(f *forge) { f.count, f.lastOffsetDelta = 3, 2 })
	add("count and delta huge", func(f *forge) { f.count, f.lastOffsetDelta = 1<<31-1, 1<<31-2 })
	add("count and delta too small", func(f *forge) { f.count, f.lastOffsetDelta = 1, 0 })
	add("no records", func(f *forge) { f.records, f.count, f.lastOffsetDelta = nil, 1, 0 })
	add("control", func(f *forge) { f.attributes = controlBit })
	add("control, transactional", func(f *forge) { f.attributes, f.producerID, f.producerEpoch = controlBit|transactionalBit, 5, 0 })
	add("producer without sequence", func(f *forge) { f.producerID, f.producerEpoch = 5, 0 })
	add("producer without epoch", func(f *forge) { f.producerID, f.sequence = 6, 0 })
	add("sequence without producer", func(f *forge) { f.sequence, f.producerEpoch = 3, 0 })
	add("transactional without producer", func(f *forge) { f.attributes = transactionalBit })
	add("producer id -2", func(f *forge) { f.producerID, f.producerEpoch, f.sequence = -2, 0, 0 })
	for _, codec := range []Codec{5, 6, 7} {
		add("codec "+itoa(int(codec)), func(f *forge) { f.payload, f.codec = f.records, codec })
	}
	add("delete horizon", func(f *forge) { f.attributes = deleteHorizonBit })
	add("attribute bit 7", func(f *forge) { f.attributes = 1 << 7 })
	add("attribute bit 15", func(f *forge) { f.attributes = -1 << 15 })
	add("max timestamp too high", func(f *forge) { f.max += 1000 })
	add("max timestamp too low", func(f *forge) { f.max = 5 })
	add("max timestamp -1", func(f *forge) { f.max = -1 })
	add("max timestamp wrong, delete horizon", func(f *forge) { f.max, f.attributes = 5, deleteHorizonBit|1<<7 })
	add("timestamps -1", func(f *forge) {
		f.base, f.max = -1, -1
		f.records = append(rec{offsetDelta: 0}.encode(), rec{offsetDelta: 1}.encode()...)
	})
	add("timestamps below -1", func(f *forge) { f.base, f.max = -7, -6 })
	add("timestamps overflow", func(f *forge) { f.base, f.max = 1<<63-1, 1<<63-1 })
	add("log append time", func(f *forge) { f.attributes = logAppendTimeBit })
	add("log append time, other maximum", func(f *forge) { f.attributes, f.max = logAppendTimeBit, f.max+1000 })
	add("log append time, no timestamp", func(f *forge) { f.attributes, f.max = logAppendTimeBit, -1 })
}

// addRecords: what the records say.
func addRecords(add func(name string, raw []byte)) {
	offsets := func(codec Codec, deltas ...int64) []byte {
		f := forged(len(deltas))
		f.codec, f.records = codec, nil
		for _, delta := range deltas {
			f.records = append(f.records, rec{offsetDelta: delta, key: []byte("key"), value: []byte("value")}.encode()...)
		}
		f.max = f.base
		return f.build()
	}
	for _, codec := range []Codec{None, Gzip} {
		name := codec.String() + ": "
		add(name+"offsets 0 0 0", offsets(codec, 0, 0, 0))
		add(name+"offsets 2 1 0", offsets(codec, 2, 1, 0))
		add(name+"offsets 0 5 9", offsets(codec, 0, 5, 9))
		add(name+"offsets -1 0 1", offsets(codec, -1, 0, 1))
		add(name+"offsets 1 2 3", offsets(codec, 1, 2, 3))
	}
	add("record attributes 255", oneRecord(rec{attributes: 255}))
	add("null key, null value", oneRecord(rec{}))
	add("empty key, empty value", oneRecord(rec{key: []byte{}, value: []byte{}}))
	add("headers", oneRecord(rec{tail: []byte{4, 2, 'a', 2, 'b', 2, 'a', 1}}))
	add("empty header key", oneRecord(rec{tail: []byte{2, 0, 1}}))
	add("header key is not UTF-8", oneRecord(rec{tail: []byte{2, 2, 255, 1}}))
	add("headers -1", oneRecord(rec{tail: []byte{1}}))
	add("headers too many", oneRecord(rec{tail: []byte{4, 2, 'a', 1}}))
	add("headers a million", oneRecord(rec{tail: []byte{0x80, 0x89, 0x7a}}))
	add("header key null", oneRecord(rec{tail: []byte{2, 1, 2, 'b'}}))
	add("header value too long", oneRecord(rec{tail: []byte{2, 2, 'a', 40, 'b'}}))
	add("header value length -2", oneRecord(rec{tail: []byte{2, 2, 'a', 3}}))
	add("bytes behind the headers", oneRecord(rec{tail: []byte{0, 9, 9}}))
	raw := func(records ...byte) []byte {
		f := forged(1)
		f.records = records
		return f.build()
	}
	add("record length 0", raw(0))
	add("record length -1", raw(1))
	add("record length too long", raw(40, 0, 0, 0, 1, 1, 0))
	add("record length too short", raw(6, 0, 0, 0, 1, 1, 0))
	add("record length without end", raw(255, 255, 255, 255, 255, 255))
	add("key too long", raw(12, 0, 0, 0, 80, 1, 0))
	add("key length -2", raw(12, 0, 0, 0, 3, 1, 0))
	add("value too long", raw(12, 0, 0, 0, 1, 80, 0))
	add("no headers field", raw(10, 0, 0, 0, 1, 1))
	add("bytes behind the records", append(raw(12, 0, 0, 0, 1, 1, 0), nil...))
	f := forged(1)
	f.records = append(f.records, 1, 2, 3)
	add("garbage behind the records", f.build())
}

// addPayloads: what is compressed.
func addPayloads(add func(name string, raw []byte)) {
	for _, codec := range allCodecs {
		name := codec.String() + ": "
		good := forged(2)
		good.codec = codec
		add(name+"good", good.build())
		var c Compressor
		packed := c.Compress(nil, good.records, codec, 0)
		forgePayload := func(payload []byte) []byte {
			f := good
			f.payload = payload
			return f.build()
		}
		add(name+"not compressed", forgePayload(good.records))
		add(name+"empty", forgePayload([]byte{}))
		add(name+"cut", forgePayload(packed[:len(packed)-3]))
		add(name+"trailing bytes", forgePayload(append(bytes.Clone(packed), "tail"...)))
		broken := bytes.Clone(packed)
		broken[len(broken)/2] ^= 0xff
		add(name+"broken", forgePayload(broken))
		more := good
		more.count, more.lastOffsetDelta = 3, 2
		add(name+"fewer records", more.build())
		fewer := good
		fewer.count, fewer.lastOffsetDelta = 1, 0
		add(name+"more records", fewer.build())
		damaged := good
		damaged.records = append(rec{}.encode(), rec{offsetDelta: 1, tail: []byte{1}}.encode()...)
		add(name+"headers -1", damaged.build())
		damaged.records = append(rec{}.encode(), rec{offsetDelta: 1, tail: []byte{0, 9, 9}}.encode()...)
		add(name+"bytes behind the headers", damaged.build())
		damaged.records = append(rec{}.encode(), 12, 0, 0, 2, 80, 1, 0)
		add(name+"key too long", damaged.build())
		damaged.records = append(rec{}.encode(), 14, 0, 0, 2, 1, 1, 0)
		add(name+"record length too long", damaged.build())
		damaged.records = append(rec{}.encode(), 1)
		add(name+"record length -1", damaged.build())
	}
}

// addEncodings: ways to write a payload that not everybody knows.
func addEncodings(add func(name string, raw []byte)) {
	var c Compressor
	good := forged(2)
	half := len(good.records) / 2
	payload := func(codec Codec, payload []byte) []byte {
		f := good
		f.codec, f.payload = codec, payload
		return f.build()
	}
	add("snappy: bare", payload(Snappy, snappy.Encode(nil, good.records)))
	repeats := append(binary.AppendUvarint(nil, uint64(len(good.records))), byte(len(good.records)-9)<<2)
	repeats = append(append(repeats, good.records[:len(good.records)-8]...), 0x11, 0x00)
	add("snappy: offset 0", payload(Snappy, repeats))
	frame := c.Compress(nil, good.records, Lz4, 0)
	patched := func(at int, value byte) []byte {
		b := bytes.Clone(frame)
		b[at] = value
		return b
	}
	add("lz4: wrong header checksum", payload(Lz4, patched(6, 0)))
	linked := patched(4, 0x40)
	linked[6] = byte(xxh32(linked[4:6]) >> 8)
	add("lz4: linked blocks", payload(Lz4, linked))
	summed := append(patched(4, 0x64), 1, 2, 3, 4)
	summed[6] = byte(xxh32(summed[4:6]) >> 8)
	add("lz4: wrong content checksum", payload(Lz4, summed))
	add("lz4: no end mark", payload(Lz4, frame[:len(frame)-4]))
	add("lz4: two frames", payload(Lz4, append(c.Compress(nil, good.records[:half], Lz4, 0), c.Compress(nil, good.records[half:], Lz4, 0)...)))
	add("gzip: two members", payload(Gzip, append(c.Compress(nil, good.records[:half], Gzip, 0), c.Compress(nil, good.records[half:], Gzip, 0)...)))
	add("zstd: two frames", payload(Zstd, append(c.Compress(nil, good.records[:half], Zstd, 0), c.Compress(nil, good.records[half:], Zstd, 0)...)))
	for _, exponent := range []byte{13, 17, 18} { // windows of 8, 128 and 256 MiB
		block := uint32(len(good.records))<<3 | 1 // the last, stored
		raw := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3}, byte(block), byte(block>>8), byte(block>>16))
		add("zstd: window of 2 to the "+itoa(int(exponent)+10), payload(Zstd, append(raw, good.records...)))
	}
}

// addTopics: what topics ask for.
func addTopics(add func(topic, name string, version int16, raw []byte)) {
	zstd := with(func(f *forge) { f.codec = Zstd })
	for _, version := range []int16{3, 6, 7} {
		add("plain", "zstd by Produce "+itoa(int(version)), version, zstd)
	}
	nullKeys := with(func(f *forge) {
		f.records = append(rec{value: []byte("v")}.encode(), rec{offsetDelta: 1, timestampDelta: 1, key: []byte("k")}.encode()...)
	})
	add("compacted", "good", 11, forged(2).build())
	add("compacted", "null key", 11, nullKeys)
	gzipped := with(func(f *forge) {
		f.codec = Gzip
		f.records = append(rec{value: []byte("v")}.encode(), rec{offsetDelta: 1, timestampDelta: 1}.encode()...)
	})
	add("compacted", "two null keys, gzip", 11, gzipped)
	late := with(func(f *forge) { f.base, f.max = 1_600_000_000_000, 1_600_000_000_001 })
	add("limits", "too old", 11, late)
	add("limits", "too new", 11, with(func(f *forge) { f.base, f.max = 1<<50, 1<<50+1 }))
	add("limits", "no timestamp", 11, with(func(f *forge) {
		f.base, f.max = -1, -1
		f.records = append(rec{}.encode(), rec{offsetDelta: 1}.encode()...)
	}))
	add("limits", "too old, gzip", 11, with(func(f *forge) { f.base, f.max, f.codec = 1_600_000_000_000, 1_600_000_000_001, Gzip }))
	add("both", "null key and too new", 11, with(func(f *forge) {
		f.base, f.max = 1_600_000_000_000, 1<<50
		f.records = append(rec{value: []byte("v")}.encode(), rec{offsetDelta: 1, timestampDelta: 1 << 50, key: []byte("k")}.encode()...)
	}))
	add("append-time", "good", 11, forged(2).build())
	add("append-time", "gzip", 11, with(func(f *forge) { f.codec = Gzip }))
	add("append-time", "log append time", 11, with(func(f *forge) { f.attributes = logAppendTimeBit }))
	add("append-time", "log append time, gzip", 11, with(func(f *forge) { f.attributes, f.codec = logAppendTimeBit, Gzip }))
	add("append-time", "too old", 11, late)
	for _, codec := range []Codec{None, Gzip, Zstd} {
		add("gzip", codec.String(), 11, with(func(f *forge) { f.codec = codec }))
		add("none", codec.String(), 11, with(func(f *forge) { f.codec = codec }))
	}
	add("gzip", "idempotent", 11, with(func(f *forge) { f.producerID, f.producerEpoch, f.sequence = 8, 0, 0 }))
	add("gzip", "delete horizon", 11, with(func(f *forge) { f.attributes = deleteHorizonBit | 1<<7 }))
	add("gzip", "max timestamp too high", 11, with(func(f *forge) { f.max += 1000 }))
	long := func(n int, codec Codec) []byte {
		f := forged(1)
		f.codec = codec
		f.records = rec{value: make([]byte, n)}.encode()
		return f.build()
	}
	add("small", "201 bytes", 11, long(131, None))
	add("small", "200 bytes", 11, long(130, None))
	add("small", "too large when read", 11, long(1000, Gzip))
	add("small", "too large, wrong CRC", 11, append(long(400, None)[:crcAt], long(401, None)[crcAt:]...))
	add("none", "too large when stored", 11, long(5000, Gzip))
}

func itoa(n int) string { return strconv.Itoa(n) }

func ieee(b []byte) uint32 { return crc32.ChecksumIEEE(b) }
