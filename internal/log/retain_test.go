package log

import (
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// tenSegments is a log of ten segments with two records each, a minute apart from one another.
func tenSegments(t *testing.T, fs vfs.FS) *Log {
	t.Helper()
	l := open(t, testOptions(fs))
	for i := range 10 {
		mustAppend(t, l, plain(2, testTime.Add(time.Duration(i-9)*time.Minute).UnixMilli()), 0)
		if i < 9 {
			mustRoll(t, l)
		}
	}
	l.SetHighWatermark(l.EndOffset())
	return l
}

func mustRetain(t *testing.T, l *Log, now time.Time) int {
	t.Helper()
	n, _, err := l.Retain(now)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRetention(t *testing.T) {
	for _, test := range []struct {
		name      string
		configure func(*Log)
		start     protocol.Offset // of the log afterwards
		deleted   int
	}{
		{"nothing", func(l *Log) {}, 0, 0},
		{"time", func(l *Log) { set(l, 5*time.Minute+time.Millisecond, -1) }, 8, 4},
		{"time, all", func(l *Log) { set(l, 0, -1) }, 18, 9}, // the last record is not older than nothing
		{"size", func(l *Log) { set(l, -1, l.Size()/2) }, 10, 5},
		{"size, one byte too much", func(l *Log) { set(l, -1, l.Size()-1) }, 0, 0},
		{"below the watermark only", func(l *Log) { l.watermark.Store(5); set(l, 0, -1) }, 4, 2},
		{"policy is not delete", func(l *Log) {
			c := l.Config()
			c.Delete, c.RetentionAge = false, 0
			l.SetConfig(c)
		}, 0, 0},
		{"log start", func(l *Log) {
			if err := l.AdvanceStart(5); err != nil {
				t.Fatal(err)
			}
		}, 5, 2},
		{"log start and size", func(l *Log) { // BR-133
			set(l, -1, l.Size()*8/10)
			if err := l.AdvanceStart(5); err != nil {
				t.Fatal(err)
			}
		}, 5, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := tenSegments(t, vfs.NewMemory())
			test.configure(l)
			if n := mustRetain(t, l, testTime); n != test.deleted || l.StartOffset() != test.start {
				t.Fatalf("%d deleted, log starts at %d", n, l.StartOffset())
			}
			if n := mustRetain(t, l, testTime); n != 0 {
				t.Fatalf("a second run deleted %d more", n)
			}
			if first := l.Segments()[0].BaseOffset; first > test.start || test.start >= first+2 {
				t.Fatalf("the first segment is at %d", first)
			}
		})
	}
}

// set sets retention.ms and retention.bytes.
func set(l *Log, age time.Duration, bytes int64) {
	c := l.Config()
	c.RetentionAge, c.RetentionBytes = age, bytes
	l.SetConfig(c)
}

// TestRetainAll deletes all segments: a new one takes over at the log end.
func TestRetainAll(t *testing.T) {
	fs := vfs.NewMemory()
	l := tenSegments(t, fs)
	set(l, time.Minute, -1)
	if n := mustRetain(t, l, testTime.Add(time.Hour)); n != 10 {
		t.Fatalf("%d deleted", n)
	}
	if l.StartOffset() != 20 || l.EndOffset() != 20 || len(l.Segments()) != 1 {
		t.Fatalf("log from %d to %d, %+v", l.StartOffset(), l.EndOffset(), l.Segments())
	}
	if done := mustAppend(t, l, plain(1, 1), 0); done.First != 20 || done.StartOffset != 20 {
		t.Fatalf("%+v", done)
	}
	if _, err := l.Read(19, 100, everything, true); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
		t.Fatal(err)
	}
}

// TestDeletedFilesWait checks file.delete.delay.ms, and that a slice outlives its file.
func TestDeletedFilesWait(t *testing.T) {
	fs := vfs.NewMemory()
	l := tenSegments(t, fs)
	slice, err := l.Read(0, 1<<20, everything, true)
	if err != nil {
		t.Fatal(err)
	}
	defer slice.Release()
	set(l, 8*time.Minute, -1)
	mustRetain(t, l, testTime)
	deleted := func() (n int) {
		entries, err := fs.ReadDir(l.Dir())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), deletedSuffix) {
				n++
			}
		}
		return n
	}
	if n := deleted(); n == 0 {
		t.Fatal("no files with the suffix")
	}
	next, more, err := l.RemoveDue(testTime.Add(time.Minute - 1))
	if err != nil || !more || !next.Equal(testTime.Add(time.Minute)) || deleted() == 0 {
		t.Fatalf("%v %v %v, %d files", next, more, err, deleted())
	}
	if _, more, err := l.RemoveDue(testTime.Add(time.Minute)); err != nil || more || deleted() != 0 {
		t.Fatalf("%v %v, %d files", more, err, deleted())
	}
	b := make([]byte, slice.Length)
	if err := slice.ReadInto(b); err != nil || string(b[8:12]) == "\x00\x00\x00\x00" {
		t.Fatalf("a pinned slice is gone: %v", err)
	}
}

func TestAdvanceStart(t *testing.T) {
	fs := vfs.NewMemory()
	l := tenSegments(t, fs)
	if err := l.AdvanceStart(21); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
		t.Fatalf("beyond the watermark: %v", err)
	}
	for _, offset := range []protocol.Offset{7, 3} {
		if err := l.AdvanceStart(offset); err != nil || l.StartOffset() != 7 {
			t.Fatalf("%v, log start %d", err, l.StartOffset())
		}
	}
	if _, err := l.Read(6, 100, everything, true); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
		t.Fatal(err)
	}
	if s, err := l.Read(7, 1<<20, everything, true); err != nil || s.Length == 0 {
		t.Fatal(err) // the batch that holds offset 7 begins at 6
	} else {
		s.Release()
	}
	if epoch, end := l.EndOffsetForEpoch(0); epoch != 0 || end != 20 {
		t.Fatalf("epoch %d ends at %d", epoch, end)
	}
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(fs)
	o.StartOffset = 7
	if l = open(t, o); l.StartOffset() != 7 || l.EndOffset() != 20 {
		t.Fatalf("log from %d to %d", l.StartOffset(), l.EndOffset())
	}
	// A start beyond the end: the files below it are lost, the log begins anew there.
	l.CloseUnclean()
	o.StartOffset = 30
	if l = open(t, o); l.StartOffset() != 30 || l.EndOffset() != 30 {
		t.Fatalf("log from %d to %d", l.StartOffset(), l.EndOffset())
	}
}

func TestRename(t *testing.T) {
	fs := vfs.NewMemory()
	l := tenSegments(t, fs)
	l.files.CloseIdle()
	l.files.CloseIdle()
	before := readBytes(t, l, 0, everything)
	if err := l.Rename("/data/moved-0"); err != nil || l.Dir() != "/data/moved-0" {
		t.Fatal(err, l.Dir())
	}
	l.files.CloseIdle()
	l.files.CloseIdle()
	if got := readBytes(t, l, 0, everything); string(got) != string(before) {
		t.Fatal("another log after the move")
	}
	mustAppend(t, l, plain(1, 1), 0)
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat("/data/t-0"); err == nil {
		t.Fatal("the old directory is still there")
	}
}

func TestMarkDeleted(t *testing.T) {
	fs := vfs.NewMemory()
	l := tenSegments(t, fs)
	slice, err := l.Read(0, 1<<20, everything, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.MarkDeleted(); err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir("/data")
	if err != nil || len(entries) != 1 || len(entries[0].Name()) != len("t-0.")+32+len("-delete") {
		t.Fatalf("%v %v", entries, err)
	}
	if _, err := l.AppendLeader(validated(plain(1, 1)), 0); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Fatal(err)
	}
	if err := l.RemoveFiles(); err != nil {
		t.Fatal(err)
	}
	if err := slice.ReadInto(make([]byte, slice.Length)); err != nil {
		t.Fatal(err)
	}
	slice.Release()
	if used := fs.Used(); used != 0 {
		t.Fatalf("%d bytes are still used", used)
	}
}
