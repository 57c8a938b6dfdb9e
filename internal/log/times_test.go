package log

import (
	"fmt"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestOffsetForTime: BR-208, the first record at or above the time; BR-183, none above the last.
func TestOffsetForTime(t *testing.T) {
	fs := vfs.NewMemory()
	l := open(t, testOptions(fs))
	for i := range 200 {
		mustAppend(t, l, batchOf(record.BuilderOptions{Codec: record.Codec(i % 3)}, rec{int64(4*i + 2), "k", "v"}, rec{int64(4*i + 4), "k", "v"}), 3)
	}
	check := func(l *Log) {
		t.Helper()
		for at := int64(-1); at <= 802; at++ {
			got, ok, err := l.OffsetForTime(at)
			if err != nil {
				t.Fatal(err)
			}
			want := protocol.Offset((max(at, 1) - 1) / 2)
			if at > 800 {
				if ok || got != notFound {
					t.Fatalf("time %d: %+v", at, got)
				}
				continue
			}
			if !ok || got.Offset != want || got.Timestamp != int64(want)*2+2 || got.Epoch != 3 {
				t.Fatalf("time %d: %+v, expected offset %d", at, got, want)
			}
		}
		if got, err := l.MaxTimestamp(); err != nil || got != (Found{399, 800, 3}) {
			t.Fatalf("max timestamp %+v %v", got, err)
		}
	}
	check(l)
	if len(l.Segments()) < 3 {
		t.Fatal("too few segments")
	}
	if err := l.CloseClean(); err != nil {
		t.Fatal(err)
	}
	l = open(t, testOptions(fs))
	check(l)
	if err := l.AdvanceStart(l.HighWatermark()); err != nil {
		t.Fatal(err)
	}
	l.SetHighWatermark(101)
	if err := l.AdvanceStart(101); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.OffsetForTime(1); err != nil || !ok || got.Offset != 101 {
		t.Fatalf("%+v %v %v, the log begins at 101", got, ok, err)
	}
}

// TestMaxTimestamp: BR-160.
func TestMaxTimestamp(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip} {
		fs := vfs.NewMemory()
		l := open(t, testOptions(fs))
		if got, err := l.MaxTimestamp(); err != nil || got != notFound {
			t.Fatalf("empty: %+v %v", got, err)
		}
		if got, ok, err := l.OffsetForTime(0); err != nil || ok || got != notFound {
			t.Fatalf("empty: %+v %v", got, err)
		}
		mustAppend(t, l, plain(5, 1), 0)
		mustAppend(t, l, batchOf(record.BuilderOptions{Codec: codec}, rec{10, "a", "1"}, rec{30, "b", "2"}, rec{20, "c", "3"}), 0)
		mustAppend(t, l, plain(2, 5), 0)
		for range 2 {
			if got, err := l.MaxTimestamp(); err != nil || got != (Found{6, 30, 0}) {
				t.Fatalf("%s: %+v %v", codec, got, err)
			}
			if err := l.CloseClean(); err != nil {
				t.Fatal(err)
			}
			l = open(t, testOptions(fs))
		}
		append1 := batchOf(record.BuilderOptions{TimestampType: record.LogAppendTime, AppendTime: 99}, rec{1, "a", "1"}, rec{2, "b", "2"})
		mustAppend(t, l, append1, 0)
		if got, err := l.MaxTimestamp(); err != nil || got != (Found{10, 99, 0}) {
			t.Fatalf("%s: %+v %v", codec, got, err)
		}
	}
}

// TestRolls holds every reason for a new segment.
func TestRolls(t *testing.T) {
	day := 24 * time.Hour.Milliseconds()
	for _, test := range []struct {
		name      string
		configure func(*Options)
		batches   []record.Batch
		segments  int
	}{
		{"size", func(o *Options) { o.Config.SegmentBytes = 300 }, []record.Batch{plain(4, 1), plain(4, 1), plain(4, 1)}, 2},
		{"records' time", nil, []record.Batch{plain(1, 1000), plain(1, 1000+7*day), plain(1, 1001+7*day), plain(1, 1001)}, 2},
		{"a full index", func(o *Options) { o.Config.IndexBytes, o.Config.IndexIntervalBytes = 48, 0 }, []record.Batch{
			plain(1, 1), plain(1, 1), plain(1, 1), plain(1, 1), plain(1, 1), plain(1, 1), plain(1, 1), plain(1, 1),
		}, 2},
		{"a full time index", func(o *Options) { o.Config.IndexBytes, o.Config.IndexIntervalBytes = 36, 0 }, []record.Batch{plain(1, 1), plain(1, 2), plain(1, 3), plain(1, 4), plain(1, 5)}, 2},
		{"no reason", nil, []record.Batch{plain(1, 1), plain(1, 1)}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := testOptions(vfs.NewMemory())
			if test.configure != nil {
				test.configure(&o)
			}
			l := open(t, o)
			for _, b := range test.batches {
				mustAppend(t, l, b, 0)
			}
			if got := l.Segments(); len(got) != test.segments {
				t.Fatalf("%+v", got)
			}
			for _, s := range l.Segments() {
				if s.Size > int64(o.Config.SegmentBytes) {
					t.Fatalf("%+v", s)
				}
			}
		})
	}
}

// TestRollByClock: without timestamps the age of the segment counts; jitter takes off some of it.
func TestRollByClock(t *testing.T) {
	now := testTime
	o := testOptions(vfs.NewMemory())
	o.Now = func() time.Time { return now }
	l := open(t, o)
	without := func() record.Batch { return batchOf(record.BuilderOptions{}, rec{-1, "k", "v"}) }
	mustAppend(t, l, without(), 0)
	now = now.Add(o.Config.SegmentAge)
	mustAppend(t, l, without(), 0)
	if n := len(l.Segments()); n != 1 {
		t.Fatalf("%d segments", n)
	}
	now = now.Add(time.Millisecond)
	mustAppend(t, l, without(), 0)
	if n := len(l.Segments()); n != 2 {
		t.Fatalf("%d segments", n)
	}
	seen := map[time.Duration]bool{}
	for i := range int32(20) {
		j := segmentJitter(protocol.TopicPartition{Topic: "t", Partition: i}, 0, time.Hour, time.Minute)
		if j < 0 || j >= time.Minute {
			t.Fatalf("jitter %s", j)
		}
		seen[j] = true
	}
	if len(seen) < 15 {
		t.Fatalf("%d different jitters of 20", len(seen))
	}
	if j := segmentJitter(protocol.TopicPartition{}, 0, time.Hour, 0); j != 0 {
		t.Fatalf("jitter %s", j)
	}
}

func TestEpochs(t *testing.T) {
	var list epochs
	for _, e := range []epochEntry{{0, 0}, {2, 10}, {5, 20}} {
		list, _ = list.assign(e.epoch, e.start)
	}
	for _, test := range []struct {
		asked, epoch protocol.LeaderEpoch
		end          protocol.Offset
	}{
		{-1, -1, -1}, {0, 0, 10}, {1, 0, 10}, {2, 2, 20}, {3, 2, 20}, {4, 2, 20}, {5, 5, 33}, {6, -1, -1},
	} {
		if epoch, end := list.endOffset(test.asked, 33); epoch != test.epoch || end != test.end {
			t.Errorf("epoch %d: %d ends at %d, expected %d at %d", test.asked, epoch, end, test.epoch, test.end)
		}
	}
	moved, _ := list.truncateStart(15)
	if epoch, end := moved.endOffset(1, 33); epoch != 1 || end != 15 {
		t.Errorf("an epoch below the first: %d ends at %d", epoch, end)
	}
	if epoch, end := (epochs)(nil).endOffset(0, 7); epoch != -1 || end != -1 {
		t.Errorf("nothing known: %d ends at %d", epoch, end)
	}
	for _, test := range []struct {
		change epochs
		want   string
	}{
		{list, "[{0 0} {2 10} {5 20}]"},
		{moved, "[{2 15} {5 20}]"},
		{first(list.truncateStart(10)), "[{2 10} {5 20}]"},
		{first(list.truncateStart(100)), "[{5 100}]"},
		{first(list.truncateEnd(20)), "[{0 0} {2 10}]"},
		{first(list.truncateEnd(0)), "[]"},
		{first(list.assign(5, 25)), "[{0 0} {2 10} {5 20}]"}, // known
		{first(list.assign(5, 15)), "[{0 0} {2 10} {5 15}]"}, // earlier than known
		{first(list.assign(6, 10)), "[{0 0} {6 10}]"},        // nothing was written since 10
		{first(list.assign(3, 30)), "[{0 0} {2 10} {3 30}]"}, // the newest word counts
	} {
		if got := fmt.Sprint([]epochEntry(test.change)); got != test.want {
			t.Errorf("%s, expected %s", got, test.want)
		}
	}
	again, err := parseEpochs(list.format())
	if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
		t.Errorf("%v %v", again, err)
	}
}

func first(list epochs, _ bool) epochs { return list }

func FuzzEpochs(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n3 17\n"))
	f.Add([]byte("0\n1\n0 0\n9 9\n"))
	f.Add([]byte("0\n0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseEpochs(text)
		if err != nil {
			return
		}
		for i := 1; i < len(list); i++ {
			if list[i].epoch <= list[i-1].epoch || list[i].start <= list[i-1].start {
				t.Fatalf("%v", list)
			}
		}
		if again, err := parseEpochs(list.format()); err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Fatalf("%v %v", again, err)
		}
	})
}
