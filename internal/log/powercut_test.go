package log

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// twoSegments is a log of two segments that span several pages each.
func twoSegments(t *testing.T, fs vfs.FS) (first, second protocol.Offset, o Options) {
	t.Helper()
	o = testOptions(fs)
	o.Config.SegmentBytes = 40 << 10
	l := open(t, o)
	for len(l.Segments()) < 2 {
		mustAppend(t, l, sized(1500), 3)
	}
	for range 3 {
		mustAppend(t, l, sized(1500), 3)
	}
	list := l.Segments()
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	return list[0].BaseOffset, list[1].BaseOffset, o
}

// TestPowerCut takes from a log what a power cut may take, and what only damage can: after a possible power
// cut the first is cut, the second never is.
func TestPowerCut(t *testing.T) {
	const page = filePageSize
	zero := func(from, to int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[from:min(to, len(b))]); return b }
	}
	for _, test := range []struct {
		name   string
		file   int // which segment
		change func([]byte) []byte
		lost   bool // it is what a power cut may leave
	}{
		{"a page in the middle", 0, zero(2*page, 3*page), true},
		{"the last page", 0, func(b []byte) []byte { clear(b[(len(b)-1)/page*page:]); return b }, true},
		{"the rest of the file", 0, func(b []byte) []byte { return b[:2*page+77] }, true},
		{"the end, at a batch", 0, func(b []byte) []byte { return b[:4*record.Batch(b).Length()] }, true},
		{"from a batch to the end of its page", 0, func(b []byte) []byte {
			n := record.Batch(b).Length()
			at := n * ((page + n - 1) / n)
			clear(b[at : (at/page+1)*page])
			return b
		}, true},
		{"half a page", 0, zero(2*page+900, 2*page+2900), false},
		{"a bit", 0, func(b []byte) []byte { b[3*page+1000] ^= 1; return b }, false},
		{"a bit of the last batch", 0, func(b []byte) []byte { b[len(b)-20] ^= 1; return b }, false},
		{"the length of the last batch", 0, func(b []byte) []byte {
			b[len(b)-record.Batch(b).Length()+batchLengthAt+1] ^= 1
			return b
		}, false},
		{"garbage for a page", 0, func(b []byte) []byte { copy(b[2*page:3*page], bytes.Repeat([]byte{0xa5}, page)); return b }, false},
		{"the end of the log", 1, func(b []byte) []byte { return b[:len(b)-100] }, true},
	} {
		for _, trust := range []Trust{Scan, SameBoot} {
			fs := vfs.NewMemory()
			first, second, o := twoSegments(t, fs)
			o.Trust, o.RecoveryPoint = trust, 0
			base := []protocol.Offset{first, second}[test.file]
			if trust == SameBoot && test.file == 0 {
				continue // only the active segment is looked at
			}
			name := filePath(o.Dir, base, logSuffix)
			change(t, fs, name, test.change)
			after := readWhole(t, fs, name)
			l, err := Open(o)
			if !test.lost {
				if _, ok := errors.AsType[*DamageError](err); !ok {
					t.Errorf("%s, %s: %v", test.name, trust, err)
				}
				if !bytes.Equal(after, readWhole(t, fs, name)) {
					t.Errorf("%s, %s: the file was changed", test.name, trust)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", test.name, trust, err)
				continue
			}
			if test.file == 0 && (l.EndOffset() >= second || len(l.Segments()) != 1) {
				t.Errorf("%s, %s: ends at %d in %+v", test.name, trust, l.EndOffset(), l.Segments())
			}
			mustAppend(t, l, plain(1, 1), 3)
		}
	}
}

// TestEndOfCompactedSegment: where the topic is compacted, or nobody knows, a segment may end before the next
// begins.
func TestEndOfCompactedSegment(t *testing.T) {
	for _, configure := range []func(*Options){
		func(o *Options) { o.Config.Compact, o.Config.Delete = true, false },
		func(o *Options) { o.Config.Delete = false },
		func(o *Options) { o.CleanedTo = 3 },
	} {
		fs := vfs.NewMemory()
		first, second, o := twoSegments(t, fs)
		change(t, fs, filePath(o.Dir, first, logSuffix), func(b []byte) []byte { return b[:4*record.Batch(b).Length()] })
		o.Trust, o.RecoveryPoint = Scan, 0
		configure(&o)
		l := open(t, o)
		if l.EndOffset() <= second || len(l.Segments()) != 2 {
			t.Fatalf("ends at %d in %+v", l.EndOffset(), l.Segments())
		}
		s, err := l.Read(4, 1<<20, everything, true)
		if err != nil || s.Length == 0 {
			t.Fatal(s, err)
		}
		s.Release()
	}
}

// Whatever of a log is synced says of which topic it is, also where it was told later.
func TestTopicIDIsSyncedWithTheRecords(t *testing.T) {
	id := protocol.NewTopicID()
	for name, late := range map[string]bool{"from the start": false, "told later": true} {
		for what, sync := range map[string]func(*Log) error{"Sync": func(l *Log) error { return l.Sync(2) }, "Flush": (*Log).Flush, "CloseClean": (*Log).CloseClean} {
			t.Run(name+", "+what, func(t *testing.T) {
				memory := vfs.NewMemory()
				o := testOptions(memory)
				if !late {
					o.TopicID = id
				}
				l := open(t, o)
				mustAppend(t, l, plain(1, 1), 0)
				if late {
					if err := errors.Join(l.Flush(), l.AssignTopicID(id)); err != nil {
						t.Fatal(err)
					}
				}
				mustAppend(t, l, plain(1, 1), 0)
				for _, dir := range []string{"/", "/data"} { // names that the directory of logs has synced
					if err := memory.SyncDir(dir); err != nil {
						t.Fatal(err)
					}
				}
				if err := sync(l); err != nil {
					t.Fatal(err)
				}
				left := memory.CrashClone(rand.New(rand.NewPCG(1, 2)), 0)
				if got, err := ReadTopicID(left, o.Dir); err != nil || got != id {
					t.Errorf("id %v %v", got, err)
				}
			})
		}
	}
}
