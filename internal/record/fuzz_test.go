package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// goldenEntries gives the fuzzers the small entries of the golden segments.
func goldenEntries(f *testing.F, add func(Entry)) {
	f.Helper()
	files, err := filepath.Glob("testdata/segments/*/*.log")
	if err != nil || len(files) == 0 {
		f.Fatal("no segments", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		n := 0
		for entry, err := range Entries(raw) {
			if err != nil {
				f.Fatal(err)
			}
			if len(entry.Bytes) < 600 && n < 3 {
				add(entry)
				n++
			}
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	goldenEntries(f, func(e Entry) { f.Add(e.Bytes[:min(len(e.Bytes), HeaderSize)]) })
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			if !errors.Is(err, ErrShort) && protocol.CodeOf(err) != protocol.CorruptMessage {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if h.Size < LogOverhead+messageV0LengthMin || h.BaseOffset < 0 || h.LastOffset < h.BaseOffset || h.Magic < 0 || h.Magic > 2 {
			t.Fatalf("%+v cannot be true", h)
		}
		if h.Magic == 2 && h.Size < HeaderSize {
			t.Fatalf("a batch of %d bytes", h.Size)
		}
	})
}

func FuzzBatches(f *testing.F) {
	goldenEntries(f, func(e Entry) { f.Add(append(bytes.Clone(e.Bytes), e.Bytes...)) })
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		for batch, err := range Batches(b) {
			if err != nil {
				break
			}
			if len(batch) != batch.Length() || cap(batch) != len(batch) || len(batch) < HeaderSize || &batch[0] != &b[at] {
				t.Fatalf("batch of %d bytes with %d of capacity at %d", len(batch), cap(batch), at)
			}
			at += len(batch)
		}
		entries := 0
		for entry, err := range Entries(b) {
			if err != nil {
				break
			}
			entries += len(entry.Bytes)
		}
		if entries < at {
			t.Fatalf("%d bytes of batches, %d of entries", at, entries)
		}
	})
}

// FuzzRecords reads damaged entries of all formats and codecs.
func FuzzRecords(f *testing.F) {
	goldenEntries(f, func(e Entry) { f.Add(e.Bytes) })
	d := Decompressor{RecordMax: 1 << 20}
	f.Fuzz(func(t *testing.T, b []byte) {
		for entry, err := range Entries(b) {
			if err != nil {
				return
			}
			entry.ValidCRC()
			bytesSeen := 0
			for r, err := range entry.Records(&d) {
				if err != nil {
					if protocol.CodeOf(err) == protocol.UnknownServerError {
						t.Fatalf("untyped error %v", err)
					}
					break
				}
				for key := range r.Headers.All() {
					bytesSeen += len(key)
				}
				if bytesSeen += len(r.Key) + len(r.Value); bytesSeen > 64<<20 {
					return // a bomb, which others have tested
				}
			}
		}
	})
}

// frameUp gives the fuzzer's bytes a sound frame: without it the CRC would refuse nearly all of them.
func frameUp(raw []byte) []byte {
	if len(raw) < HeaderSize {
		return raw
	}
	b := bytes.Clone(raw)
	binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-LogOverhead))
	b[magicAt] = 2
	Batch(b).sealCRC()
	return b
}

// FuzzValidate holds that what is taken can be read, is sound, and stays so when it is validated again.
func FuzzValidate(f *testing.F) {
	for _, d := range differentials() {
		f.Add(d.raw, uint8(0))
		f.Add(d.raw, uint8(0x1d))
	}
	goldenEntries(f, func(e Entry) { f.Add(e.Bytes, uint8(0x02)) })
	d := Decompressor{RecordMax: 1 << 20}
	f.Fuzz(func(t *testing.T, raw []byte, options uint8) {
		v := ordinaryTopic(&d, nil)
		v.Recompress, v.Codec = options&1 != 0, Codec(options>>2&7%5)
		v.Compacted = options&2 != 0
		if options&0x20 != 0 {
			v.TimestampType = LogAppendTime
		}
		if options&0x40 != 0 {
			v.Origin = FromCoordinator
		}
		framed := frameUp(raw)
		before := bytes.Clone(framed)
		got, err := Validate(framed, v)
		if err != nil {
			if protocol.CodeOf(err) == protocol.UnknownServerError {
				t.Fatalf("untyped error %v", err)
			}
			if !bytes.Equal(framed, before) {
				t.Fatal("a refused batch was changed")
			}
			return
		}
		checkTaken(t, got, &d, v)
	})
}

func checkTaken(t *testing.T, got Validated, d *Decompressor, v Validation) {
	t.Helper()
	b := got.Batch
	if !b.ValidCRC() || b.Length() != len(b) || int(b.Count()) != got.Count {
		t.Fatalf("unsound batch %x", []byte(b))
	}
	n := 0
	for r, err := range b.Records(d) {
		if err != nil {
			t.Fatalf("record %d of a batch that was taken: %v", n, err)
		}
		if v.Origin == FromClient && r.Offset != protocol.Offset(n) {
			t.Fatalf("record %d has offset %d", n, r.Offset)
		}
		if r.Timestamp > got.MaxTimestamp {
			t.Fatalf("record %d has time %d, maximum %d", n, r.Timestamp, got.MaxTimestamp)
		}
		n++
	}
	if n != got.Count {
		t.Fatalf("%d records, not %d", n, got.Count)
	}
	v.TimestampType = CreateTime
	if b.TimestampType() == CreateTime {
		again, err := Validate(bytes.Clone(b), v)
		if err != nil || !bytes.Equal(again.Batch, b) || again.Rewritten {
			t.Fatalf("validated again it is another: %v", err)
		}
	}
}

// FuzzPlainAndCompressed holds that records are judged alike whether they are read in place, as they stream
// by, or materialised.
func FuzzPlainAndCompressed(f *testing.F) {
	for _, d := range differentials() {
		if len(d.raw) > HeaderSize {
			f.Add(d.raw[HeaderSize:], uint8(2), false)
		}
	}
	f.Fuzz(func(t *testing.T, records []byte, count uint8, large bool) {
		if len(records) == 0 || count == 0 {
			return
		}
		build := forged(int(count))
		build.records = records
		if large { // so that records do not fit into a chunk
			build.records = append(rec{value: make([]byte, 2*holdMax)}.encode(), records...)
			build.count, build.lastOffsetDelta = int32(count)+1, int32(count)
		}
		v := ordinaryTopic(nil, nil)
		v.AfterMax, v.MaxMessageBytes = -1, 0
		plain, plainErr := Validate(build.build(), v)
		for _, codec := range []Codec{Snappy, Lz4} {
			build.codec = codec
			packed, err := Validate(build.build(), v)
			if (err == nil) != (plainErr == nil) {
				t.Fatalf("plain: %v, %s: %v", plainErr, codec, err)
			}
			if err == nil && (packed.MaxTimestamp != plain.MaxTimestamp || packed.OffsetOfMaxTimestamp != plain.OffsetOfMaxTimestamp) {
				t.Fatalf("maximum %d at %d, %s: %d at %d", plain.MaxTimestamp, plain.OffsetOfMaxTimestamp, codec, packed.MaxTimestamp, packed.OffsetOfMaxTimestamp)
			}
		}
	})
}

// FuzzDecompress damages payloads of each codec.
func FuzzDecompress(f *testing.F) {
	var c Compressor
	for codec := Gzip; codec <= Zstd; codec++ {
		f.Add(c.Compress(nil, []byte("some text, some text, some text"), codec, 0), uint8(codec))
	}
	d := Decompressor{RecordMax: 1 << 20}
	f.Fuzz(func(t *testing.T, payload []byte, codec uint8) {
		for _, mode := range []openMode{guarded, legacy} {
			got, err := decompress(&d, Codec(codec%4)+Gzip, payload, mode)
			if err == nil && mode == guarded && len(got) > d.RecordMax+ratioMax*len(payload) {
				t.Fatalf("%d bytes became %d", len(payload), len(got))
			}
		}
	})
}
