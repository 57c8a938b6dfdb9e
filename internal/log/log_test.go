package log

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// testTime is the clock of tests that do not move it.
var testTime = time.UnixMilli(1_700_000_000_000)

// testConfig are small segments and dense indexes, so that little data shows much.
func testConfig() config.Topic {
	return config.Topic{
		SegmentBytes: 4096, SegmentAge: 7 * 24 * time.Hour, IndexBytes: 10 << 20, IndexIntervalBytes: 256,
		RetentionAge: config.NoLimit, RetentionBytes: -1, Delete: true, FlushMessages: 1 << 62, FlushInterval: 1 << 62,
		FileDeleteDelay: time.Minute, DeleteRetention: 24 * time.Hour, MinCleanableRatio: 0.5, MaxCompactionLag: 1 << 62,
		MaxMessageBytes: 1 << 20,
	}
}

func testOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, Dir: "/data/t-0", Partition: protocol.TopicPartition{Topic: "t"}, Config: testConfig(),
		Now: func() time.Time { return testTime }, Files: NewFileCache(8),
		RecoveryPoint: protocol.NoOffset, StartOffset: protocol.NoOffset, HighWatermark: protocol.NoOffset,
	}
}

func open(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rec is a record of a test.
type rec struct {
	time       int64
	key, value string
}

// batchOf builds a batch; at is the timestamp of the first record, the next ones are a ms later each.
func batchOf(o record.BuilderOptions, records ...rec) record.Batch {
	b := record.NewBuilder(o)
	for _, r := range records {
		b.Append(r.time, []byte(r.key), []byte(r.value))
	}
	return b.Build()
}

// plain is n records of a producer without an id.
func plain(n int, at int64) record.Batch {
	records := make([]rec, n)
	for i := range records {
		records[i] = rec{at + int64(i), fmt.Sprintf("k%d", i), fmt.Sprintf("value %d at %d", i, at)}
	}
	return batchOf(record.BuilderOptions{}, records...)
}

func validated(b record.Batch) record.Validated {
	return record.Validated{Batch: b, Count: int(b.Count()), MaxTimestamp: b.MaxTimestamp(), AppendTime: -1}
}

func mustAppend(t testing.TB, l *Log, b record.Batch, epoch protocol.LeaderEpoch) Appended {
	t.Helper()
	done, err := l.AppendLeader(validated(b), epoch)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// readBytes reads everything from an offset up to a limit, slice by slice.
func readBytes(t testing.TB, l *Log, from, limit protocol.Offset) []byte {
	t.Helper()
	var out []byte
	for from < min(limit, l.EndOffset()) {
		s, err := l.Read(from, 1<<20, limit, true)
		if err != nil {
			t.Fatal(err)
		}
		if s.Length == 0 {
			break
		}
		b := make([]byte, s.Length)
		err = s.ReadInto(b)
		s.Release()
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range record.Entries(b) {
			if err != nil {
				t.Fatal(err)
			}
			from = e.NextOffset()
		}
		out = append(out, b...)
	}
	return out
}

const everything = protocol.Offset(1) << 60

// contents prints the batches of a log.
func contents(t testing.TB, l *Log) string {
	t.Helper()
	var out bytes.Buffer
	for e, err := range record.Entries(readBytes(t, l, l.StartOffset(), everything)) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.ValidCRC() {
			t.Fatalf("batch at %d has a wrong CRC", e.BaseOffset)
		}
		fmt.Fprintf(&out, "%d-%d epoch %d:", e.BaseOffset, e.LastOffset, e.LeaderEpoch)
		for r, err := range e.Records(nil) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, " %d@%d=%q", r.Offset, r.Timestamp, r.Value)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func TestAppendReadCloseReopen(t *testing.T) {
	fs := vfs.NewMemory()
	o := testOptions(fs)
	o.TopicID = protocol.NewTopicID()
	l := open(t, o)
	for i := range 50 {
		done := mustAppend(t, l, plain(3, int64(1000+i)), protocol.LeaderEpoch(i/20))
		if want := protocol.Offset(3 * i); done.First != want || done.Last != want+2 {
			t.Fatalf("append %d: %+v", i, done)
		}
	}
	if n := len(l.Segments()); n < 2 {
		t.Fatalf("%d segments", n)
	}
	before := contents(t, l)
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.AppendLeader(validated(plain(1, 1)), 2); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Fatalf("append to a closed log: %v", err)
	}
	if _, err := l.Read(0, 100, everything, true); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Fatalf("read from a closed log: %v", err)
	}
	for _, trust := range []Trust{Clean, SameBoot, Scan} {
		o.Trust = trust
		l = open(t, o)
		if got := contents(t, l); got != before {
			t.Fatalf("%s: read\n%s\nexpected\n%s", trust, got, before)
		}
		if l.EndOffset() != 150 || l.LatestEpoch() != 2 {
			t.Fatalf("%s: end %d, epoch %d", trust, l.EndOffset(), l.LatestEpoch())
		}
		if epoch, end := l.EndOffsetForEpoch(0); epoch != 0 || end != 60 {
			t.Fatalf("epoch 0 ends at %d (epoch %d)", end, epoch)
		}
		if err := l.CloseClean(); err != nil {
			t.Fatal(err)
		}
	}
	o.TopicID = protocol.NewTopicID()
	if _, err := Open(o); protocol.CodeOf(err) != protocol.InconsistentTopicID {
		t.Fatalf("another topic id: %v", err)
	}
}

// TestTopicIDOfAnOpenLog gives an id to a log that has none, as the first order of a controller does; from then on
// it is the log's, and no other is taken.
func TestTopicIDOfAnOpenLog(t *testing.T) {
	o := testOptions(vfs.NewMemory())
	o.TopicID = protocol.TopicID{}
	l := open(t, o)
	if !l.TopicID().IsZero() {
		t.Fatalf("an id from nowhere: %s", l.TopicID())
	}
	id := protocol.NewTopicID()
	for _, told := range []protocol.TopicID{{}, id, id, {}} {
		if err := l.AssignTopicID(told); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.AssignTopicID(protocol.NewTopicID()); protocol.CodeOf(err) != protocol.InconsistentTopicID {
		t.Fatalf("another topic id: %v", err)
	}
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	if l = open(t, o); l.TopicID() != id {
		t.Fatalf("the log holds %s after opening it again, want %s", l.TopicID(), id)
	}
}

func TestReadRanges(t *testing.T) {
	l := open(t, testOptions(vfs.NewMemory()))
	var size []int
	for i := range 40 {
		b := plain(2, int64(1000+i))
		size = append(size, len(b))
		mustAppend(t, l, b, 0)
	}
	for from := protocol.Offset(0); from < 80; from++ {
		for limit := from; limit <= 81; limit++ {
			for _, maxBytes := range []int{0, 10, size[0], 3*size[0] + 5, 1 << 20} {
				checkRange(t, l, from, limit, maxBytes)
			}
		}
	}
	for _, from := range []protocol.Offset{-1, 81} {
		if _, err := l.Read(from, 100, everything, true); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
			t.Fatalf("read at %d: %v", from, err)
		}
	}
	if s, err := l.Read(80, 100, everything, true); err != nil || s.Length != 0 {
		t.Fatalf("read at the end: %v %v", s, err)
	}
}

// checkRange reads a range with and without "at least one" and checks it against what a range is.
func checkRange(t *testing.T, l *Log, from, limit protocol.Offset, maxBytes int) {
	t.Helper()
	for _, atLeastOne := range []bool{false, true} {
		s, err := l.Read(from, maxBytes, limit, atLeastOne)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, s.Length)
		err = errors.Join(s.ReadInto(b))
		s.Release()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("from %d limit %d bytes %d one %v", from, limit, maxBytes, atLeastOne)
		n := 0
		for e, err := range record.Batches(b) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if n == 0 && (e.BaseOffset() > from || e.LastOffset() < from) || e.NextOffset() > limit {
				t.Fatalf("%s: batch %d-%d", name, e.BaseOffset(), e.LastOffset())
			}
			n++
		}
		readable := from/2*2+2 <= limit
		if len(b) > maxBytes && !(atLeastOne && n == 1) || atLeastOne && readable && n == 0 || !readable && n > 0 {
			t.Fatalf("%s: %d batches of %d bytes", name, n, len(b))
		}
	}
}

// TestReadWhilePublishing: an append shows its end before its bytes; a reader that comes between finds nothing
// beyond its limit, and nothing to read where the bytes are missing.
func TestReadWhilePublishing(t *testing.T) {
	l := open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, l, plain(2, 1), 0)
	mustAppend(t, l, plain(2, 1), 0)
	l.end.Store(6) // as if the next batch was half published
	for limit, batches := range map[protocol.Offset]int{2: 1, 4: 2, 6: 2, everything: 2} {
		n := 0
		for e, err := range record.Batches(readBytes(t, l, 0, limit)) {
			if err != nil || e.NextOffset() > limit {
				t.Fatalf("limit %d: %v", limit, err)
			}
			n++
		}
		if n != batches {
			t.Fatalf("limit %d: %d batches", limit, n)
		}
	}
	if s, err := l.Read(4, 100, everything, true); err != nil || s.Length != 0 {
		t.Fatalf("%v %v", s, err)
	}
}

// A small segment has no files but its log: those of its indexes are made when it grows, and what a kill leaves of a small
// one is read again.
func TestSmallSegmentIsItsLogFileAlone(t *testing.T) {
	for _, trust := range []Trust{SameBoot, Scan} {
		o := testOptions(vfs.NewMemory())
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 1<<30, 4096
		l := open(t, o)
		half := sized(512 << 10)
		hasIndex := func() bool {
			_, err := o.FS.Stat(l.path(0, indexSuffix))
			return err == nil
		}
		for l.Size()+int64(len(half)) < smallSegment {
			mustAppend(t, l, half, 3)
			if hasIndex() {
				t.Fatalf("a segment of %d bytes has an index file", l.Size())
			}
		}
		end := l.EndOffset()
		l.CloseUnclean()
		o.Trust = trust
		l = open(t, o)
		if l.EndOffset() != end {
			t.Fatalf("%v: the log ends at %d after a kill, before it at %d", trust, l.EndOffset(), end)
		}
		if epoch, _ := l.EndOffsetForEpoch(3); epoch != 3 {
			t.Errorf("%v: epoch 3 is not known after a kill", trust)
		}
		for range 3 {
			mustAppend(t, l, half, 3)
		}
		if !hasIndex() {
			t.Errorf("a segment of %d bytes has no index file", l.Size())
		}
		l.CloseUnclean()
	}
}
