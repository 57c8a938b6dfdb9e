package log

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// someLog makes a closed log of some segments and returns what is in it.
func someLog(t testing.TB, fs vfs.FS) []byte {
	t.Helper()
	o := testOptions(fs)
	l := open(t, o)
	for i := range 150 {
		mustAppend(t, l, idempotent(7, 0, int32(i), 1), protocol.LeaderEpoch(i/60))
	}
	all := readBytes(t, l, 0, everything)
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	return all
}

// change writes over some bytes of a file.
func change(t testing.TB, fs vfs.FS, name string, f func([]byte) []byte) {
	t.Helper()
	writeFile(t, fs, name, f(readWhole(t, fs, name)))
}

// TestSideFiles damages every kind of side file in every way: the log must read as before.
func TestSideFiles(t *testing.T) {
	ways := map[string]func([]byte) []byte{
		"removed":   nil,
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(b []byte) []byte { return b[:len(b)/2] },
		"flipped":   func(b []byte) []byte { b[len(b)/3] ^= 0xff; return b },
		"garbage":   func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) },
		"zeros":     func(b []byte) []byte { return make([]byte, len(b)) },
		"more":      func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
		"reversed":  func(b []byte) []byte { return append(bytes.Clone(b[len(b)/2:]), b[:len(b)/2]...) },
		"misplaced": func(b []byte) []byte { return append(b[:0:0], b[1:]...) },
	}
	for what, way := range ways {
		for _, file := range []string{
			fileName(0, indexSuffix), fileName(0, timeIndexSuffix), "last" + indexSuffix, "last" + timeIndexSuffix,
			fileName(150, snapshotSuffix), epochsName,
		} {
			for _, trust := range []Trust{Clean, SameBoot, Scan} {
				t.Run(fmt.Sprintf("%s/%s/%s", what, file, trust), func(t *testing.T) {
					fs := vfs.NewMemory()
					all := someLog(t, fs)
					o := testOptions(fs)
					o.Trust, o.RecoveryPoint = trust, 150
					name := o.Dir + "/" + file
					if suffix, ok := cutPrefix(file, "last"); ok {
						l := open(t, o)
						name = filePath(o.Dir, l.active().base, suffix)
						l.CloseUnclean()
					}
					if way == nil {
						if err := fs.Remove(name); err != nil {
							t.Fatal(err)
						}
					} else {
						change(t, fs, name, way)
					}
					l := open(t, o)
					checkSomeLog(t, l, all)
					if err := l.CloseClean(); err != nil {
						t.Fatal(err)
					}
					o.Trust = Clean
					checkSomeLog(t, open(t, o), all)
				})
			}
		}
	}
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return "", false
}

// checkSomeLog reads all offsets and times, and appends.
func checkSomeLog(t *testing.T, l *Log, all []byte) {
	t.Helper()
	l.SetHighWatermark(l.EndOffset())
	if got := readBytes(t, l, 0, 150); !bytes.Equal(got, all) {
		t.Fatalf("reads\n%s", describe(got))
	}
	for offset := range protocol.Offset(150) {
		s, err := l.Read(offset, 1, everything, true)
		if err != nil || s.Length == 0 {
			t.Fatalf("read at %d: %v %v", offset, s, err)
		}
		s.Release()
	}
	if got, ok, err := l.OffsetForTime(1000); err != nil || !ok || got.Offset != 0 {
		t.Fatalf("time 1000: %+v %v", got, err)
	}
	if got, err := l.MaxTimestamp(); err != nil || got.Offset != 0 || got.Timestamp != 1000 {
		t.Fatalf("max timestamp %+v %v", got, err)
	}
	if epoch, end := l.EndOffsetForEpoch(0); epoch != 0 || end != 60 || l.LatestEpoch() != 2 {
		t.Fatalf("epoch %d ends at %d, latest %d", epoch, end, l.LatestEpoch())
	}
	if got := l.Producers(); len(got) != 1 || got[0].LastSequence < 149 {
		t.Fatalf("producers %+v", got)
	}
	if _, err := l.AppendLeader(validated(idempotent(7, 0, l.Producers()[0].LastSequence+1, 1)), 2); err != nil {
		t.Fatal(err)
	}
}

// TestTornTail cuts the last batch at every byte and puts zeros and garbage behind it (S1): what is whole
// stays.
func TestTornTail(t *testing.T) {
	fs := vfs.NewMemory()
	l := open(t, testOptions(fs))
	for range 5 {
		mustAppend(t, l, plain(2, 1), 0)
	}
	all := readBytes(t, l, 0, everything)
	l.CloseUnclean()
	whole := readBytes(t, l2(t, fs), 0, 8)
	name := filePath("/data/t-0", 0, logSuffix)
	for cut := len(whole); cut < len(all); cut++ {
		for what, tail := range map[string][]byte{
			"": nil, "zeros": make([]byte, 100), "garbage": bytes.Repeat([]byte{0x5a}, 100), "magic": bytes.Repeat([]byte{2}, 300),
		} {
			for _, trust := range []Trust{SameBoot, Scan} {
				torn := append(bytes.Clone(all[:cut]), tail...)
				if bytes.HasPrefix(torn, all) {
					continue // the batch ends in zeros
				}
				writeFile(t, fs, name, torn)
				o := testOptions(fs)
				o.Trust = trust
				l, err := Open(o)
				if err != nil {
					t.Fatalf("cut at %d, then %s, %s: %v", cut, what, trust, err)
				}
				if got := readBytes(t, l, 0, everything); !bytes.Equal(got, whole) || l.EndOffset() != 8 {
					t.Fatalf("cut at %d, then %s, %s: end %d", cut, what, trust, l.EndOffset())
				}
				l.CloseUnclean()
			}
		}
	}
}

func l2(t testing.TB, fs vfs.FS) *Log {
	o := testOptions(fs)
	o.Trust = SameBoot
	return open(t, o)
}

// TestDamage flips every byte of a batch in the middle of the log (S2): it is damage, or, in the fields that
// the CRC does not cover, found by its neighbours; never served, never cut.
func TestDamage(t *testing.T) {
	source := vfs.NewMemory()
	all := someLog(t, source)
	name := filePath("/data/t-0", 0, logSuffix)
	file := readWhole(t, source, name)
	size := record.Batch(file).Length()
	at := 3 * size
	if int64(len(file)) <= int64(at+2*size) {
		t.Fatal("too short")
	}
	for i := range size {
		fs := vfs.NewMemory()
		someLog(t, fs)
		change(t, fs, name, func(b []byte) []byte { b[at+i] ^= 0x04; return b })
		o := testOptions(fs)
		o.Trust, o.RecoveryPoint = Scan, 0
		l, err := Open(o)
		if i >= leaderEpochByte && i < leaderEpochByte+4 {
			if err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
			if got := readBytes(t, l, 0, everything); !bytes.Equal(got, all) {
				t.Fatalf("byte %d: the epoch was not put right", i)
			}
			continue
		}
		damage, ok := errors.AsType[*DamageError](err)
		if !ok || damage.Position != int64(at) || damage.Offset != 3 || damage.File != name {
			t.Fatalf("byte %d: %v", i, err)
		}
		if got := readWhole(t, fs, name); len(got) != len(file) {
			t.Fatalf("byte %d: the file was cut", i)
		}
	}
}

// leaderEpochByte is where the leader epoch is in a batch.
const leaderEpochByte = 12

// TestVerify finds damage that opening after a kill does not look for.
func TestVerify(t *testing.T) {
	fs := vfs.NewMemory()
	someLog(t, fs)
	o := testOptions(fs)
	o.Trust, o.RecoveryPoint = SameBoot, 0
	l := open(t, o)
	if err := l.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.CloseUnclean()
	change(t, fs, filePath(o.Dir, 0, logSuffix), func(b []byte) []byte { b[1000] ^= 1; return b })
	l = open(t, o)
	err := l.Verify(t.Context())
	if _, ok := errors.AsType[*DamageError](err); !ok {
		t.Fatalf("%v", err)
	}
	if _, err := l.AppendLeader(validated(plain(1, 1)), 9); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Fatalf("append to a damaged log: %v", err)
	}
	o.RecoveryPoint = 150 // synced, so it is not looked at
	if err := open(t, o).Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestDiskFull: writes fail with a retriable error, reads go on, and appends work once there is space.
func TestDiskFull(t *testing.T) {
	fs := vfs.NewMemory()
	l := open(t, testOptions(fs))
	mustAppend(t, l, plain(2, 1), 0)
	before := readBytes(t, l, 0, everything)
	fs.SetLimit(fs.Used())
	big := batchOf(record.BuilderOptions{}, rec{1, "k", string(make([]byte, 3990))})
	for range 3 {
		if _, err := l.AppendLeader(validated(bytes.Clone(big)), 0); protocol.CodeOf(err) != protocol.KafkaStorageError || !vfs.IsFull(err) {
			t.Fatalf("append to a full disk: %v", err)
		}
	}
	if got := readBytes(t, l, 0, everything); !bytes.Equal(got, before) || l.EndOffset() != 2 {
		t.Fatalf("end %d", l.EndOffset())
	}
	fs.SetLimit(0)
	if done := mustAppend(t, l, plain(1, 1), 0); done.First != 2 {
		t.Fatalf("%+v", done)
	}
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(fs)
	o.Trust = Scan
	if l = open(t, o); l.EndOffset() != 3 {
		t.Fatalf("end %d", l.EndOffset())
	}
}

// TestFailingDisk: an I/O error is final (G12).
func TestFailingDisk(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		faulty := vfs.NewFaulty(vfs.NewMemory())
		l := open(t, testOptions(faulty))
		mustAppend(t, l, plain(2, 1), 0)
		remove := faulty.Inject(vfs.Fault{Op: op, Err: syscall.EIO})
		var err error
		if op == vfs.OpWrite {
			_, err = l.AppendLeader(validated(plain(1, 1)), 0)
		} else {
			err = l.Flush()
		}
		if protocol.CodeOf(err) != protocol.KafkaStorageError || !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v", op, err)
		}
		remove()
		if _, err := l.AppendLeader(validated(plain(1, 1)), 0); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: append after a failure: %v", op, err)
		}
		if err := l.Flush(); err == nil || l.RecoveryPoint() != 0 {
			t.Fatalf("%s: flush after a failure: %v", op, err)
		}
		if l.Err() == nil {
			t.Fatal("no error")
		}
		if got := readBytes(t, l, 0, everything); len(got) == 0 {
			t.Fatal("reads do not go on")
		}
	}
}

func FuzzRecovery(f *testing.F) {
	fs := vfs.NewMemory()
	someLog(f, fs)
	name := filePath("/data/t-0", 0, logSuffix)
	file := readWhole(f, fs, name)[:700]
	f.Add(file, byte(Scan))
	f.Add(file[:600], byte(SameBoot))
	flipped := bytes.Clone(file)
	flipped[300] ^= 1
	f.Add(flipped, byte(Scan))
	f.Fuzz(func(t *testing.T, b []byte, trust byte) {
		fs := vfs.NewMemory()
		writeFile(t, fs, name, b)
		o := testOptions(fs)
		o.Trust = Trust(trust % 3)
		l, err := Open(o)
		if err != nil {
			if after := readWhole(t, fs, name); !bytes.Equal(after, b) {
				t.Fatalf("%v, and the file was changed", err)
			}
			return
		}
		next := l.StartOffset()
		for next < l.EndOffset() {
			s, err := l.Read(next, 1<<20, everything, true)
			if err != nil || s.Length == 0 {
				break
			}
			chunk := make([]byte, s.Length)
			err = s.ReadInto(chunk)
			s.Release()
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range record.Entries(chunk) {
				if err != nil {
					t.Fatal(err)
				}
				next = max(next, e.NextOffset())
			}
		}
		_ = l.CloseClean()
	})
}

func FuzzIndexes(f *testing.F) {
	f.Add([]byte{0, 0, 0, 9, 0, 0, 4, 0}, []byte{0, 0, 0, 0, 0, 0, 3, 232, 0, 0, 0, 2}, []byte{})
	f.Fuzz(func(t *testing.T, index, times, aborted []byte) {
		fs := vfs.NewMemory()
		all := someLog(t, fs)
		for suffix, b := range map[string][]byte{indexSuffix: index, timeIndexSuffix: times} {
			writeFile(t, fs, filePath("/data/t-0", 0, suffix), b)
		}
		if len(aborted) > 0 {
			writeFile(t, fs, filePath("/data/t-0", 0, txnIndexSuffix), aborted)
		}
		l, err := Open(testOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		checkSomeLog(t, l, all)
		_, _ = l.Aborted(0, everything)
	})
}

// TestForeignFiles: what is not ours stays, what is left over goes.
func TestForeignFiles(t *testing.T) {
	fs := vfs.NewMemory()
	all := someLog(t, fs)
	kept := []string{"notes.txt", ".hidden", "00000000000000000000.log.bak", "leader-epoch-checkpoint.tmp"}
	gone := []string{
		fileName(0, logSuffix+deletedSuffix), fileName(3, indexSuffix+deletedSuffix), fileName(9, snapshotSuffix+deletedSuffix),
		fileName(0, logSuffix+cleanedSuffix), fileName(0, indexSuffix+swapSuffix), fileName(77, timeIndexSuffix), fileName(33, txnIndexSuffix),
		fileName(50, snapshotSuffix+temporarySuffix),
	}
	for _, name := range append(append([]string{}, kept...), gone...) {
		writeFile(t, fs, "/data/t-0/"+name, []byte("x"))
	}
	l := open(t, testOptions(fs))
	for _, name := range kept {
		if _, err := fs.Stat("/data/t-0/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range gone {
		if _, err := fs.Stat("/data/t-0/" + name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	checkSomeLog(t, l, all)
}
