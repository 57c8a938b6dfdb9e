package broker_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Where fields stand in a batch of format 2.
const (
	atBaseOffset = 0
	atLength     = 8
	atEpoch      = 12
	atMagic      = 16
	atCRC        = 17
	atAttributes = 21
	atLastDelta  = 23
	atProducer   = 43
	atSequence   = 53
	atCount      = 57
	atRecords    = 61
)

// forged is a batch of three records with something done to it, and a CRC that is right for that.
func forged(o record.BuilderOptions, change func(b []byte)) []byte {
	b := batch(o, "one", "two", "three")
	change(b)
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func put16(at int, v int16) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint16(b[at:], uint16(v)) }
}
func put32(at int, v int32) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
}
func put64(at int, v int64) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint64(b[at:], uint64(v)) }
}
func put8(at int, v byte) func([]byte) { return func(b []byte) { b[at] = v } }

// TestBadBatches produces batches that are wrong in one way. Each is refused with Kafka's code, nothing is
// appended, the connection lives, and what others write is in no way touched.
func TestBadBatches(t *testing.T) {
	plain := func() []byte { return batch(record.BuilderOptions{}, "one", "two", "three") }
	flip := func(at int) []byte { b := plain(); b[at] ^= 1; return b }
	now, day := time.Now().UnixMilli(), (24 * time.Hour).Milliseconds()
	at := func(timestamp int64) []byte {
		b := record.NewBuilder(record.BuilderOptions{})
		b.Append(timestamp, nil, []byte("v"))
		return b.Build()
	}
	cases := []struct {
		name  string
		batch []byte
		want  protocol.Code
	}{
		{"BR-115 flipped bit in a value", flip(len(plain()) - 3), protocol.CorruptMessage},
		{"flipped bit in the CRC", flip(atCRC), protocol.CorruptMessage},
		{"flipped bit in the header", flip(atLastDelta), protocol.CorruptMessage},
		{"two batches", append(plain(), plain()...), protocol.InvalidRecord},
		{"nothing", []byte{}, protocol.InvalidRecord},
		{"half a header", plain()[:30], protocol.InvalidRecord},
		{"a header alone", plain()[:atRecords], protocol.InvalidRecord},
		{"a length below the header's", forged(record.BuilderOptions{}, put32(atLength, 10)), protocol.CorruptMessage},
		{"a length of 0", forged(record.BuilderOptions{}, put32(atLength, 0)), protocol.CorruptMessage},
		{"a negative length", forged(record.BuilderOptions{}, put32(atLength, -1)), protocol.CorruptMessage},
		{"a length beyond the end", forged(record.BuilderOptions{}, put32(atLength, 1<<30)), protocol.InvalidRecord},
		{"magic 3", forged(record.BuilderOptions{}, put8(atMagic, 3)), protocol.CorruptMessage},
		{"BR-167 magic 1", forged(record.BuilderOptions{}, put8(atMagic, 1)), protocol.InvalidRecord},
		{"magic 0", forged(record.BuilderOptions{}, put8(atMagic, 0)), protocol.InvalidRecord},
		{"codec 5", forged(record.BuilderOptions{}, put8(atAttributes+1, 5)), protocol.UnsupportedCompressionType},
		{"a codec that it is not", forged(record.BuilderOptions{}, put8(atAttributes+1, 1)), protocol.InvalidRecord},
		{"count too small", forged(record.BuilderOptions{}, put32(atCount, 2)), protocol.InvalidRecord},
		{"count too large", forged(record.BuilderOptions{}, put32(atCount, 4)), protocol.InvalidRecord},
		{"count of the largest integer", forged(record.BuilderOptions{}, put32(atCount, 1<<31-1)), protocol.InvalidRecord},
		{"count 0", forged(record.BuilderOptions{}, put32(atCount, 0)), protocol.InvalidRecord},
		{"negative count", forged(record.BuilderOptions{}, put32(atCount, -1)), protocol.InvalidRecord},
		{"last delta too small", forged(record.BuilderOptions{}, put32(atLastDelta, 1)), protocol.InvalidRecord},
		{"last delta too large", forged(record.BuilderOptions{}, put32(atLastDelta, 7)), protocol.InvalidRecord},
		{"negative last delta", forged(record.BuilderOptions{}, put32(atLastDelta, -3)), protocol.InvalidRecord},
		{"a base offset", forged(record.BuilderOptions{}, put64(atBaseOffset, 5)), protocol.InvalidRecord},
		{"a first record of negative length", forged(record.BuilderOptions{}, put8(atRecords, 1)), protocol.InvalidRecord},
		{"a first record beyond the end", forged(record.BuilderOptions{}, put8(atRecords, 0x7e)), protocol.InvalidRecord},
		{"a negative key length of -2", forged(record.BuilderOptions{}, put8(atRecords+4, 3)), protocol.InvalidRecord},
		{"BR-015 control records", batch(record.BuilderOptions{Control: true, Idempotent: true, ProducerID: 1}, "x"), protocol.InvalidRecord},
		{"control bit alone", forged(record.BuilderOptions{}, put16(atAttributes, 0x20)), protocol.InvalidRecord},
		{"transactional without a transaction", batch(record.BuilderOptions{Transactional: true, Idempotent: true, ProducerID: 1}, "x"), protocol.TransactionalIDAuthorizationFailed},
		{"a producer without an epoch", forged(record.BuilderOptions{}, put64(atProducer, 9)), protocol.InvalidRecord},
		{"an idempotent producer's negative sequence", forged(record.BuilderOptions{Idempotent: true, ProducerID: 9}, put32(atSequence, -2)), protocol.InvalidRecord},
		{"far in the future", at(now + 2*day), protocol.InvalidTimestamp},
		{"microseconds by mistake", at(now * 1000), protocol.InvalidTimestamp},
		{"more than max.message.bytes", batch(record.BuilderOptions{}, strings.Repeat("x", 1<<20)), protocol.MessageTooLarge},
	}
	for _, codec := range []record.Codec{record.Gzip, record.Snappy, record.Lz4, record.Zstd} {
		name := codec.String()
		garbled := forged(record.BuilderOptions{Codec: codec}, func(b []byte) {
			for i := range b[atRecords:] {
				b[atRecords+i] ^= 0x55
			}
		})
		cases = append(cases, []struct {
			name  string
			batch []byte
			want  protocol.Code
		}{
			{name + " garbled", garbled, protocol.InvalidRecord},
			{name + " count too large", forged(record.BuilderOptions{Codec: codec}, put32(atCount, 1000)), protocol.InvalidRecord},
			{name + " of nothing", forged(record.BuilderOptions{Codec: codec}, func(b []byte) { clear(b[atRecords:]) }), protocol.InvalidRecord},
		}...)
	}
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	r := s.start()
	by := newBystander(r)
	by.create("orders", 1)
	c := r.dial()
	for _, one := range cases {
		answer := c.produce("orders", 0, one.batch)
		if got := protocol.Code(answer.ErrorCode); got != one.want {
			t.Errorf("%s: %v, want %v", one.name, got.Name(), one.want.Name())
		}
		if answer.ErrorCode != 0 && answer.BaseOffset != -1 {
			t.Errorf("%s: refused at offset %d", one.name, answer.BaseOffset)
		}
	}
	if end := c.offset("orders", 0, -1); end != 0 {
		t.Errorf("the log ends at %d, nothing was to be appended", end)
	}
	by.logs = logs(t, s.fs, "/data")
	if ok := c.produce("orders", 0, plain()); ok.ErrorCode != 0 || ok.BaseOffset != 0 {
		t.Errorf("a good batch after bad ones: %+v", ok)
	}
	by.alive()
}

// TestOddBatches produces batches that are unusual and right. Records come back as they were, at dense
// offsets.
func TestOddBatches(t *testing.T) {
	three := []consumed{{0, "key", "one"}, {1, "key", "two"}, {2, "key", "three"}}
	nulls := func() []byte {
		b := record.NewBuilder(record.BuilderOptions{})
		b.Append(0, nil, nil)
		b.Append(0, []byte{}, []byte{}, record.RecordHeader{Key: "h", Value: nil}, record.RecordHeader{Key: "", Value: []byte{}})
		return b.Build()
	}
	for _, one := range []struct {
		name  string
		batch []byte
		want  []consumed
	}{
		{"BR-005 leader epoch 0", forged(record.BuilderOptions{}, put32(atEpoch, 0)), three},
		{"leader epoch of the future", forged(record.BuilderOptions{}, put32(atEpoch, 1<<30)), three},
		{"a byte behind the batch", append(batch(record.BuilderOptions{}, "one", "two", "three"), 0), three},
		{"offset deltas that are not dense", forged(record.BuilderOptions{}, put8(atRecords+3, 4)), three},
		{"LogAppendTime of the producer", forged(record.BuilderOptions{}, put16(atAttributes, 8)), three},
		{"unused attributes", forged(record.BuilderOptions{}, put16(atAttributes, 0x7f00)), three},
		{"BR-024 at the time 0, BR-060 null and empty", nulls(), []consumed{{0, "", ""}, {1, "", ""}}},
	} {
		t.Run(one.name, func(t *testing.T) {
			s := &site{t: t, fs: vfs.NewMemory(), memory: true}
			c := s.start().dial()
			c.create("orders", 1)
			if answer := c.produce("orders", 0, one.batch); answer.ErrorCode != 0 {
				t.Fatal(protocol.Code(answer.ErrorCode))
			}
			if got := c.readAll("orders", 0); !slices.Equal(got, one.want) {
				t.Errorf("read back %v, want %v", got, one.want)
			}
			entry := record.Batch(c.fetch("orders", 0, 0).RecordBatches)
			if entry.LeaderEpoch() != 0 || !entry.ValidCRC() {
				t.Errorf("leader epoch %d, CRC valid: %v", entry.LeaderEpoch(), entry.ValidCRC())
			}
			if next := c.produce("orders", 0, batch(record.BuilderOptions{}, "x")); next.BaseOffset != int64(len(one.want)) {
				t.Errorf("the next batch is at %d", next.BaseOffset)
			}
		})
	}
}

// TestNullStaysNull reads BR-060's batch back byte for byte: null is not empty.
func TestNullStaysNull(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	c := s.start().dial()
	c.create("orders", 1)
	b := record.NewBuilder(record.BuilderOptions{})
	b.Append(0, nil, []byte{}, record.RecordHeader{Key: "null"}, record.RecordHeader{Key: "empty", Value: []byte{}})
	b.Append(0, []byte{}, nil)
	sent := b.Build()
	c.produce("orders", 0, slices.Clone(sent))
	if got := c.fetch("orders", 0, 0).RecordBatches; !bytes.Equal(got[atMagic:], sent[atMagic:]) {
		t.Errorf("read %x, sent %x", got, sent)
	}
}

// TestBombs produces batches that are small on the wire and 16 MiB large. They are valid; checking them takes
// memory for a window, not for what comes out.
func TestBombs(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	r := s.start()
	c := r.dial()
	c.create("orders", 1)
	for _, codec := range []record.Codec{record.Gzip, record.Snappy, record.Lz4, record.Zstd} {
		b := record.NewBuilder(record.BuilderOptions{Codec: codec})
		b.Append(time.Now().UnixMilli(), nil, make([]byte, 16<<20))
		bomb := b.Build()
		c.produce("orders", 0, bomb) // fills pools
		var answer kmsg.ProduceResponseTopicPartition
		spent := cost(func() { answer = c.produce("orders", 0, bomb) })
		if answer.ErrorCode != 0 || spent > 8<<20 {
			t.Errorf("%s of %d bytes: %v, %d bytes were allocated", codec, len(bomb), protocol.Code(answer.ErrorCode), spent)
		}
	}
}
