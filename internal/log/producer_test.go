package log

import (
	"math"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// idempotent is a batch of n records of a producer.
func idempotent(id protocol.ProducerID, epoch protocol.ProducerEpoch, sequence int32, n int) record.Batch {
	records := make([]rec, n)
	for i := range records {
		records[i] = rec{1000, "k", "v"}
	}
	return batchOf(record.BuilderOptions{Idempotent: true, ProducerID: id, ProducerEpoch: epoch, BaseSequence: sequence}, records...)
}

// transactional is the same in a transaction.
func transactional(id protocol.ProducerID, epoch protocol.ProducerEpoch, sequence int32, n int) record.Batch {
	records := make([]rec, n)
	for i := range records {
		records[i] = rec{1000, "k", "v"}
	}
	return batchOf(record.BuilderOptions{Transactional: true, ProducerID: id, ProducerEpoch: epoch, BaseSequence: sequence}, records...)
}

// marker ends a transaction.
func marker(id protocol.ProducerID, epoch protocol.ProducerEpoch, commit bool, coordinator int32) record.Batch {
	m := record.EndTxnMarker{Type: record.EndAbort, CoordinatorEpoch: coordinator}
	if commit {
		m.Type = record.EndCommit
	}
	return m.Batch(2000, id, epoch)
}

func TestIdempotence(t *testing.T) {
	fs := vfs.NewMemory()
	l := open(t, testOptions(fs))
	refuse := func(b record.Batch, code protocol.Code) {
		t.Helper()
		end := l.EndOffset()
		if _, err := l.AppendLeader(validated(b), 0); protocol.CodeOf(err) != code {
			t.Fatalf("%v, expected %s", err, code.Name())
		}
		if l.EndOffset() != end {
			t.Fatal("something was appended")
		}
	}
	duplicate := func(b record.Batch, first, last protocol.Offset) {
		t.Helper()
		end := l.EndOffset()
		done := mustAppend(t, l, b, 0)
		if !done.Duplicate || done.First != first || done.Last != last || done.AppendTime != 1000 || l.EndOffset() != end {
			t.Fatalf("%+v, end %d, expected a duplicate of %d-%d", done, l.EndOffset(), first, last)
		}
	}
	mustAppend(t, l, idempotent(9, 0, 5, 2), 0) // any first sequence is accepted
	for i := range int32(5) {
		mustAppend(t, l, idempotent(9, 0, 7+2*i, 2), 0) // 7-8 at 2, 9-10 at 4, 11-12 at 6, 13-14 at 8, 15-16 at 10
	}
	duplicate(idempotent(9, 0, 7, 2), 2, 3)
	duplicate(idempotent(9, 0, 15, 2), 10, 11)
	refuse(idempotent(9, 0, 5, 2), protocol.OutOfOrderSequenceNumber)  // the sixth is forgotten
	refuse(idempotent(9, 0, 7, 3), protocol.OutOfOrderSequenceNumber)  // not the same batch
	refuse(idempotent(9, 0, 18, 1), protocol.OutOfOrderSequenceNumber) // a gap
	refuse(idempotent(9, 1, 3, 1), protocol.OutOfOrderSequenceNumber)  // a new epoch begins at 0
	mustAppend(t, l, idempotent(9, 1, 0, 1), 0)
	refuse(idempotent(9, 0, 17, 1), protocol.InvalidProducerEpoch)
	mustAppend(t, l, idempotent(8, 0, math.MaxInt32-1, 4), 0) // wraps to 1
	duplicate(idempotent(8, 0, math.MaxInt32-1, 4), 13, 16)
	mustAppend(t, l, idempotent(8, 0, 2, 1), 0)

	// One batch a producer survives a restart, in the snapshot; those behind it are found in the log.
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	l = open(t, testOptions(fs))
	duplicate(idempotent(9, 1, 0, 1), 12, 12)
	duplicate(idempotent(8, 0, 2, 1), 17, 17)
	mustAppend(t, l, idempotent(8, 0, 3, 1), 0)
	l.CloseUnclean()
	o := testOptions(fs)
	o.Trust = SameBoot
	l = open(t, o)
	duplicate(idempotent(8, 0, 3, 1), 18, 18)
	duplicate(idempotent(8, 0, 2, 1), 17, 17)
	want := []ProducerState{
		{ID: 8, LastSequence: 3, LastTimestamp: 1000, CoordinatorEpoch: -1, TransactionStart: -1},
		{ID: 9, Epoch: 1, LastSequence: 0, LastTimestamp: 1000, CoordinatorEpoch: -1, TransactionStart: -1},
	}
	if got := l.Producers(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("producers %+v", got)
	}
}

func TestProducersExpire(t *testing.T) {
	o := testOptions(vfs.NewMemory())
	o.ProducerExpiration = time.Hour
	l := open(t, o)
	mustAppend(t, l, idempotent(9, 0, 0, 1), 0)
	mustAppend(t, l, transactional(10, 0, 0, 1), 0)
	if n := l.ExpireProducers(time.UnixMilli(1000).Add(59 * time.Minute)); n != 0 {
		t.Fatalf("%d expired early", n)
	}
	if n := l.ExpireProducers(time.UnixMilli(1000).Add(time.Hour)); n != 1 {
		t.Fatalf("%d expired", n)
	}
	if got := l.Producers(); len(got) != 1 || got[0].ID != 10 {
		t.Fatalf("left %+v: the one with an open transaction must stay", got)
	}
	mustAppend(t, l, idempotent(9, 0, 7, 1), 0) // BR-021
}

func TestTransactions(t *testing.T) {
	fs := vfs.NewMemory()
	o := testOptions(fs)
	o.Config.SegmentBytes = 400
	l := open(t, o)
	steps := []struct {
		batch    record.Batch
		unstable protocol.Offset // after the watermark has followed
	}{
		{plain(2, 1), -1},               // 0-1
		{transactional(1, 0, 0, 2), 2},  // 2-3
		{transactional(2, 0, 0, 1), 2},  // 4
		{plain(1, 1), 2},                // 5
		{marker(1, 0, false, 3), 4},     // 6 aborts 2-3; 2 is open from 4
		{transactional(1, 0, 2, 1), 4},  // 7
		{marker(2, 0, true, 3), 7},      // 8
		{marker(1, 0, false, 3), -1},    // 9 aborts 7
		{marker(3, 0, false, 3), -1},    // 10 aborts nothing
		{transactional(2, 0, 1, 1), 11}, // 11
	}
	for i, step := range steps {
		mustAppend(t, l, step.batch, 0)
		before, unstable := l.LastStableOffset(), l.guarded.producers.txns.unstable.Load()
		if before > l.HighWatermark() {
			t.Fatalf("step %d: last stable offset %d above the watermark %d (unstable %d)", i, before, l.HighWatermark(), unstable)
		}
		l.SetHighWatermark(l.EndOffset())
		first, ok := l.FirstUnstableOffset()
		if !ok {
			first = -1
		}
		if first != step.unstable {
			t.Fatalf("step %d: first unstable offset %d, expected %d", i, first, step.unstable)
		}
	}
	// Markers of replaced coordinators and plain writes within a transaction are refused.
	for _, bad := range []struct {
		batch record.Batch
		code  protocol.Code
	}{
		{marker(2, 0, true, 2), protocol.TransactionCoordinatorFenced},
		{idempotent(2, 0, 2, 1), protocol.InvalidTxnState},
	} {
		if _, err := l.AppendLeader(validated(bad.batch), 0); protocol.CodeOf(err) != bad.code {
			t.Fatalf("%v, expected %s", err, bad.code.Name())
		}
	}
	check := func(from, to protocol.Offset, want ...AbortedTransaction) {
		t.Helper()
		got, err := l.Aborted(from, to)
		if err != nil || len(got) != len(want) {
			t.Fatalf("aborted in %d-%d: %v %v, expected %v", from, to, got, err, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("aborted in %d-%d: %v, expected %v", from, to, got, want)
			}
		}
	}
	first, second := AbortedTransaction{1, 2}, AbortedTransaction{1, 7}
	all := func() {
		t.Helper()
		check(0, 12, first, second)
		check(3, 12, first, second) // BR-050: it began before
		check(6, 7, first)
		check(7, 8, second)
		check(0, 2)
		check(10, 12)
	}
	all()
	if len(l.Segments()) < 3 {
		t.Fatal("too few segments to show anything")
	}
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	for _, trust := range []Trust{Clean, SameBoot, Scan} {
		o.Trust, o.HighWatermark = trust, 12
		l = open(t, o)
		all()
		if first, ok := l.FirstUnstableOffset(); !ok || first != 11 || l.LastStableOffset() != 11 {
			t.Fatalf("%s: first unstable %d %v, last stable %d", trust, first, ok, l.LastStableOffset())
		}
		if err := l.CloseClean(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreplicatedMarkers: a decided transaction holds the last stable offset until its marker is below the
// watermark.
func TestUnreplicatedMarkers(t *testing.T) {
	l := open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, l, transactional(1, 0, 0, 2), 0)
	mustAppend(t, l, marker(1, 0, true, 0), 0)
	for _, step := range []struct{ watermark, stable protocol.Offset }{{0, 0}, {1, 0}, {2, 0}, {3, 3}} {
		l.SetHighWatermark(step.watermark)
		if got := l.LastStableOffset(); got != step.stable {
			t.Fatalf("watermark %d: last stable offset %d, expected %d", step.watermark, got, step.stable)
		}
	}
}

func TestSnapshotsOfKafka(t *testing.T) {
	for _, name := range []string{"3.9.2-zk-clean", "4.4.0-kraft-clean"} {
		g := loadGolden(t, name)
		n := 0
		for _, tp := range g.partitions(t) {
			entries, err := g.fs.ReadDir("/data/" + tp.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if _, kind, state, _ := parseFileName(e.Name()); kind != snapshotSuffix || state != "" {
					continue
				}
				b := readWhole(t, g.fs, "/data/"+tp.String()+"/"+e.Name())
				byID, err := decodeSnapshot(b)
				if err != nil {
					t.Fatalf("%s/%s: %v", tp, e.Name(), err)
				}
				if again := encodeSnapshot(byID); len(byID) < 2 && string(again) != string(b) {
					t.Fatalf("%s/%s: encodes to %x, is %x", tp, e.Name(), again, b)
				}
				n++
			}
		}
		if n < 20 {
			t.Fatalf("%d snapshots", n)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(encodeSnapshot(nil))
	p := newProducer()
	p.add(batchMeta{lastOffset: 7, lastSequence: 3, offsetDelta: 3, timestamp: 9})
	f.Add(encodeSnapshot(map[protocol.ProducerID]*producer{1: p, 2: newProducer()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		byID, err := decodeSnapshot(b)
		if err == nil && len(encodeSnapshot(byID)) > len(b) {
			t.Fatal("grew")
		}
	})
}
