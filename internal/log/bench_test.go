package log

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// realistic are options with Kafka's defaults on a real directory.
func realistic(t testing.TB, fs vfs.FS) Options {
	o := testOptions(fs)
	o.Dir = t.TempDir() + "/t-0"
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 1<<30, 4096
	return o
}

// sized is a batch of about bytes bytes.
func sized(bytes int) record.Batch {
	return batchOf(record.BuilderOptions{}, rec{testTime.UnixMilli(), "k", strings.Repeat("v", bytes-80)})
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10} {
		for _, producer := range []record.BuilderOptions{{}, {Idempotent: true, ProducerID: 7}} {
			name := fmt.Sprintf("%dKiB", size>>10)
			if producer.Idempotent {
				name += "/idempotent"
			}
			b.Run(name, func(b *testing.B) { benchmarkAppend(b, size, producer) })
		}
	}
}

// sequenceAt is where a batch has its first sequence.
const sequenceAt = 53

func benchmarkAppend(b *testing.B, size int, producer record.BuilderOptions) {
	l := open(b, realistic(b, vfs.OS()))
	v := validated(batchOf(producer, rec{testTime.UnixMilli(), "k", strings.Repeat("v", size-80)}))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if producer.Idempotent { // the next sequence; an append does not look at the CRC
			binary.BigEndian.PutUint32(v.Batch[sequenceAt:], uint32(l.EndOffset()))
		}
		if _, err := l.AppendLeader(v, 0); err != nil {
			b.Fatal(err)
		}
		if l.EndOffset()%(1<<30/protocol.Offset(size)) == 0 {
			l.SetHighWatermark(l.EndOffset())
			c := l.Config()
			c.RetentionBytes, c.FileDeleteDelay = 1<<30, 0
			l.SetConfig(c)
			if _, _, err := l.Retain(testTime); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, where := range []string{"tail", "catch-up", "cold"} {
		b.Run(where, func(b *testing.B) {
			o := realistic(b, vfs.OS())
			o.Config.SegmentBytes = 16 << 20
			l := open(b, o)
			for range 4096 {
				mustAppend(b, l, sized(16<<10), 0)
			}
			end := l.EndOffset()
			b.ReportAllocs()
			var n protocol.Offset
			for b.Loop() {
				from := end - 4
				if where != "tail" {
					from = n % (end - 100)
					n += 61
				}
				if where == "cold" {
					l.files.CloseIdle()
				}
				s, err := l.Read(from, 1<<20, end, true)
				if err != nil {
					b.Fatal(err)
				}
				s.Release()
			}
		})
	}
}

// TestAllocations holds the hot path to its numbers, which are exact, unlike times.
func TestAllocations(t *testing.T) {
	l := open(t, realistic(t, vfs.OS()))
	v := validated(sized(64 << 10))
	append1 := func() {
		if _, err := l.AppendLeader(v, 0); err != nil {
			t.Fatal(err)
		}
	}
	append1()
	if n := testing.AllocsPerRun(200, append1); n > 0 {
		t.Errorf("an append allocates %v times", n)
	}
	idempotent1 := idempotent(1, 0, 0, 1)
	mustAppend(t, l, idempotent1, 0)
	next := idempotent(2, 0, 0, 1)
	sequence := uint32(0)
	if n := testing.AllocsPerRun(200, func() {
		binary.BigEndian.PutUint32(next[sequenceAt:], sequence)
		sequence++
		if done, err := l.AppendLeader(validated(next), 0); err != nil || done.Duplicate {
			t.Fatal(done, err)
		}
	}); n > 0 {
		t.Errorf("an append of an idempotent producer allocates %v times", n)
	}
	if n := testing.AllocsPerRun(200, func() {
		if done, err := l.AppendLeader(validated(idempotent1), 0); err != nil || !done.Duplicate {
			t.Fatal(done, err)
		}
	}); n > 0 {
		t.Errorf("a duplicate allocates %v times", n)
	}
	from := protocol.Offset(0)
	read := func() {
		s, err := l.Read(from, 100<<10, everything, true)
		if err != nil || s.Length == 0 {
			t.Fatal(s, err)
		}
		s.Release()
		from = (from + 7) % 150
	}
	if n := testing.AllocsPerRun(200, read); n > 0 {
		t.Errorf("a read allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = l.EndOffsetForEpoch(0)
		l.SetHighWatermark(l.EndOffset())
		_ = l.LastStableOffset()
	}); n > 0 {
		t.Errorf("offsets allocate %v times", n)
	}
}

// TestSystemCalls counts the operations on files: one write an append, at most one small read a read.
func TestSystemCalls(t *testing.T) {
	counts := map[vfs.Op]int{}
	faulty := vfs.NewFaulty(vfs.NewMemory(), vfs.Fault{Hook: func(op vfs.Op, _ string) { counts[op]++ }})
	o := testOptions(faulty)
	o.Config = config.Topic{
		SegmentBytes: 1 << 30, SegmentAge: 1 << 60, IndexBytes: 10 << 20, IndexIntervalBytes: 4096, RetentionAge: -1,
		RetentionBytes: -1, Delete: true, FlushMessages: 1 << 62, FlushInterval: 1 << 62,
	}
	l := open(t, o)
	mustAppend(t, l, sized(64<<10), 0)
	clear(counts)
	for range 64 {
		mustAppend(t, l, sized(64<<10), 0)
	}
	if counts[vfs.OpWrite] > 64+2*4 {
		t.Errorf("64 appends of 64 KiB: %v", counts)
	}
	clear(counts)
	for from := range l.EndOffset() {
		s, err := l.Read(from, 1<<20, l.EndOffset(), true)
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
	}
	if n := int(l.EndOffset()); counts[vfs.OpRead] > n || len(counts) > 1 {
		t.Errorf("%d reads: %v", n, counts)
	}
}

// BenchmarkLookup finds batches by offset in the index of a full segment: 1 GiB with an entry every 4 KiB.
func BenchmarkLookup(b *testing.B) {
	const entries = 1 << 18
	x := newOffsetIndex(nil)
	for i := range int64(entries) {
		x = x.with(newIndexEntry(i*40+39, i*4096), i*40)
	}
	for name, offset := range map[string]func(n int64) int64{
		"first of a batch": func(n int64) int64 { return n % entries * 40 },
		"within a batch":   func(n int64) int64 { return n%entries*40 + 17 },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var n, sum int64
			for b.Loop() {
				relative := offset(n)
				position, ok := x.begins(relative)
				if !ok {
					position = lookupOffset(x.all(), relative)
				}
				sum += position
				n += 7919
			}
			if sum == 0 {
				b.Error("nothing was found")
			}
		})
	}
}
