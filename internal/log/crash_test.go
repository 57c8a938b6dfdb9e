package log

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// crashSeeds is how many random histories the crash tests run; more than the default are for a long night.
var crashSeeds = flag.Int("crash-seeds", 2, "random histories of the crash tests")

// history runs random operations on a log and, before each operation on its files, looks at what a crash
// there would leave: everything that was synced, whatever subset of the rest.
type history struct {
	t      *testing.T
	rng    *rand.Rand
	memory *vfs.Memory
	files  *vfs.Faulty
	log    *Log
	now    time.Time
	o      Options

	batches  []record.Batch  // of the log, as far as appends were acknowledged
	pending  record.Batch    // being appended
	future   []record.Batch  // the log after a truncation that is going on; nil without one
	mayStart protocol.Offset // the log may begin here at the latest
	sequence map[protocol.ProducerID]int32
	open     map[protocol.ProducerID]bool
	epoch    protocol.LeaderEpoch
	crashes  int
}

func newHistory(t *testing.T, seed uint64, configure func(*Options)) *history {
	h := &history{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), memory: vfs.NewMemory(), now: testTime,
		sequence: map[protocol.ProducerID]int32{}, open: map[protocol.ProducerID]bool{},
	}
	h.files = vfs.NewFaulty(h.memory)
	h.o = testOptions(h.files)
	h.o.Config.SegmentBytes, h.o.Config.IndexIntervalBytes = 12<<10, 1024
	h.o.Now = func() time.Time { return h.now }
	if configure != nil {
		configure(&h.o)
	}
	h.log = open(t, h.o)
	// The directory of logs syncs the names of what it creates.
	for _, dir := range []string{"/", "/data", h.o.Dir} {
		if err := h.memory.SyncDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	h.files.BeforeMutation(func(n int64, op vfs.Op, path string) { h.crash(fmt.Sprintf("%s %s (operation %d)", op, path, n)) })
	return h
}

// crash opens what is left in three kinds of crash.
func (h *history) crash(at string) {
	h.t.Helper()
	seed := h.rng.Uint64()
	for _, keep := range []float64{0, 0.5, 1} {
		h.crashes++
		clone := h.memory.CrashClone(rand.New(rand.NewPCG(seed, 7)), keep)
		o := h.o
		o.FS, o.Files, o.Trust = clone, NewFileCache(4), Scan
		o.RecoveryPoint, o.StartOffset = h.log.RecoveryPoint(), protocol.NoOffset
		if keep == 1 {
			o.Trust = SameBoot
		}
		h.check(o, fmt.Sprintf("seed %d, keeping %v, before %s", seed, keep, at), keep == 1)
	}
}

// check opens a crashed log and holds it against what was appended.
func (h *history) check(o Options, name string, whole bool) {
	h.t.Helper()
	l, err := Open(o)
	if err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	got := readBytes(h.t, l, l.StartOffset(), everything)
	ok := false
	for _, model := range [][]record.Batch{append(slices.Clone(h.batches), h.pending), h.future} {
		ok = ok || h.isPart(got, model, l)
	}
	if !ok {
		h.t.Fatalf("%s: the log from %d to %d is no part of what was appended:\n%s\nappended\n%s", name, l.StartOffset(), l.EndOffset(), describe(got), describe(bytes.Join(toBytes(h.batches), nil)))
	}
	least := h.log.RecoveryPoint()
	if whole {
		least = endOf(h.batches)
	}
	if h.future != nil {
		least = min(least, endOf(h.future))
	}
	if l.EndOffset() < least {
		h.t.Fatalf("%s: ends at %d, %d was synced", name, l.EndOffset(), least)
	}
	checkDerived(h.t, o, l, name)
	first := l.EndOffset()
	if done, err := l.AppendLeader(validated(plain(2, 5000)), l.LatestEpoch()+1); err != nil || done.First != first {
		h.t.Fatalf("%s: append to the recovered log: %+v %v", name, done, err)
	}
	if err := l.CloseClean(); err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
}

func toBytes(batches []record.Batch) [][]byte {
	out := make([][]byte, len(batches))
	for i, b := range batches {
		out[i] = b
	}
	return out
}

func endOf(batches []record.Batch) protocol.Offset {
	if len(batches) == 0 {
		return 0
	}
	return batches[len(batches)-1].NextOffset()
}

// isPart reports whether got is a run of the model's batches, from one that the log may begin with.
func (h *history) isPart(got []byte, model []record.Batch, l *Log) bool {
	for i, b := range model {
		if b == nil || b.BaseOffset() > h.mayStart {
			break
		}
		if l.StartOffset() <= b.LastOffset() && l.StartOffset() >= b.BaseOffset() || len(got) > 0 && record.Batch(got).BaseOffset() == b.BaseOffset() {
			return bytes.HasPrefix(bytes.Join(toBytes(model[i:]), nil), got)
		}
	}
	return len(got) == 0
}

// describe names batches.
func describe(b []byte) string {
	var out strings.Builder
	for e, err := range record.Entries(b) {
		if err != nil {
			fmt.Fprintf(&out, "%v\n", err)
			break
		}
		fmt.Fprintf(&out, "%d-%d epoch %d, %d bytes\n", e.BaseOffset, e.LastOffset, e.LeaderEpoch, e.Size)
	}
	return out.String()
}

// checkDerived compares what a log knows beside its batches with what the batches alone say.
func checkDerived(t *testing.T, o Options, l *Log, name string) {
	t.Helper()
	fs := vfs.NewMemory()
	list := *l.list.Load()
	for _, s := range list {
		b := readWhole(t, o.FS, filePath(o.Dir, s.base, logSuffix))
		writeFile(t, fs, filePath(o.Dir, s.base, logSuffix), b[:s.size.Load()])
	}
	o.FS, o.Trust, o.RecoveryPoint, o.StartOffset, o.Files = fs, Scan, 0, l.StartOffset(), NewFileCache(4)
	fresh, err := Open(o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if fresh.EndOffset() != l.EndOffset() {
		t.Fatalf("%s: ends at %d, its files at %d", name, l.EndOffset(), fresh.EndOffset())
	}
	if a, b := l.Producers(), fresh.Producers(); l.StartOffset() == 0 && !slices.Equal(a, b) {
		t.Fatalf("%s: producers\n%+v, the batches say\n%+v", name, a, b)
	}
	// Epochs of records that were deleted are forgotten, also where a crash brings the records back.
	a, b := *l.epochs.Load(), *fresh.epochs.Load()
	if len(a) > 0 && a[0].start > l.StartOffset() {
		b, _ = b.truncateStart(a[0].start)
	}
	if !slices.Equal(a, b) && l.EndOffset() > l.StartOffset() {
		t.Fatalf("%s: epochs %v, the batches say %v; from %d to %d, recovery point %d, segments %+v", name, a, b, l.StartOffset(), l.EndOffset(), l.RecoveryPoint(), l.Segments())
	}
	if l.StartOffset() == 0 {
		a, err1 := l.Aborted(0, everything)
		b, err2 := fresh.Aborted(0, everything)
		if err1 != nil || err2 != nil || !slices.Equal(a, b) {
			t.Fatalf("%s: aborted %v %v, the batches say %v %v", name, a, err1, b, err2)
		}
	}
	for at := testTime.UnixMilli(); at < testTime.UnixMilli()+40; at += 3 {
		a, _, err1 := l.OffsetForTime(at)
		b, _, err2 := fresh.OffsetForTime(at)
		if err1 != nil || err2 != nil || a != b {
			t.Fatalf("%s: time %d at %+v %v, the batches say %+v %v; segments %+v, recovery point %d", name, at, a, err1, b, err2, l.Segments(), l.RecoveryPoint())
		}
	}
	for offset := l.StartOffset(); offset < l.EndOffset(); offset += 1 + protocol.Offset(len(list)) {
		s, err := l.Read(offset, 1, everything, true)
		if err != nil {
			t.Fatalf("%s: read at %d: %v", name, offset, err)
		}
		b := make(record.Batch, s.Length)
		err = s.ReadInto(b)
		s.Release()
		if err != nil || len(b) < record.HeaderSize || b.LastOffset() < offset || b.Length() != len(b) {
			t.Fatalf("%s: read at %d gives %v %v; log from %d to %d in %+v", name, offset, describe(b), err, l.StartOffset(), l.EndOffset(), l.Segments())
		}
	}
}

// batch makes a random batch that producer state accepts.
func (h *history) batch() record.Batch {
	n := 1 + h.rng.IntN(3)
	records := make([]rec, n)
	for i := range records {
		records[i] = rec{testTime.UnixMilli() + int64(h.rng.IntN(40)), "k", strings.Repeat("v", h.rng.IntN(900))}
	}
	id := protocol.ProducerID(h.rng.IntN(3))
	var o record.BuilderOptions
	switch h.rng.IntN(4) {
	case 0:
		return batchOf(o, records...)
	case 1:
		if h.open[id] {
			delete(h.open, id)
			return marker(id, 0, h.rng.IntN(2) == 0, 0)
		}
	}
	o = record.BuilderOptions{Idempotent: true, ProducerID: id, BaseSequence: h.sequence[id]}
	if h.open[id] || h.rng.IntN(2) == 0 {
		o.Transactional, h.open[id] = true, true
	}
	h.sequence[id] += int32(n)
	return batchOf(o, records...)
}

func (h *history) append() {
	b := h.batch()
	if h.rng.IntN(15) == 0 {
		h.epoch++
	}
	h.pending = slices.Clone(b)
	h.pending.SetBaseOffset(h.log.EndOffset())
	h.pending.SetLeaderEpoch(h.epoch)
	mustAppend(h.t, h.log, b, h.epoch)
	h.batches = append(h.batches, h.pending)
	h.pending = nil
	h.log.SetHighWatermark(h.log.EndOffset())
}

// truncate cuts at a random batch, or restarts the log there.
func (h *history) truncate() {
	keep := h.rng.IntN(len(h.batches) + 1)
	if keep < len(h.batches) && h.batches[keep].BaseOffset() <= h.log.StartOffset() {
		return
	}
	h.future = slices.Clone(h.batches[:keep])
	if err := h.log.TruncateTo(endOf(h.future)); err != nil {
		h.t.Fatal(err)
	}
	h.batches, h.future = h.future, nil
	h.forget()
}

// forget takes the sequences from the log again, as producers do that find theirs refused.
func (h *history) forget() {
	clear(h.sequence)
	clear(h.open)
	for _, p := range h.log.Producers() {
		h.sequence[p.ID] = p.LastSequence + 1
		h.open[p.ID] = p.TransactionStart >= 0
	}
	h.epoch = max(h.epoch, h.log.LatestEpoch())
	h.epoch++ // truncation comes with a new leader
}

func (h *history) retain() {
	if len(h.batches) == 0 {
		return
	}
	c := h.log.Config()
	c.RetentionBytes = h.log.Size() * 2 / 3
	h.log.SetConfig(c)
	h.mayStart = h.log.EndOffset()
	if _, _, err := h.log.Retain(h.now); err != nil {
		h.t.Fatal(err)
	}
	h.now = h.now.Add(2 * time.Minute)
	if _, _, err := h.log.Retain(h.now); err != nil {
		h.t.Fatal(err)
	}
	h.mayStart = h.log.StartOffset()
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// reopen closes the log cleanly and opens it again.
func (h *history) reopen() {
	h.must(h.log.CloseClean())
	o := h.o
	o.RecoveryPoint, o.StartOffset, o.HighWatermark = h.log.RecoveryPoint(), h.log.StartOffset(), h.log.HighWatermark()
	h.log = open(h.t, o)
}

func TestCrashAnywhere(t *testing.T) {
	for seed := range uint64(*crashSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHistory(t, seed, nil)
			for range 90 {
				switch n := h.rng.IntN(40); {
				case n < 30:
					h.append()
				case n < 33:
					h.must(h.log.Flush())
				case n < 35:
					h.must(h.log.Roll())
				case n < 37:
					h.truncate()
				case n < 38:
					h.reopen()
				case n < 39:
					h.retain()
				default:
					h.log.Rest()
				}
			}
			if h.crashes < 200 {
				t.Fatalf("only %d crashes", h.crashes)
			}
		})
	}
}

// TestCrashWhileCompacting: of each key the newest record that survived is there, and nothing comes back.
func TestCrashWhileCompacting(t *testing.T) {
	for seed := range uint64(*crashSeeds) {
		rng := rand.New(rand.NewPCG(seed, 2))
		memory := vfs.NewMemory()
		files := vfs.NewFaulty(memory)
		now := testTime
		o := compactable(files, &now)
		l := open(t, o)
		var written []string // "offset key=value", by offset
		for round := range 4 {
			for range 25 {
				record1 := fmt.Sprintf("k%d=%d", rng.IntN(12), l.EndOffset())
				written = append(written, fmt.Sprintf("%d %s", l.EndOffset(), record1))
				mustAppend(t, l, keyed(record.BuilderOptions{}, record1), 0)
			}
			mustRoll(t, l)
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"/", "/data"} {
				if err := memory.SyncDir(dir); err != nil {
					t.Fatal(err)
				}
			}
			l.SetHighWatermark(l.EndOffset())
			files.BeforeMutation(func(n int64, op vfs.Op, path string) {
				for _, keep := range []float64{0, 0.5, 1} {
					crashed := compactable(memory.CrashClone(rand.New(rand.NewPCG(uint64(n), seed)), keep), &now)
					crashed.Trust, crashed.RecoveryPoint = Scan, l.RecoveryPoint()
					checkCrashedCompaction(t, crashed, written, fmt.Sprintf("seed %d round %d keep %v before %s %s", seed, round, keep, op, path))
				}
			})
			if _, err := l.Compact(context.Background(), CompactOptions{Buffer: 1 << 10}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := l.Retain(now.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			files.BeforeMutation(nil)
		}
	}
}

func checkCrashedCompaction(t *testing.T, o Options, written []string, name string) {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if int(l.EndOffset()) != len(written) {
		t.Fatalf("%s: ends at %d, expected %d", name, l.EndOffset(), len(written))
	}
	newest := map[string]string{}
	for _, line := range written {
		_, kv, _ := strings.Cut(line, " ")
		key, _, _ := strings.Cut(kv, "=")
		newest[key] = line
	}
	got := entries(t, l)
	last := -1
	for _, line := range got {
		if strings.Contains(line, "empty") {
			continue
		}
		i := slices.Index(written, line)
		if i <= last {
			t.Fatalf("%s: %q is not in order or was not written; log:\n%s", name, line, strings.Join(got, "\n"))
		}
		last = i
	}
	for _, line := range newest {
		if !slices.Contains(got, line) {
			t.Fatalf("%s: %q is gone", name, line)
		}
	}
	if err := l.CloseClean(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
