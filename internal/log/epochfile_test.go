package log

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
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

// An epoch that begins far into a large segment is found where it begins, although recovery looks over only the first part
// of what is below the recovery point.
func TestLostEpochsOfALargeSegment(t *testing.T) {
	o := testOptions(vfs.NewMemory())
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 1<<30, 4096
	l := open(t, o)
	large := sized(1 << 20)
	for l.Size() <= lookOverMax {
		mustAppend(t, l, large, 3)
	}
	begins := l.EndOffset()
	for range 3 {
		mustAppend(t, l, large, 5)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	o.RecoveryPoint, o.Trust = l.RecoveryPoint(), Scan
	mustAppend(t, l, large, 5)
	l.CloseUnclean()
	if err := o.FS.Remove(filepath.Join(l.Dir(), epochsName)); err != nil {
		t.Fatal(err)
	}
	l = open(t, o)
	if epoch, end := l.EndOffsetForEpoch(4); epoch != 3 || end != begins {
		t.Errorf("epoch 4 ends in epoch %d at %d, and not at %d", epoch, end, begins)
	}
}

// A power cut takes the newest leader-epoch-checkpoint, the disk is full at the next start, and that start is killed: the
// one after it knows the epochs of closed segments nevertheless.
func TestEpochsSurviveAStartOnAFullDisk(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMemory())
	o := testOptions(disk)
	l := open(t, o)
	mustAppend(t, l, sized(200), 3)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	before := epochsFile(t, l)
	mustAppend(t, l, sized(200), 3)
	begins := l.EndOffset()
	mustAppend(t, l, sized(200), 5)
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, sized(200), 5)
	l.CloseUnclean()
	writeFile(t, disk, filepath.Join(l.Dir(), epochsName), []byte(before))
	heal := disk.Inject(vfs.Fault{Op: vfs.OpWrite, Path: "*" + epochsName + "*", Err: syscall.ENOSPC})
	o.Trust = Scan
	if l, err := Open(o); err == nil {
		l.CloseUnclean()
		o.Trust = SameBoot // who could not be opened is not trusted the next time
	}
	heal()
	l = open(t, o)
	if epoch, end := l.EndOffsetForEpoch(4); epoch != 3 || end != begins {
		t.Errorf("epoch 4 ends in epoch %d at %d, and not at %d", epoch, end, begins)
	}
}

// A directory that was in use before leader-epoch-checkpoint had anything in it says nothing about that, however many
// partitions there are.
func TestEmptyEpochsFileIsNoNews(t *testing.T) {
	o := testOptions(vfs.NewMemory())
	l := open(t, o)
	mustAppend(t, l, sized(200), 3)
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	o.Logger = slog.New(slog.NewTextHandler(said, nil))
	for _, text := range []string{"", "0\n1\n3"} {
		writeFile(t, o.FS, filepath.Join(l.Dir(), epochsName), []byte(text))
		o.Trust = SameBoot
		l = open(t, o)
		if l.LatestEpoch() != 3 {
			t.Errorf("with %q the latest epoch is %d", text, l.LatestEpoch())
		}
		l.CloseUnclean()
		if warned := strings.Contains(said.String(), "rebuilding leader epochs"); warned != (text != "") {
			t.Errorf("with %q it said %q", text, said)
		}
	}
}
