package record

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// clientBatch is n records of size bytes as a client sends them.
func clientBatch(n, size int, codec Codec) Batch {
	w := NewBuilder(BuilderOptions{Codec: codec})
	value := sample(n*size, 9)
	for i := range n {
		w.Append(1_700_000_000_000+int64(i), []byte("key-12345"), value[i*size:(i+1)*size])
	}
	return w.Build()
}

// ordinaryTopic is the validation of a topic with defaults.
func ordinaryTopic(d *Decompressor, c *Compressor) Validation {
	return Validation{
		Partition: protocol.TopicPartition{Topic: "t"}, ProduceVersion: 11, Now: time.UnixMilli(1_700_000_100_000),
		BeforeMax: math.MaxInt64, AfterMax: time.Hour, MaxMessageBytes: 1 << 20, SegmentBytes: 1 << 30,
		Decompressor: d, Compressor: c,
	}
}

func TestValidateAllocatesNothing(t *testing.T) {
	var d Decompressor
	var c Compressor
	v := ordinaryTopic(&d, &c)
	stamped := v
	stamped.TimestampType = LogAppendTime
	for codec := None; codec <= Zstd; codec++ {
		b := clientBatch(1000, 100, codec)
		for _, v := range []Validation{v, stamped} {
			raw := bytes.Clone(b)
			n := testing.AllocsPerRun(50, func() {
				copy(raw, b)
				if _, err := Validate(raw, v); err != nil {
					t.Fatal(err)
				}
			})
			if n > 1 && !raceEnabled || codec == None && n > 0 {
				t.Errorf("%s, %s: %v allocations for 1000 records", codec, v.TimestampType, n)
			}
		}
	}
}

// drawRecords are the records of a property test.
func drawRecords(t *rapid.T) (records []rec) {
	text := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 20), rapid.Map(rapid.IntRange(0, 6_000), func(n int) []byte {
		return sample(n, uint64(n))
	}))
	for range rapid.IntRange(1, 20).Draw(t, "count") {
		r := rec{
			timestampDelta: rapid.Int64Range(-1000, 1000).Draw(t, "time"),
			key:            text.Draw(t, "key"), value: text.Draw(t, "value"),
		}
		headers := rapid.IntRange(0, 3).Draw(t, "headers")
		r.tail = appendVarint(nil, int64(headers))
		for range headers {
			r.tail = appendBytes(r.tail, append([]byte{}, text.Draw(t, "header")...))
			r.tail = appendBytes(r.tail, text.Draw(t, "header value"))
		}
		records = append(records, r)
	}
	return records
}

// TestWhatIsBuiltIsTakenAndReadBack builds, validates with any topic, and reads.
func TestWhatIsBuiltIsTakenAndReadBack(t *testing.T) {
	var d Decompressor
	var c Compressor
	codecs := rapid.SampledFrom([]Codec{None, Gzip, Snappy, Lz4, Zstd})
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		f := forged(len(records))
		f.records, f.codec = nil, codecs.Draw(t, "codec")
		f.max = rapid.Int64().Draw(t, "claimed maximum")
		newest := NoTimestamp
		shuffle := rapid.IntRange(0, 4).Draw(t, "shuffle") == 0
		for i := range records {
			records[i].offsetDelta = int64(i)
			if shuffle {
				records[i].offsetDelta = rapid.Int64Range(-9, 9).Draw(t, "offset")
			}
			f.records = append(f.records, records[i].encode()...)
			newest = max(newest, f.base+records[i].timestampDelta)
		}
		v := ordinaryTopic(&d, &c)
		v.MaxMessageBytes = 0
		v.Recompress, v.Codec = rapid.Bool().Draw(t, "recompress"), codecs.Draw(t, "target")
		v.Level = rapid.IntRange(0, 9).Draw(t, "level")
		got, err := Validate(f.build(), v)
		if err != nil {
			t.Fatal(err)
		}
		want := f.codec
		if v.Recompress {
			want = v.Codec
		}
		if got.Batch.Codec() != want || !got.Batch.ValidCRC() || got.MaxTimestamp != newest || got.Count != len(records) {
			t.Fatalf("%s instead of %s, maximum %d instead of %d", got.Batch.Codec(), want, got.MaxTimestamp, newest)
		}
		compareDrawn(t, got, f.base, records)
	})
}

// compareDrawn reads a validated batch back.
func compareDrawn(t *rapid.T, got Validated, base int64, records []rec) {
	i := 0
	for r, err := range got.Batch.Records(nil) {
		if err != nil {
			t.Fatal(err)
		}
		w := records[i]
		if r.Offset != protocol.Offset(i) || r.Timestamp != base+w.timestampDelta || !bytes.Equal(r.Key, w.key) ||
			!bytes.Equal(r.Value, w.value) || (r.Key == nil) != (w.key == nil) || (r.Value == nil) != (w.value == nil) {
			t.Fatalf("record %d is another", i)
		}
		if !bytes.Equal(append(appendVarint(nil, int64(r.Headers.count)), r.Headers.raw...), w.tail) {
			t.Fatalf("headers of record %d are others", i)
		}
		if got.OffsetOfMaxTimestamp == int32(i) && r.Timestamp != got.MaxTimestamp {
			t.Fatalf("record %d has time %d, not the maximum %d", i, r.Timestamp, got.MaxTimestamp)
		}
		i++
	}
}

func TestRecordsOfABombAreRefused(t *testing.T) {
	for _, codec := range allCodecs {
		f := forged(1)
		f.codec = codec
		f.records = rec{value: make([]byte, 3<<20)}.encode()
		raw := f.build()
		small := Decompressor{RecordMax: 2 << 20}
		v := ordinaryTopic(&small, nil)
		if _, err := Validate(raw, v); protocol.CodeOf(err) != protocol.MessageTooLarge {
			t.Errorf("%s: a record above the limit: %v", codec, err)
		}
		v.Decompressor = nil
		if got, err := Validate(raw, v); err != nil || got.Count != 1 {
			t.Errorf("%s: a large record that streams by: %v", codec, err)
		}
		v.Recompress, v.Codec = true, None
		if _, err := Validate(raw, v); protocol.CodeOf(err) != protocol.MessageTooLarge {
			t.Errorf("%s: above max.message.bytes when stored: %v", codec, err)
		}
	}
}

func TestLargeRecordsAreCheckedAsTheyStreamBy(t *testing.T) {
	large := make([]byte, 2*holdMax)
	for name, damaged := range map[string]rec{
		"headers -1":         {value: large, tail: []byte{1}},
		"bytes behind":       {value: large, tail: []byte{0, 1}},
		"header too long":    {value: large, tail: []byte{2, 2, 'a', 40, 'b'}},
		"header key null":    {value: large, tail: []byte{2, 1, 2, 'b'}},
		"headers too many":   {value: large, tail: []byte{40, 2, 'a', 2, 'b'}},
		"no headers at all":  {value: large, tail: []byte{}},
		"key beyond the end": {key: large, tail: append([]byte{0x80, 0x80, 0x80, 0x80, 1}, 0)},
	} {
		f := forged(1)
		f.codec, f.records = Zstd, damaged.encode()
		if _, err := Validate(f.build(), ordinaryTopic(nil, nil)); protocol.CodeOf(err) != protocol.InvalidRecord {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := forged(2)
	f.codec = Zstd
	f.records = append(rec{value: large, tail: []byte{2, 2, 'a', 1}}.encode(), rec{key: large, offsetDelta: 1, timestampDelta: 5}.encode()...)
	got, err := Validate(f.build(), ordinaryTopic(nil, nil))
	if err != nil || got.MaxTimestamp != f.base+5 || got.OffsetOfMaxTimestamp != 1 {
		t.Errorf("sound large records: %+v, %v", got, err)
	}
}

func TestRecordErrorsAreBounded(t *testing.T) {
	w := NewBuilder(BuilderOptions{})
	for range 5000 {
		w.Append(1_700_000_000_000, nil, nil)
	}
	v := ordinaryTopic(nil, nil)
	v.Compacted = true
	_, err := Validate(w.Build(), v)
	if got := RecordErrorsOf(err); len(got) != RecordErrorsMax || protocol.CodeOf(err) != protocol.InvalidRecord {
		t.Errorf("%d record errors, %v", len(got), err)
	}
}

func TestCoordinatorsMayWriteControlBatches(t *testing.T) {
	b := NewBuilder(BuilderOptions{Control: true, Transactional: true, ProducerID: 3, BaseSequence: -1})
	b.Append(1_700_000_000_000, []byte{0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 0})
	raw := b.Build()
	v := ordinaryTopic(nil, nil)
	if _, err := Validate(bytes.Clone(raw), v); protocol.CodeOf(err) != protocol.InvalidRecord {
		t.Errorf("from a client: %v", err)
	}
	v.Origin, v.Recompress, v.Codec = FromCoordinator, true, Zstd
	got, err := Validate(raw, v)
	if err != nil || got.Rewritten || got.Batch.Codec() != None {
		t.Errorf("from a coordinator: %+v, %v", got, err)
	}
}

func TestFollowersKeepWhatLeadersSend(t *testing.T) {
	f := forged(3)
	f.baseOffset, f.lastOffsetDelta, f.max = 70, 9, 5 // compacted, and a maximum that is not the records'
	raw := f.build()
	v := ordinaryTopic(nil, nil)
	v.Origin, v.Recompress, v.Codec, v.TimestampType = FromLeader, true, Zstd, LogAppendTime
	got, err := Validate(bytes.Clone(raw), v)
	if err != nil || !bytes.Equal(got.Batch, raw) || got.Count != 3 || got.MaxTimestamp != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	bad := bytes.Clone(raw)
	bad[len(bad)-1] ^= 1
	if _, err := Validate(bad, v); protocol.CodeOf(err) != protocol.CorruptMessage {
		t.Errorf("a flipped bit: %v", err)
	}
}

func TestSegmentBytes(t *testing.T) {
	v := ordinaryTopic(nil, nil)
	v.SegmentBytes = 100
	if _, err := Validate(clientBatch(10, 10, None), v); protocol.CodeOf(err) != protocol.RecordListTooLarge {
		t.Errorf("larger than a segment: %v", err)
	}
	var typed *protocol.Error
	if _, err := Validate(nil, v); !errors.As(err, &typed) {
		t.Errorf("%v is not a *protocol.Error", err)
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		for codec := None; codec <= Zstd; codec++ {
			const records = 1000
			batch := clientBatch(records, size, codec)
			b.Run(codec.String()+"/"+itoa(size), func(b *testing.B) {
				var d Decompressor
				v := ordinaryTopic(&d, nil)
				v.MaxMessageBytes = 0
				b.SetBytes(int64(len(batch)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Validate(batch, v); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
			})
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	for _, codec := range []Codec{None, Lz4, Zstd} {
		batch := clientBatch(1000, 100, codec)
		b.Run(codec.String(), func(b *testing.B) {
			var d Decompressor
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range batch.Records(&d) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
		})
	}
}

// TestRefusalsGiveTheirGuardsBack refuses more batches than there are guards; a lost one would end it in a
// deadlock.
func TestRefusalsGiveTheirGuardsBack(t *testing.T) {
	var d Decompressor
	v := ordinaryTopic(&d, nil)
	var bad []Batch
	for _, payload := range [][]byte{{}, {1, 2, 3}, bytes.Repeat([]byte{0}, 100)} {
		for _, codec := range allCodecs {
			f := forged(2)
			f.codec, f.payload = codec, payload
			bad = append(bad, f.build())
		}
	}
	f := forged(2)
	f.codec, f.payload = Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 15 << 3, 7, 7, 7} // a window of 32 MiB
	bad = append(bad, f.build())
	for range guardedMax + 1 {
		for _, b := range bad {
			if _, err := Validate(b, v); protocol.CodeOf(err) != protocol.InvalidRecord {
				t.Fatalf("%s: %v", b.Codec(), err)
			}
			v.Recompress, v.Codec = !v.Recompress, None
		}
	}
}

// TestBuffersAreShared validates and reads in many goroutines that share one Decompressor and Compressor.
func TestBuffersAreShared(t *testing.T) {
	var d Decompressor
	var c Compressor
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			for codec := None; codec <= Zstd; codec++ {
				v := ordinaryTopic(&d, &c)
				v.Recompress, v.Codec = i%2 == 0, Codec(i)%5
				got, err := Validate(clientBatch(50+i, 40, codec), v)
				if err != nil {
					t.Error(err)
					return
				}
				n := 0
				for r, err := range got.Batch.Records(&d) {
					if err != nil || r.Offset != protocol.Offset(n) || string(r.Key) != "key-12345" {
						t.Errorf("%s: record %d: %+v, %v", codec, n, r, err)
						return
					}
					n++
				}
				if n != 50+i {
					t.Errorf("%s: %d records", codec, n)
				}
			}
		})
	}
	done.Wait()
}
