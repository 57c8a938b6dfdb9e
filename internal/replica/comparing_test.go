package replica

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// message is a message of format 1 with a value.
func message(offset protocol.Offset, value string) []byte {
	b := make([]byte, 12, 64)
	binary.BigEndian.PutUint64(b, uint64(offset))
	body := []byte{1, 0}                                           // magic, attributes
	body = binary.BigEndian.AppendUint64(body, 1_400_000_000_000)  // timestamp
	body = binary.BigEndian.AppendUint32(body, 0xffffffff)         // no key
	body = binary.BigEndian.AppendUint32(body, uint32(len(value))) // value
	body = append(body, value...)
	binary.BigEndian.PutUint32(b[8:], uint32(4+len(body)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(body))
	return append(b, body...)
}

// oldLogs gives brokers logs that a Kafka of years ago has written, one letter a message, with the watermark as given; then
// the first one leads in epoch 5.
func oldLogs(t *testing.T, watermark protocol.Offset, values ...string) *couple {
	t.Helper()
	c := newCouple(t, len(values))
	for i, s := range c.stages {
		settings, err := config.Default().Topic(nil)
		s.must(err)
		l, err := s.dirs.Create(tp("t"), s.id("t"), settings)
		s.must(err)
		for _, value := range values[i] {
			_, err := l.AppendFollower(message(l.EndOffset(), string(value)))
			s.must(err)
		}
		l.SetHighWatermark(watermark)
	}
	c.elect(1, 5, 1)
	return c
}

// catchUp lets broker 2 fetch from 1, until it is at the end or stops, and returns what it did. look is called in between.
func (c *couple) catchUp(look func()) (did []partition.Kind) {
	c.t.Helper()
	for range 20 {
		at := c.at(2)
		if _, ok := at.position(5); !ok {
			return did
		}
		step := c.fetch(2, 1)
		if did = append(did, step.Kind); step.Kind == partition.AskBounds {
			b := c.at(1).Bounds()
			step = at.outOfRange(5, b.Start, b.End)
			did = append(did, step.Kind)
		}
		look()
		if end := c.at(1).Bounds().End; at.Bounds().End == end && !at.comparison.active {
			break
		}
	}
	return did
}

// A follower whose records have no epoch keeps what is the leader's, from the watermark on, and cuts the rest.
func TestFollowerOfOldFormats(t *testing.T) {
	for _, test := range []struct {
		name         string
		theirs, ours string
		watermark    protocol.Offset
		// cuts says that it has records to cut.
		cuts bool
	}{
		{name: "the same", theirs: "abcde", ours: "abcde", watermark: 2},
		{name: "behind", theirs: "abcdefgh", ours: "abcde", watermark: 2},
		{name: "empty", theirs: "abcde", ours: "", watermark: 0},
		{name: "other records", theirs: "abcde", ours: "abcxy", watermark: 2, cuts: true},
		{name: "other records at the watermark", theirs: "abcde", ours: "abxyz", watermark: 2, cuts: true},
		{name: "more of them", theirs: "abcd", ours: "abcdefg", watermark: 2, cuts: true},
		{name: "all committed", theirs: "abcde", ours: "abc", watermark: 3},
		{name: "nothing known to be committed", theirs: "abcde", ours: "abcx", watermark: 0, cuts: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := oldLogs(t, test.watermark, test.theirs, test.ours)
			least := c.at(2).Log().EndOffset()
			did := c.catchUp(func() { least = min(least, c.at(2).Log().EndOffset()) })
			if cuts := least < protocol.Offset(len(test.ours)); cuts != test.cuts || least < test.watermark {
				t.Errorf("its log ended at %d meanwhile: %v", least, did)
			}
			if got, want := c.contents(2), c.contents(1); got != want {
				t.Errorf("%v left\n%s and not\n%s", did, got, want)
			}
			c.fetch(2, 1)
			c.wantBounds(2, c.at(1).Bounds().HighWatermark, c.at(1).Bounds().End)
			// What is written from now on has epochs.
			c.write(1, 2)
			c.fetch(2, 1)
			if got := c.at(2).Log().LatestEpoch(); got != 5 || c.contents(2) != c.contents(1) {
				t.Errorf("epoch %d, %s", got, c.contents(2))
			}
		})
	}
}

// The leader hears of no more than what has been compared.
func TestFollowerOfOldFormatsClaimsNothing(t *testing.T) {
	c := oldLogs(t, 2, "abcde", "abcxy")
	at, ok := c.at(2).position(5)
	if !ok || at.offset != 2 || at.last != protocol.NoLeaderEpoch {
		t.Errorf("it fetches at %+v", at)
	}
}

// Below its watermark it does not cut: it stops, and says so.
func TestFollowerOfOldFormatsStops(t *testing.T) {
	c := oldLogs(t, 4, "abc", "abcdef")
	did := c.catchUp(func() {})
	if last := did[len(did)-1]; last != partition.Halt {
		t.Errorf("it did %v", did)
	}
	err := c.at(2).CheckReplica(5)
	if want := "lacks records from offset 3 on that are committed up to 4 here"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if got := c.at(2).Log().EndOffset(); got != 6 {
		t.Errorf("its log ends at %d", got)
	}
}

// The leader has deleted what could be compared: that was committed.
func TestFollowerOfOldFormatsBehindTheStart(t *testing.T) {
	c := oldLogs(t, 2, "abcdefgh", "abcde")
	leader := c.at(1)
	leader.Log().SetHighWatermark(8)
	if err := leader.Log().AdvanceStart(4); err != nil {
		t.Fatal(err)
	}
	c.catchUp(func() {})
	if b := c.at(2).Bounds(); b.End != 8 {
		t.Errorf("%+v", b)
	}
}

// A log without epochs is led, and says no epoch of records that have none.
func TestLeaderOfOldFormats(t *testing.T) {
	c := oldLogs(t, 2, "abc", "")
	l := c.at(1).Log()
	if got := fmt.Sprint(l.EpochAt(2), l.LatestEpoch()); got != "-1 5" {
		t.Error(got)
	}
}
