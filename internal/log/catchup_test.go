package log

import (
	"bytes"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// catchUp reads the whole log in small steps, as a consumer does that is behind, and returns how many reads
// it took. Beside each range stand as many zeros as it says.
func catchUp(t *testing.T, l *Log, maxBytes int) int {
	t.Helper()
	steps := 0
	for from := l.StartOffset(); from < l.EndOffset(); steps++ {
		s, err := l.Read(from, maxBytes, l.EndOffset(), true)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, s.Length+s.Zeros)
		err = readFull(s.File, b, s.Position)
		s.Release()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b[s.Length:], make([]byte, s.Zeros)) {
			t.Fatalf("read at %d: %x behind the range", from, b[s.Length:])
		}
		for e, err := range record.Entries(b[:s.Length]) {
			if err != nil || e.BaseOffset > from {
				t.Fatalf("read at %d: %v, batch at %d", from, err, e.BaseOffset)
			}
			from = e.NextOffset()
		}
	}
	return steps
}

// TestCatchUpLooksIntoNoBatch: where a read ends and the next one begins is known without a look into the
// log, for what was appended since the log was opened, and for the rest from the second time on.
func TestCatchUpLooksIntoNoBatch(t *testing.T) {
	fs := vfs.NewMemory()
	o := testOptions(fs)
	o.Config.SegmentBytes = 16 << 10
	l := open(t, o)
	for i := range 200 {
		mustAppend(t, l, plain(2+i%5, int64(1000+i)), 0)
	}
	looks := 0
	count := func(name string, l *Log) {
		t.Helper()
		l.files.mu.Lock()
		for _, f := range l.files.mu.ring {
			f.File = counting{f.File, &looks} // they are all open: the cache has room
		}
		l.files.mu.Unlock()
		looks = 0
		steps := catchUp(t, l, 700)
		// Each read of a range is one; the first batch of a segment has no entry, so a walk may begin there.
		if looks -= steps; looks > 0 {
			t.Errorf("%s: %d looks into the log for %d reads", name, looks, steps)
		}
	}
	count("appended", l)
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	o.Trust, o.Files = Clean, NewFileCache(8)
	l = open(t, o)
	catchUp(t, l, 700)
	count("opened, second time", l)
}

// counting counts reads.
type counting struct {
	vfs.File
	reads *int
}

func (c counting) ReadAt(p []byte, off int64) (int, error) {
	*c.reads++
	return c.File.ReadAt(p, off)
}
