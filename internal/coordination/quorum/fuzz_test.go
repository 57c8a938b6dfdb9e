package quorum

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// placeFile puts bytes into a file of a new file system.
func placeFile(t testing.TB, name string, b []byte) vfs.FS {
	t.Helper()
	fs := vfs.NewVolatile()
	check(t, makeDirectory(fs, "/data"))
	f, err := fs.OpenFile(filepath.Join("/data", name), os.O_RDWR|os.O_CREATE, 0o644)
	check(t, err)
	_, err = f.WriteAt(b, 0)
	check(t, err)
	check(t, f.Close())
	return fs
}

// reseal makes a frame of arbitrary payload valid, so that the fuzzer gets behind the sums.
func reseal(kind byte, index uint64, payloads ...[]byte) []byte {
	b := fileHeader{kind: kind, salt: 7, index: index}.append(nil)
	for _, payload := range payloads {
		frame := append(make([]byte, frameHeader), payload...)
		sealFrame(frame, 7, int64(len(b)))
		b = append(b, frame...)
	}
	return b
}

// FuzzLogFile opens a log segment of arbitrary bytes: it is refused, or it can be written on and read.
func FuzzLogFile(f *testing.F) {
	f.Add(reseal(kindLog, 1))
	f.Add(reseal(kindLog, 1, []byte{frameEntries, 1, 1, 1, 0, 0, 0, 0}, []byte{frameCut, 1}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := placeFile(t, logPrefix+"00000000000000000001", b)
		s, err := openLog(logOptions(fs), upTo(0))
		if err != nil {
			return
		}
		checkUsable(t, fs, s)
	})
}

// FuzzLogFrame opens a log segment with a valid frame of arbitrary content.
func FuzzLogFrame(f *testing.F) {
	f.Add([]byte{frameEntries, 1, 2, 1, 0, 0, 0, 0, 1, 0, 0, 1, 9, 0}, []byte{frameCut, 2})
	f.Add([]byte{frameEntries, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}, []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		fs := placeFile(t, logPrefix+"00000000000000000001", reseal(kindLog, 1, first, second))
		s, err := openLog(logOptions(fs), upTo(0))
		if err != nil {
			return
		}
		checkUsable(t, fs, s)
	})
}

// checkUsable writes an entry, opens the log again and compares.
func checkUsable(t *testing.T, fs vfs.FS, s *logStore) {
	t.Helper()
	check(t, s.StoreLog(entry(s.nextLocked(), 5, 1)))
	want := contents(t, s)
	check(t, s.close())
	again, err := openLog(logOptions(fs), upTo(0))
	check(t, err)
	if diff := cmp.Diff(want, contents(t, again)); diff != "" {
		t.Fatal(diff)
	}
	check(t, again.close())
}

// FuzzSnapshotFile opens a snapshot with a valid frame of arbitrary content, or of arbitrary bytes.
func FuzzSnapshotFile(f *testing.F) {
	meta := []byte{9, 1, 1}
	encoded := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "node-1", Address: address}}})
	meta = append(append(meta, byte(len(encoded))), encoded...)
	f.Add(meta, []byte("tree"), false)
	f.Add([]byte{9, 1, 1, 1, 0x81}, []byte{}, false)
	f.Add([]byte("BRNBMETA"), []byte{}, true)
	f.Fuzz(func(t *testing.T, meta, piece []byte, raw bool) {
		b := meta
		if !raw {
			b = reseal(kindSnapshot, 9, meta, piece, nil)
		}
		fs := placeFile(t, snapshotPrefix+"00000000000000000009", b)
		s, err := openSnapshots(fs, "/data", rand.Uint64)
		if err != nil {
			return
		}
		_, r, err := s.Open(s.meta.ID)
		check(t, err)
		got, err := io.ReadAll(r)
		if err == nil && !bytes.Equal(got, piece) && !raw {
			t.Fatalf("read %q, want %q", got, piece)
		}
		check(t, r.Close())
	})
}

// FuzzStateFile opens a state file of arbitrary bytes: it is refused, or it can be written and read.
func FuzzStateFile(f *testing.F) {
	slot, err := appendSlot(nil, 3, map[string][]byte{"CurrentTerm": {0, 0, 0, 0, 0, 0, 0, 1}, "x": nil})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(slot[:100])
	f.Add(append(slot, slot...))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := placeFile(t, stateName, b)
		s, err := openState(fs, "/data", true)
		if err != nil {
			return
		}
		if err := s.SetUint64([]byte(termKey), 9); err != nil {
			t.Fatal(err)
		}
		if err := s.Set([]byte("key"), []byte("value")); err != nil {
			return // too large, with what was there
		}
		check(t, s.close())
		s, err = openState(fs, "/data", false)
		check(t, err)
		if term, err := s.GetUint64([]byte(termKey)); term != 9 || err != nil {
			t.Fatalf("term %d, %v", term, err)
		}
		check(t, s.close())
	})
}
