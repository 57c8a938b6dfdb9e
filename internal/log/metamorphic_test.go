package log

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// step is one operation of a history that several logs go through.
type step struct {
	what  string
	batch record.Batch
	epoch protocol.LeaderEpoch
	to    int // a share of the log in percent
}

// steps draws a history. Producers are kept simple: a sequence may be refused, and then is so everywhere.
func steps(t *rapid.T) []step {
	var out []step
	var epoch protocol.LeaderEpoch
	sequence := map[protocol.ProducerID]int32{}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		s := step{what: rapid.SampledFrom([]string{"append", "append", "append", "append", "transaction", "marker", "epoch", "truncate", "start", "watermark"}).Draw(t, "what")}
		id := rapid.Int64Range(1, 3).Draw(t, "producer")
		n := rapid.IntRange(1, 4).Draw(t, "records")
		s.to = rapid.IntRange(0, 100).Draw(t, "to")
		producer := protocol.ProducerID(id)
		records := make([]rec, n)
		for i := range records {
			records[i] = rec{rapid.Int64Range(1000, 1050).Draw(t, "time"), "k", strings.Repeat("v", rapid.IntRange(0, 300).Draw(t, "size"))}
		}
		o := record.BuilderOptions{
			Idempotent: true, ProducerID: producer, BaseSequence: sequence[producer],
			Codec: record.Codec(rapid.IntRange(0, 1).Draw(t, "codec") * int(record.Lz4)), Transactional: s.what == "transaction",
		}
		switch s.what {
		case "append", "transaction":
			s.batch = batchOf(o, records...)
			sequence[producer] += int32(n)
		case "marker":
			s.batch = marker(producer, 0, s.to%2 == 0, 0)
		case "epoch":
			epoch++
		}
		s.epoch = epoch
		out = append(out, s)
	}
	return out
}

// way is a set of options, and what else is done that must not show.
type way struct {
	name      string
	configure func(*Options)
	between   func(*testing.T, *Log, Options) *Log
}

// ways are the option sets that histories run on.
var ways = []way{
	{name: "one segment", configure: func(o *Options) { o.Config.SegmentBytes = 1 << 30 }},
	{name: "small segments, one open file", configure: func(o *Options) {
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Files = 1500, 0, NewFileCache(1)
	}},
	{name: "sparse index, always at rest", configure: func(o *Options) { o.Config.IndexIntervalBytes = 1 << 20 },
		between: func(_ *testing.T, l *Log, _ Options) *Log {
			l.Rest()
			l.files.CloseIdle()
			return l
		}},
	{name: "synced always", configure: func(o *Options) { o.Config.FlushMessages = 1 }},
	{name: "opened again each time", between: func(t *testing.T, l *Log, o Options) *Log {
		if err := l.CloseClean(); err != nil {
			t.Fatal(err)
		}
		return openAgain(t, l, o, Clean)
	}},
	{name: "killed each time", configure: func(o *Options) { o.Config.SegmentBytes = 2000 },
		between: func(t *testing.T, l *Log, o Options) *Log {
			l.CloseUnclean()
			return openAgain(t, l, o, SameBoot)
		}},
	{name: "scanned each time", between: func(t *testing.T, l *Log, o Options) *Log {
		l.CloseUnclean()
		o.RecoveryPoint = 0
		return openAgain(t, l, o, Scan)
	}},
	{name: "flushed each time", between: func(t *testing.T, l *Log, _ Options) *Log {
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		return l
	}},
}

// openAgain opens with the checkpoints that a directory would have.
func openAgain(t *testing.T, l *Log, o Options, trust Trust) *Log {
	o.Trust, o.StartOffset, o.HighWatermark = trust, l.StartOffset(), l.HighWatermark()
	if trust == SameBoot {
		o.RecoveryPoint = l.RecoveryPoint()
	}
	return open(t, o)
}

// run takes a log through a history and prints all that can be seen of it.
func (w way) run(t *testing.T, history []step) string {
	o := testOptions(vfs.NewMemory())
	if w.configure != nil {
		w.configure(&o)
	}
	l := open(t, o)
	var seen bytes.Buffer
	for _, s := range history {
		span := int(l.EndOffset() - l.StartOffset())
		at := l.StartOffset() + protocol.Offset(span*s.to/100)
		switch s.what {
		case "append", "transaction", "marker":
			done, err := l.AppendLeader(validated(slices.Clone(s.batch)), s.epoch)
			if done.SyncDue {
				err = errors.Join(err, l.Sync(done.Last+1))
				done.SyncDue = false // all that differs from a log that is not synced
			}
			fmt.Fprintf(&seen, "%s %+v %s\n", s.what, done, protocol.CodeOf(err).Name())
		case "truncate":
			fmt.Fprintf(&seen, "truncate %v\n", l.TruncateTo(at))
		case "start":
			fmt.Fprintf(&seen, "start %v\n", l.AdvanceStart(min(at, l.HighWatermark())))
		case "watermark":
			l.SetHighWatermark(at)
		}
		fmt.Fprintf(&seen, "%d to %d, watermark %d, stable %d\n", l.StartOffset(), l.EndOffset(), l.HighWatermark(), l.LastStableOffset())
		if w.between != nil {
			l = w.between(t, l, o)
		}
	}
	fmt.Fprintf(&seen, "%x\n%+v\n", readBytes(t, l, l.StartOffset(), everything), l.Producers())
	aborted, err := l.Aborted(l.StartOffset(), everything)
	fmt.Fprintf(&seen, "%v %v\n", aborted, err)
	for at := int64(1000); at <= 1050; at += 7 {
		found, ok, err := l.OffsetForTime(at)
		fmt.Fprintf(&seen, "%d: %+v %v %v\n", at, found, ok, err)
	}
	for e := range protocol.LeaderEpoch(8) {
		if l.EndOffset() == l.StartOffset() {
			break // an empty log may know the epoch of the record before its start, or not
		}
		epoch, end := l.EndOffsetForEpoch(e)
		fmt.Fprintf(&seen, "epoch %d: %d %d\n", e, epoch, end)
	}
	return seen.String()
}

// TestSameHistorySameLog takes random histories through option sets that must not matter.
func TestSameHistorySameLog(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history := steps(r)
		want := ways[0].run(t, history)
		for _, w := range ways[1:] {
			if got := w.run(t, history); got != want {
				r.Fatalf("%s: %s", w.name, firstDifference(strings.Split(got, "\n"), strings.Split(want, "\n")))
			}
		}
	})
}
