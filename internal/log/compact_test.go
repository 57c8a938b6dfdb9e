package log

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// compactable are options for a compacted topic; now is the clock that they read.
func compactable(fs vfs.FS, now *time.Time) Options {
	o := testOptions(fs)
	o.Config.Compact, o.Config.Delete = true, false
	o.Config.SegmentBytes = 1024
	o.Now = func() time.Time { return *now }
	return o
}

// keyed is a batch of records "key=value"; "key" alone is a tombstone.
func keyed(o record.BuilderOptions, records ...string) record.Batch {
	b := record.NewBuilder(o)
	for _, r := range records {
		key, value, ok := strings.Cut(r, "=")
		var v []byte
		if ok {
			v = []byte(value)
		}
		b.Append(testTime.UnixMilli(), []byte(key), v, record.RecordHeader{Key: "of", Value: []byte(r)})
	}
	return b.Build()
}

func compact(t testing.TB, l *Log) CompactStats {
	t.Helper()
	l.SetHighWatermark(l.EndOffset())
	stats, err := l.Compact(context.Background(), CompactOptions{Buffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// entries prints the records and empty batches of a log, one a line.
func entries(t testing.TB, l *Log) []string {
	t.Helper()
	var out []string
	for e, err := range record.Entries(readBytes(t, l, l.StartOffset(), everything)) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.ValidCRC() {
			t.Fatalf("wrong CRC at %d", e.BaseOffset)
		}
		if e.Count == 0 {
			out = append(out, fmt.Sprintf("%d-%d empty, producer %d, sequence %d-%d", e.BaseOffset, e.LastOffset, e.ProducerID, e.BaseSequence, e.LastSequence()))
		}
		for r, err := range e.Records(nil) {
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%d %s", r.Offset, r.Key)
			switch {
			case e.Control():
				m, _, err := record.ParseEndTxnMarker(r)
				if err != nil {
					t.Fatal(err)
				}
				text = fmt.Sprintf("%d %s", r.Offset, m.Type)
			case r.Value != nil:
				text += "=" + string(r.Value)
			}
			for _, of := range r.Headers.All() {
				if want := strings.TrimPrefix(text, fmt.Sprintf("%d ", r.Offset)); string(of) != want {
					t.Fatalf("record %q has the header of %q (BR-053)", want, of)
				}
			}
			out = append(out, text)
		}
	}
	return out
}

func expectEntries(t testing.TB, l *Log, want ...string) {
	t.Helper()
	if got := entries(t, l); !slices.Equal(got, want) {
		t.Fatalf("log holds\n %s\nexpected\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

func mustRoll(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
}

func TestCompactKeepsTheNewest(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.Lz4, record.Zstd} {
		now := testTime
		fs := vfs.NewMemory()
		l := open(t, compactable(fs, &now))
		o := record.BuilderOptions{Codec: codec}
		mustAppend(t, l, keyed(o, "a=1", "b=1", "c=1"), 0)
		mustAppend(t, l, keyed(o, "a=2"), 0)
		mustRoll(t, l)
		mustAppend(t, l, keyed(o, "d=1", "c"), 0)
		mustAppend(t, l, keyed(o, "b=", "e=1"), 0) // an empty value is no tombstone (BR-060)
		mustRoll(t, l)
		mustAppend(t, l, keyed(o, "e=2"), 0) // the active segment is not looked at
		stats := compact(t, l)
		if stats.SegmentsBefore != 2 || stats.SegmentsAfter != 1 || stats.RecordsRead != 8 || stats.RecordsWritten != 5 || stats.To != 8 {
			t.Fatalf("%s: %+v", codec, stats)
		}
		want := []string{"3 a=2", "4 d=1", "5 c", "6 b=", "7 e=1", "8 e=2"}
		expectEntries(t, l, want...)
		if n := len(l.Segments()); n != 2 {
			t.Fatalf("%d segments", n)
		}
		for offset := protocol.Offset(0); offset <= l.EndOffset(); offset++ {
			if _, err := l.Read(offset, 100, everything, false); err != nil {
				t.Fatalf("%s: read at %d: %v", codec, offset, err)
			}
		}
		// The same is on disk.
		l.CloseUnclean()
		o2 := compactable(fs, &now)
		o2.Trust, o2.RecoveryPoint = Scan, 0
		l = open(t, o2)
		expectEntries(t, l, want...)
		if l.EndOffset() != 9 {
			t.Fatalf("end %d", l.EndOffset())
		}
	}
}

// TestCompactTombstones: BR-168, a tombstone goes delete.retention.ms after the first pass that met it.
func TestCompactTombstones(t *testing.T) {
	now := testTime
	l := open(t, compactable(vfs.NewMemory(), &now))
	mustAppend(t, l, keyed(record.BuilderOptions{}, "a=1", "b=1"), 0)
	mustAppend(t, l, keyed(record.BuilderOptions{}, "a"), 0)
	mustAppend(t, l, keyed(record.BuilderOptions{}, "z=1"), 0)
	mustRoll(t, l)
	compact(t, l)
	expectEntries(t, l, "1 b=1", "2 a", "3 z=1")
	now = now.Add(24*time.Hour - time.Millisecond)
	compact(t, l)
	expectEntries(t, l, "1 b=1", "2 a", "3 z=1")
	now = now.Add(time.Millisecond)
	compact(t, l)
	expectEntries(t, l, "1 b=1", "3 z=1")
}

// TestCompactProducers: the last batch of each producer stays, emptied, for its sequence (BR-119).
func TestCompactProducers(t *testing.T) {
	now := testTime
	fs := vfs.NewMemory()
	l := open(t, compactable(fs, &now))
	batch := func(id protocol.ProducerID, sequence int32, records ...string) {
		mustAppend(t, l, keyed(record.BuilderOptions{Idempotent: true, ProducerID: id, BaseSequence: sequence}, records...), 0)
	}
	batch(1, 0, "a=1")
	batch(1, 1, "a=2", "b=2")
	batch(2, 0, "a=3", "b=3")
	mustRoll(t, l)
	compact(t, l)
	want := []string{"1-2 empty, producer 1, sequence 1-2", "3 a=3", "4 b=3"}
	expectEntries(t, l, want...)
	compact(t, l)
	expectEntries(t, l, want...)
	for n := len(l.guarded.snapshots); n > 0; n = len(l.guarded.snapshots) {
		if err := l.removeSnapshot(l.guarded.snapshots[0]); err != nil {
			t.Fatal(err)
		}
	}
	l.CloseUnclean()
	o := compactable(fs, &now)
	o.Trust, o.RecoveryPoint = Scan, 0
	l = open(t, o)
	if done := mustAppend(t, l, keyed(record.BuilderOptions{Idempotent: true, ProducerID: 1, BaseSequence: 1}, "a=2", "b=2"), 0); !done.Duplicate || done.First != 1 {
		t.Fatalf("producer 1 is forgotten: %+v", done)
	}
	// Written again, the old batch may go.
	batch(1, 3, "c=4")
	mustRoll(t, l)
	compact(t, l)
	expectEntries(t, l, "3 a=3", "4 b=3", "5 c=4")
}

func TestCompactTransactions(t *testing.T) {
	now := testTime
	l := open(t, compactable(vfs.NewMemory(), &now))
	sequence := map[protocol.ProducerID]int32{}
	batch := func(id protocol.ProducerID, records ...string) {
		mustAppend(t, l, keyed(record.BuilderOptions{Transactional: true, ProducerID: id, BaseSequence: sequence[id]}, records...), 0)
		sequence[id] += int32(len(records))
	}
	batch(1, "a=1", "b=1")                                     // 0-1, aborted
	mustAppend(t, l, marker(1, 0, false, 0), 0)                // 2
	batch(2, "a=2", "\x00\x00\x00\x00=user")                   // 3-4, committed; a key like an abort marker's (BR-080)
	mustAppend(t, l, marker(2, 0, true, 0), 0)                 // 5
	batch(1, "c=3")                                            // 6, committed, will be overwritten
	mustAppend(t, l, marker(1, 0, true, 0), 0)                 // 7
	mustAppend(t, l, keyed(record.BuilderOptions{}, "c=4"), 0) // 8
	batch(3, "d=5")                                            // 9, open
	mustRoll(t, l)
	mustAppend(t, l, keyed(record.BuilderOptions{}, "z=1"), 0) // 10
	compact(t, l)
	if got := l.CleanedTo(); got != 0 {
		t.Fatalf("cleaned to %d, beyond the open transaction's segment", got)
	}
	mustAppend(t, l, marker(3, 0, true, 0), 0) // 11
	mustRoll(t, l)
	// The marker of an aborted transaction goes only after a pass that finds none of its records.
	compact(t, l)
	user := "4 \x00\x00\x00\x00=user"
	expectEntries(t, l, "2 ABORT", "3 a=2", user, "5 COMMIT",
		"6-6 empty, producer 1, sequence 2-2", "7 COMMIT", "8 c=4", "9 d=5", "10 z=1", "11 COMMIT")
	if got, err := l.Aborted(0, 12); err != nil || len(got) != 1 || got[0] != (AbortedTransaction{1, 0}) {
		t.Fatalf("aborted %v %v", got, err)
	}
	compact(t, l) // sets the horizon of the markers of empty transactions
	now = now.Add(25 * time.Hour)
	compact(t, l)
	expectEntries(t, l, "3 a=2", user, "5 COMMIT",
		"6-6 empty, producer 1, sequence 2-2", "7 COMMIT", "8 c=4", "9 d=5", "10 z=1", "11 COMMIT")
	if got, err := l.Aborted(0, 12); err != nil || len(got) != 0 {
		t.Fatalf("aborted %v %v", got, err)
	}
}

// TestCompactBounds: BR-185 and min.compaction.lag.ms.
func TestCompactBounds(t *testing.T) {
	now := testTime
	l := open(t, compactable(vfs.NewMemory(), &now))
	for i := range 6 {
		mustAppend(t, l, keyed(record.BuilderOptions{}, "a="+fmt.Sprint(i)), 0)
		mustRoll(t, l)
	}
	at := func() protocol.Offset {
		c, err := l.CleanableRatio(now)
		if err != nil {
			t.Fatal(err)
		}
		return c.To
	}
	for _, watermark := range []protocol.Offset{0, 1, 3, 6} {
		l.SetHighWatermark(watermark)
		if got := at(); got != watermark {
			t.Fatalf("watermark %d: cleanable to %d", watermark, got)
		}
	}
	c := l.Config()
	c.MinCompactionLag = time.Hour
	l.SetConfig(c)
	if got := at(); got != 0 {
		t.Fatalf("cleanable to %d within the lag", got)
	}
	now = now.Add(time.Hour)
	if got := at(); got != 6 {
		t.Fatalf("cleanable to %d after the lag", got)
	}
	c.MinCompactionLag, c.MaxCompactionLag = 0, 30*time.Minute
	l.SetConfig(c)
	if got, err := l.CleanableRatio(now); err != nil || !got.Overdue || got.Ratio != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	compact(t, l)
	if got, err := l.CleanableRatio(now); err != nil || got.Overdue || got.Ratio != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	expectEntries(t, l, "5 a=5")
}

// TestCompactModel compacts random logs with a small map, and holds every pass against a model: the newest
// value of each key is there, offsets do not move, and nothing that was not written appears.
func TestCompactModel(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 0))
		small := []int64{1, 400}[seed%2] // both are of 16 slots; with 1 there is no set of offsets
		now := testTime
		fs := vfs.NewMemory()
		o := compactable(fs, &now)
		l := open(t, o)
		written := map[string]bool{}
		newest := map[string]string{}
		for range 20 {
			for range rng.IntN(20) {
				var records []string
				for range 1 + rng.IntN(6) {
					key := fmt.Sprintf("k%d", rng.IntN(40))
					text := fmt.Sprintf("%s=%d", key, l.EndOffset()+protocol.Offset(len(records)))
					records = append(records, text)
					line := fmt.Sprintf("%d %s", l.EndOffset()+protocol.Offset(len(records))-1, text)
					written[line], newest[key] = true, line
				}
				mustAppend(t, l, keyed(record.BuilderOptions{Codec: record.Codec(rng.IntN(2) * int(record.Lz4))}, records...), 0)
			}
			l.SetHighWatermark(l.EndOffset())
			if _, err := l.Compact(context.Background(), CompactOptions{Buffer: small}); err != nil {
				t.Fatal(err)
			}
			checkCompacted(t, l, written, newest)
			if rng.IntN(4) == 0 {
				o.Trust, o.HighWatermark, o.CleanedTo = Clean, l.HighWatermark(), l.CleanedTo()
				if err := l.CloseClean(); err != nil {
					t.Fatal(err)
				}
				l = open(t, o)
			}
		}
	}
}

// TestCompactRefusesWrongOffsets: a base offset is in no CRC. One that a disk has changed would have the cleaner take records
// for known that it has not seen.
func TestCompactRefusesWrongOffsets(t *testing.T) {
	for _, wrong := range []protocol.Offset{0, 3, 5000, 1 << 40} { // instead of 1
		now := testTime
		fs := vfs.NewMemory()
		l := open(t, compactable(fs, &now))
		first := keyed(record.BuilderOptions{}, "a=1")
		mustAppend(t, l, first, 0)
		mustAppend(t, l, keyed(record.BuilderOptions{}, "b=1"), 0)
		mustAppend(t, l, keyed(record.BuilderOptions{}, "c=1"), 0)
		mustRoll(t, l)
		file, err := fs.OpenFile(l.path(0, logSuffix), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(wrong)), int64(len(first))); err != nil {
			t.Fatal(err)
		}
		file.Close()
		l.SetHighWatermark(l.EndOffset())
		var damage *DamageError
		if _, err := l.Compact(context.Background(), CompactOptions{Buffer: 1 << 20}); !errors.As(err, &damage) {
			t.Errorf("offset %d instead of 1: %v", wrong, err)
		}
		if n := l.Size(); n < 3*int64(len(first)) {
			t.Errorf("offset %d instead of 1: %d bytes are left", wrong, n)
		}
	}
}

// TestCompactOffsetsThatDoNotRise: the map of keys gets full at a record whose offset is below that of the one before. It is
// not known to the map, and stays.
func TestCompactOffsetsThatDoNotRise(t *testing.T) {
	now := testTime
	l := open(t, compactable(vfs.NewMemory(), &now))
	var want []string
	for i := range 12 {
		text := fmt.Sprintf("k%d=1", i)
		mustAppend(t, l, keyed(record.BuilderOptions{}, text), 0)
		want = append(want, fmt.Sprintf("%d %s", i, text))
	}
	b := keyed(record.BuilderOptions{}, "x=1", "y=1", "z=1")
	// Each record is: length, attributes, timestamp delta, offset delta (0, 2, 4 for 0, 1, 2) and the rest, all of a byte each.
	second := record.HeaderSize + 1 + int(b[record.HeaderSize])/2
	third := second + 1 + int(b[second])/2
	b[second+3], b[third+3] = b[third+3], b[second+3]
	binary.BigEndian.PutUint32(b[batchCRCAt:], crc32.Checksum(b[batchCRCFrom:], castagnoli))
	mustAppend(t, l, b, 0)
	mustRoll(t, l)
	l.SetHighWatermark(l.EndOffset())
	if _, err := l.Compact(context.Background(), CompactOptions{Buffer: 400}); err != nil { // 16 slots, of which 14 are taken
		t.Fatal(err)
	}
	expectEntries(t, l, append(want, "12 x=1", "14 y=1", "13 z=1")...)
}

// TestCompactByOffsetsOrKeys compacts the same random histories, with transactions, tombstones and producers, by the set of
// offsets that stay and, where a set would be too large, by the map of keys alone: they come to the same log.
func TestCompactByOffsetsOrKeys(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		now := testTime
		logs := []*Log{open(t, compactable(vfs.NewMemory(), &now)), open(t, compactable(vfs.NewMemory(), &now))}
		write := func(b record.Batch) {
			for _, l := range logs {
				mustAppend(t, l, slices.Clone(b), 0)
			}
		}
		sequence := map[protocol.ProducerID]int32{}
		begun := map[protocol.ProducerID]bool{}
		end := func(id protocol.ProducerID) {
			if begun[id] {
				write(marker(id, 0, rng.IntN(2) == 0, 0))
				delete(begun, id)
			}
		}
		for range 8 {
			for range 1 + rng.IntN(20) {
				var o record.BuilderOptions
				records := make([]string, 1+rng.IntN(4))
				for i := range records {
					if records[i] = fmt.Sprintf("k%d", rng.IntN(9)); rng.IntN(4) > 0 {
						records[i] += fmt.Sprintf("=%d", rng.Int())
					}
				}
				if id := protocol.ProducerID(rng.IntN(5)); id > 2 { // of 1 and 2 transactions, of 3 and 4 none
					o = record.BuilderOptions{Idempotent: true, ProducerID: id, BaseSequence: sequence[id]}
					sequence[id] += int32(len(records))
				} else if id > 0 {
					o = record.BuilderOptions{Transactional: true, ProducerID: id, BaseSequence: sequence[id]}
					sequence[id] += int32(len(records))
					begun[id] = true
				}
				write(keyed(o, records...))
				end(protocol.ProducerID(1 + rng.IntN(6)))
			}
			end(1)
			end(2)
			now = now.Add(time.Duration(rng.IntN(30)) * time.Hour)
			var stats [2]CompactStats
			for i, buffer := range []int64{1 << 20, 1} {
				mustRoll(t, logs[i])
				logs[i].SetHighWatermark(logs[i].EndOffset())
				var err error
				if stats[i], err = logs[i].Compact(context.Background(), CompactOptions{Buffer: buffer}); err != nil {
					t.Fatal(err)
				}
			}
			if stats[0] != stats[1] {
				t.Fatalf("seed %d: by offsets %+v, by keys %+v", seed, stats[0], stats[1])
			}
			expectEntries(t, logs[0], entries(t, logs[1])...)
		}
	}
}

func checkCompacted(t *testing.T, l *Log, written map[string]bool, newest map[string]string) {
	t.Helper()
	got := entries(t, l)
	there := map[string]bool{}
	for _, line := range got {
		if strings.Contains(line, "empty") {
			continue
		}
		if !written[line] {
			t.Fatalf("%q was never written", line)
		}
		there[line] = true
	}
	for _, line := range newest {
		if !there[line] {
			t.Fatalf("%q is gone", line)
		}
	}
}

func TestOffsetSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		from := protocol.Offset(rng.IntN(1000))
		to := from + 1 + protocol.Offset(rng.IntN(300))
		within := func() (first, last protocol.Offset) {
			first = from + protocol.Offset(rng.Int64N(int64(to-from)))
			return first, first + protocol.Offset(rng.Int64N(int64(to-first)))
		}
		s, want := newOffsetSet(from, to), map[protocol.Offset]bool{}
		for range rng.IntN(6) {
			first, last := within()
			last = min(last, first+protocol.Offset(rng.IntN(20)))
			s.add(first, last)
			for o := first; o <= last; o++ {
				want[o] = true
			}
		}
		for range 50 {
			first, last := within()
			any := false
			for o := first; o <= last; o++ {
				any = any || want[o]
			}
			if s.has(first, last) != any {
				t.Fatalf("from %d to %d: %v", first, last, !any)
			}
		}
	}
}

func TestOffsetMap(t *testing.T) {
	m := newOffsetMap(1 << 20)
	n := 0
	for m.put(fmt.Appendf(nil, "key %d", n), protocol.Offset(n)) {
		n++
	}
	if most := (1 << 15) * 7 / 8; n != most {
		t.Fatalf("%d keys in 1 MiB, expected %d", n, most)
	}
	for i := range n {
		if got := m.get(fmt.Appendf(nil, "key %d", i)); got != protocol.Offset(i) {
			t.Fatalf("key %d is at %d", i, got)
		}
	}
	if got := m.get([]byte("none")); got != protocol.NoOffset {
		t.Fatalf("a key that is not there is at %d", got)
	}
}

// TestCompactAsKafka compacts a log of idempotent and transactional producers, tombstones and all codecs, and
// compares with what the log cleaner of Apache Kafka 4.4 made of the same files, as its dump tool printed it.
// Sizes differ with the compressors, and so do positions; horizons differ with the clock.
func TestCompactAsKafka(t *testing.T) {
	g := loadGolden(t, "4.4.0-compaction")
	now := testTime
	o := compactable(g.fs, &now)
	o.Dir, o.Partition = "/data/c-0", protocol.TopicPartition{Topic: "c"}
	l := open(t, o)
	compact(t, l)
	var out, faults strings.Builder
	for _, s := range *l.list.Load() {
		for _, suffix := range []string{logSuffix, txnIndexSuffix} {
			if suffix == txnIndexSuffix && s.aborted.Load() == 0 {
				continue
			}
			if err := Dump(&out, g.fs, l.path(s.base, suffix), DumpOptions{PrintDataLog: true, Errors: &faults}); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := out.String()
	for _, replace := range [][2]string{
		{`/data/c-0/`, ``}, {`deleteHorizonMs: OptionalLong\[[0-9]*\]`, `deleteHorizonMs: X`}, {`crc: [0-9]*`, `crc`},
		{`partitionLeaderEpoch: [0-9]*`, `ple`}, {`position: [0-9]+`, `pos`}, {`(?m)^(.*?)size: [0-9]+`, `${1}size`},
	} {
		text = regexp.MustCompile(replace[0]).ReplaceAllString(text, replace[1])
	}
	want := strings.Split(strings.TrimSuffix(string(g.other["compacted.txt"]), "\n"), "\n")
	compareLines(t, strings.Split(strings.TrimSuffix(text, "\n"), "\n"), want)
}
