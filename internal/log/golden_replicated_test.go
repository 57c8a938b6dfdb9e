package log

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// A follower takes over a log of any format byte by byte, in whatever pieces it comes, with segments of its own, and has the
// same records, offsets, times and epochs.
func TestGoldenReplicated(t *testing.T) {
	for _, name := range []string{"2.8.2-zk-message-v0-v1-clean", "3.9.2-zk-clean"} {
		g := loadGolden(t, name)
		uncommitted := g.records(t, "expected-read_uncommitted.jsonl")
		offsets := g.offsets(t, "offsets.jsonl")
		for _, tp := range g.partitions(t) {
			for _, segment := range []int{8 << 10, 1 << 20} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, tp, segment), func(t *testing.T) {
					leader := open(t, g.options(t, tp, Clean))
					o := g.options(t, tp, Clean)
					o.FS, o.Config.SegmentBytes = vfs.NewMemory(), int32(segment)
					follower := open(t, o)
					whole := readBytes(t, leader, leader.StartOffset(), everything)
					for e, err := range record.Entries(whole) {
						if err != nil {
							t.Fatal(err)
						}
						if _, err := follower.AppendFollower(e.Bytes); err != nil {
							t.Fatal(err)
						}
					}
					follower.SetHighWatermark(leader.HighWatermark())
					checkGolden(t, follower, uncommitted[tp], nil, offsets[tp])
					for _, trust := range []Trust{SameBoot, Scan, Clean} {
						if trust == Clean {
							if err := follower.CloseClean(); err != nil {
								t.Fatal(err)
							}
						} else {
							follower.CloseUnclean()
						}
						o.Trust, o.HighWatermark = trust, leader.HighWatermark()
						follower = open(t, o)
						if got := readBytes(t, follower, follower.StartOffset(), everything); !bytes.Equal(got, whole) {
							t.Errorf("%s: %d bytes, and not the %d of the leader", trust, len(got), len(whole))
						}
						if got, want := follower.LatestEpoch(), leader.LatestEpoch(); got != want {
							t.Errorf("%s: the latest epoch is %d, and not %d", trust, got, want)
						}
					}
				})
			}
		}
	}
}

// Where messages of format 1 come behind batches, the epochs of those say nothing any more.
func TestFormatGoesBack(t *testing.T) {
	g := loadGolden(t, "2.8.2-zk-message-v0-v1-clean")
	old := open(t, g.options(t, protocol.TopicPartition{Topic: "v1-none"}, Clean))
	l := open(t, testOptions(vfs.NewMemory()))
	whole := readBytes(t, old, 0, everything)
	var first record.Entry
	for first = range record.Entries(whole) {
		break
	}
	for range 2 {
		b := plain(1, 5)
		b.SetBaseOffset(l.EndOffset())
		b.SetLeaderEpoch(3)
		if _, err := l.AppendFollower(b); err != nil {
			t.Fatal(err)
		}
		message := bytes.Clone(first.Bytes)
		record.Batch(message).SetBaseOffset(l.EndOffset()) // not covered by the CRC
		if l.LatestEpoch() != 3 {
			t.Errorf("latest epoch %d behind a batch", l.LatestEpoch())
		}
		if _, err := l.AppendFollower(message); err != nil {
			t.Fatal(err)
		}
		if l.LatestEpoch() != protocol.NoLeaderEpoch {
			t.Errorf("latest epoch %d behind a message", l.LatestEpoch())
		}
	}
	message := bytes.Clone(first.Bytes)
	record.Batch(message).SetBaseOffset(l.EndOffset())
	message[len(message)-1] ^= 1
	if _, err := l.AppendFollower(message); protocol.CodeOf(err) != protocol.CorruptMessage || errors.Is(err, nil) {
		t.Errorf("a damaged message: %v", err)
	}
}
