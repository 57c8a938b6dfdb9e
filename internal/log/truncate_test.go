package log

import (
	"bytes"
	"slices"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func mustTruncate(t *testing.T, l *Log, to, end protocol.Offset) {
	t.Helper()
	if err := l.TruncateTo(to); err != nil {
		t.Fatal(err)
	}
	if l.EndOffset() != end {
		t.Fatalf("truncated to %d, the log ends at %d", to, l.EndOffset())
	}
}

func TestTruncate(t *testing.T) {
	fs := vfs.NewMemory()
	o := testOptions(fs)
	o.Config.SegmentBytes = 1500
	l := open(t, o)
	for i := range 40 {
		b := idempotent(7, 0, int32(3*i), 3)
		mustAppend(t, l, b, protocol.LeaderEpoch(i/10))
	}
	if len(l.Segments()) < 2 {
		t.Fatal("one segment shows little")
	}
	l.SetHighWatermark(115)
	mustTruncate(t, l, 118, 117) // batches are not cut
	mustTruncate(t, l, 117, 117)
	if l.HighWatermark() != 115 {
		t.Fatalf("watermark %d", l.HighWatermark())
	}
	mustTruncate(t, l, 60, 60) // in an earlier segment, where epoch 2 began
	if l.HighWatermark() != 60 || l.RecoveryPoint() > 60 || l.LatestEpoch() != 1 {
		t.Fatalf("watermark %d, recovery point %d, epoch %d", l.HighWatermark(), l.RecoveryPoint(), l.LatestEpoch())
	}
	if got := l.Producers(); len(got) != 1 || got[0].LastSequence != 59 {
		t.Fatalf("producers %+v", got)
	}
	if _, err := l.Read(61, 10, everything, true); protocol.CodeOf(err) != protocol.OffsetOutOfRange {
		t.Fatal(err)
	}
	before := readBytes(t, l, 0, everything)
	if done := mustAppend(t, l, idempotent(7, 0, 60, 3), 5); done.First != 60 {
		t.Fatalf("%+v", done)
	}
	after := readBytes(t, l, 0, everything)
	if !bytes.HasPrefix(after, before) || record.Batch(after[len(before):]).LeaderEpoch() != 5 {
		t.Fatal("the log is not what was appended")
	}
	if epoch, end := l.EndOffsetForEpoch(4); epoch != 1 || end != 60 {
		t.Fatalf("epoch %d ends at %d", epoch, end)
	}
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	l = open(t, o)
	if got := readBytes(t, l, 0, everything); !bytes.Equal(got, after) {
		t.Fatal("another log after opening it again")
	}
}

// TestTruncateTransactions: BR-197, the last stable offset follows.
func TestTruncateTransactions(t *testing.T) {
	l := open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, l, transactional(1, 0, 0, 2), 0)
	mustAppend(t, l, marker(1, 0, false, 0), 0)
	mustAppend(t, l, transactional(1, 0, 2, 2), 0) // 3-4
	mustAppend(t, l, plain(1, 1), 0)               // 5
	mustAppend(t, l, marker(1, 0, false, 0), 0)    // 6
	l.SetHighWatermark(7)
	aborted := func() int {
		list, err := l.Aborted(0, everything)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if aborted() != 2 || l.LastStableOffset() != 7 {
		t.Fatalf("%d aborted, last stable %d", aborted(), l.LastStableOffset())
	}
	mustTruncate(t, l, 6, 6)
	if aborted() != 1 || l.LastStableOffset() != 3 {
		t.Fatalf("%d aborted, last stable %d", aborted(), l.LastStableOffset())
	}
	mustTruncate(t, l, 3, 3)
	if _, open := l.FirstUnstableOffset(); open || l.LastStableOffset() != 3 {
		t.Fatalf("last stable %d", l.LastStableOffset())
	}
	mustTruncate(t, l, 0, 0)
	if aborted() != 0 || len(l.Producers()) != 0 {
		t.Fatalf("%d aborted, producers %v", aborted(), l.Producers())
	}
}

// TestTruncateEpochs: BR-123, epochs that begin at the cut go although no record does.
func TestTruncateEpochs(t *testing.T) {
	l := open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, l, plain(2, 1), 0)
	for e := protocol.LeaderEpoch(1); e < 6; e++ {
		if err := l.AssignEpoch(e, 2); err != nil {
			t.Fatal(err)
		}
	}
	if l.LatestEpoch() != 5 {
		t.Fatalf("epoch %d", l.LatestEpoch())
	}
	mustTruncate(t, l, 2, 2)
	if l.LatestEpoch() != 0 {
		t.Fatalf("epoch %d", l.LatestEpoch())
	}
}

// TestTruncateToEmpty: BR-131, the active segment is empty and takes appends without a roll.
func TestTruncateToEmpty(t *testing.T) {
	l := open(t, testOptions(vfs.NewMemory()))
	for range 3 {
		mustAppend(t, l, plain(40, 1), 0)
	}
	mustTruncate(t, l, 0, 0)
	mustAppend(t, l, plain(1, 1), 0)
	if got := l.Segments(); len(got) != 1 || got[0].BaseOffset != 0 {
		t.Fatalf("%+v", got)
	}
}

// TestTruncateFully: BR-209, the offset may be the present start.
func TestTruncateFully(t *testing.T) {
	fs := vfs.NewMemory()
	l := open(t, testOptions(fs))
	for _, at := range []protocol.Offset{0, 10, 10, 3} {
		mustAppend(t, l, plain(2, 1), 0)
		mustRoll(t, l)
		mustAppend(t, l, plain(2, 1), 0)
		if err := l.TruncateFullyAndStartAt(at); err != nil {
			t.Fatal(err)
		}
		if l.StartOffset() != at || l.EndOffset() != at || len(l.Segments()) != 1 || l.HighWatermark() != at {
			t.Fatalf("log from %d to %d, watermark %d, %+v", l.StartOffset(), l.EndOffset(), l.HighWatermark(), l.Segments())
		}
		if done := mustAppend(t, l, plain(1, 1), 0); done.First != at {
			t.Fatalf("%+v", done)
		}
	}
	mustTruncate(t, l, 1, 1) // before the first segment
	if l.StartOffset() != 1 {
		t.Fatalf("log starts at %d", l.StartOffset())
	}
}

func TestAppendFollower(t *testing.T) {
	leader := open(t, testOptions(vfs.NewMemory()))
	for i := range 60 {
		mustAppend(t, leader, idempotent(7, 0, int32(2*i), 2), protocol.LeaderEpoch(i/25))
	}
	all := readBytes(t, leader, 0, everything)
	follower := open(t, testOptions(vfs.NewMemory()))
	refuse := func(b []byte, what string) {
		t.Helper()
		end := follower.EndOffset()
		if _, err := follower.AppendFollower(b); err == nil {
			t.Fatalf("%s was appended", what)
		}
		if follower.EndOffset() != end {
			t.Fatalf("%s was appended in part", what)
		}
	}
	done, err := follower.AppendFollower(all) // larger than a segment
	if err != nil || done.First != 0 || done.Last != 119 || follower.EndOffset() != 120 {
		t.Fatalf("%+v %v", done, err)
	}
	if got := readBytes(t, follower, 0, everything); !bytes.Equal(got, all) {
		t.Fatal("the follower has another log")
	}
	if !slices.Equal(follower.Producers(), leader.Producers()) || follower.LatestEpoch() != 2 {
		t.Fatalf("producers %v, epoch %d", follower.Producers(), follower.LatestEpoch())
	}
	refuse(all, "what is there already")
	next := idempotent(7, 0, 120, 2)
	next.SetBaseOffset(125) // behind a gap, as after compaction
	next.SetLeaderEpoch(1)
	refuse(next, "an epoch that falls")
	next.SetLeaderEpoch(3)
	flipped := slices.Clone(next)
	flipped[len(flipped)-1] ^= 1
	refuse(append(slices.Clone(next), flipped...), "a wrong CRC")
	refuse(next[:len(next)-1], "a cut batch")
	if done, err := follower.AppendFollower(next); err != nil || done.First != 125 || follower.EndOffset() != 127 {
		t.Fatalf("%+v %v", done, err)
	}
	if done, err := follower.AppendFollower(nil); err != nil || done.First != protocol.NoOffset {
		t.Fatalf("%+v %v", done, err)
	}
}

// A follower got batches of two epochs, and its disk had room for none of them. What the leader sends next may be of the
// first of these epochs again.
func TestFailedAppendLeavesNoEpoch(t *testing.T) {
	leader := open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, leader, idempotent(7, 0, 0, 2), 1)
	first := readBytes(t, leader, 0, everything)
	mustAppend(t, leader, idempotent(7, 0, 2, 2), 2)
	both := readBytes(t, leader, 0, everything)
	disk := vfs.NewFaulty(vfs.NewMemory())
	follower := open(t, testOptions(disk))
	disk.Inject(vfs.Fault{Op: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC})
	if _, err := follower.AppendFollower(both); err == nil {
		t.Fatal("a full disk takes records")
	}
	if epoch := follower.LatestEpoch(); epoch != protocol.NoLeaderEpoch {
		t.Errorf("a log without records is in epoch %d", epoch)
	}
	disk.Heal()
	if done, err := follower.AppendFollower(first); err != nil || done.Last != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// Batches of an old leader were stored and not published, as the disk was full in the middle of them. Those of the new
// leader are written in their place, and what stood behind must not come back as if the new one had written it.
func TestFailedAppendLeavesNoBatches(t *testing.T) {
	old, next := open(t, testOptions(vfs.NewMemory())), open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, old, sized(200), 5)
	mustAppend(t, next, sized(200), 5)
	cut := old.EndOffset()
	for range 3 {
		mustAppend(t, old, sized(200), 5)
	}
	mustAppend(t, next, sized(200), 7)
	disk := vfs.NewFaulty(vfs.NewMemory())
	o := testOptions(disk)
	l := open(t, o)
	first := readBytes(t, old, 0, cut)
	if _, err := l.AppendFollower(first); err != nil {
		t.Fatal(err)
	}
	disk.Inject(vfs.Fault{Op: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC, Short: 2*len(first) + 10})
	if _, err := l.AppendFollower(readBytes(t, old, cut, everything)); err == nil {
		t.Fatal("a full disk takes records")
	}
	disk.Heal()
	if _, err := l.AppendFollower(readBytes(t, next, cut, everything)); err != nil {
		t.Fatal(err)
	}
	end := l.EndOffset()
	l.CloseUnclean()
	o.Trust = SameBoot
	if l = open(t, o); l.EndOffset() != end {
		t.Errorf("the log ended at %d before a kill, and ends at %d after it", end, l.EndOffset())
	}
}

// TestFollowerFarGap: a gap that a segment's offsets cannot hold rolls to a new one.
func TestFollowerFarGap(t *testing.T) {
	fs := vfs.NewMemory()
	l := open(t, testOptions(fs))
	mustAppend(t, l, plain(1, 1), 0)
	far := plain(2, 1)
	far.SetBaseOffset(1 << 33)
	if _, err := l.AppendFollower(far); err != nil {
		t.Fatal(err)
	}
	if got := l.Segments(); len(got) != 2 || got[1].BaseOffset != 1<<33 {
		t.Fatalf("%+v", got)
	}
	s, err := l.Read(5, 1000, everything, true)
	if err != nil || s.Length != len(far) {
		t.Fatalf("%v %v", s, err)
	}
	s.Release()
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	if l = open(t, testOptions(fs)); l.EndOffset() != 1<<33+2 {
		t.Fatalf("end %d", l.EndOffset())
	}
}
