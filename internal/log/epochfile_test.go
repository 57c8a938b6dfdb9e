package log

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// epochsFile is the content of leader-epoch-checkpoint, empty where there is none.
func epochsFile(t *testing.T, l *Log) string {
	t.Helper()
	text, err := readSmall(l.fs, filepath.Join(l.Dir(), epochsName))
	if err != nil {
		return ""
	}
	return string(text)
}

// After a failover thousands of partitions have the first record of an epoch at once: it costs no file. Who starts
// again finds the epoch nevertheless, however the log was left, and however often it is left so.
func TestFirstRecordOfAnEpochCostsNoFile(t *testing.T) {
	for _, trust := range []Trust{SameBoot, Scan} {
		t.Run(fmt.Sprint(trust), func(t *testing.T) {
			o := testOptions(vfs.NewMemory())
			o.Config.IndexIntervalBytes = 0
			l := open(t, o)
			for epoch := range protocol.LeaderEpoch(3) {
				before := epochsFile(t, l)
				if err := l.AssignEpoch(2*epoch, l.EndOffset()); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					mustAppend(t, l, sized(200), 2*epoch)
				}
				if after := epochsFile(t, l); after != before {
					t.Errorf("the file went from %q to %q", before, after)
				}
				for range 2 {
					l.CloseUnclean()
					o.Trust = trust
					l = open(t, o)
				}
			}
			for epoch := range protocol.LeaderEpoch(3) {
				if got, end := l.EndOffsetForEpoch(2 * epoch); got != 2*epoch || end != protocol.Offset(3*epoch+3) {
					t.Errorf("epoch %d: %d, %d", 2*epoch, got, end)
				}
			}
		})
	}
}

// What may be looked at no more by the next start is in the file before.
func TestEpochsFileComesBeforeWhatIsTrusted(t *testing.T) {
	for name, settle := range map[string]func(*Log) error{
		"a sync":          (*Log).Flush,
		"a newer segment": (*Log).Roll,
		"a clean stop":    (*Log).CloseClean,
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, testOptions(vfs.NewMemory()))
			mustAppend(t, l, sized(200), 3)
			if err := settle(l); err != nil {
				t.Fatal(err)
			}
			if got := epochsFile(t, l); got != "0\n1\n3 0\n" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// A leader of epoch 6 got no record, and the file says so. It then follows a leader whose epoch 5 is longer: epoch 5 goes
// on, and still begins where it began.
func TestEpochGoesOnBehindOneWithoutRecords(t *testing.T) {
	leader := open(t, testOptions(vfs.NewMemory()))
	mustAppend(t, leader, sized(200), 3)
	mustAppend(t, leader, sized(200), 5)
	cut := leader.EndOffset()
	mustAppend(t, leader, sized(200), 5)
	mustAppend(t, leader, sized(200), 7)
	_, want := leader.EndOffsetForEpoch(3)
	for _, trust := range []Trust{SameBoot, Scan} {
		t.Run(fmt.Sprint(trust), func(t *testing.T) {
			o := testOptions(vfs.NewMemory())
			l := open(t, o)
			if _, err := l.AppendFollower(readBytes(t, leader, 0, cut)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(l.AssignEpoch(6, l.EndOffset()), l.Flush()); err != nil {
				t.Fatal(err)
			}
			l.CloseUnclean()
			o.Trust = trust
			l = open(t, o)
			if _, err := l.AppendFollower(readBytes(t, leader, cut, everything)); err != nil {
				t.Fatal(err)
			}
			l.CloseUnclean()
			l = open(t, o)
			if _, got := l.EndOffsetForEpoch(3); got != want {
				t.Errorf("epoch 3 ends at %d, and not at %d", got, want)
			}
		})
	}
}

// The epoch of a leadership stays noted where its first record finds no room.
func TestEpochOfALeadershipStays(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMemory())
	l := open(t, testOptions(disk))
	mustAppend(t, l, sized(200), 4)
	if err := l.AssignEpoch(6, l.EndOffset()); err != nil {
		t.Fatal(err)
	}
	disk.Inject(vfs.Fault{Op: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC})
	if _, err := l.AppendLeader(validated(sized(200)), 6); err == nil {
		t.Fatal("a full disk takes records")
	}
	if epoch, end := l.EndOffsetForEpoch(5); epoch != 4 || end != 1 {
		t.Errorf("epoch 5 ends in epoch %d at %d", epoch, end)
	}
}
