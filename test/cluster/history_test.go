package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var one = topicPartition{orders, 1}

// told is a history in which two idempotent records and two plain ones were acknowledged, and read.
func told() (*history, map[topicPartition][]identity) {
	h := newHistory()
	log := []identity{{2, 1}, {3, 7}, {2, 2}, {3, 6}}
	for offset, id := range log {
		h.acknowledged(one, int64(offset), id, time.Now())
		h.consumed(one, int64(offset), id)
	}
	return h, map[topicPartition][]identity{one: log}
}

// contradiction is what the history has noted.
func (h *history) contradiction() string {
	select {
	case err := <-h.broken:
		return err.Error()
	default:
		return ""
	}
}

func TestCompareFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*history, map[topicPartition][]identity)
		want  string
	}{
		"nothing is": {func(*history, map[topicPartition][]identity) {}, ""},
		"lost": {func(_ *history, found map[topicPartition][]identity) { found[one] = found[one][:3] },
			"{producer:3 sequence:6} was acknowledged at offset 3, where there is {producer:0 sequence:0}"},
		"replaced": {func(_ *history, found map[topicPartition][]identity) { found[one][1] = identity{3, 8} },
			"{producer:3 sequence:7} was acknowledged at offset 1, where there is {producer:3 sequence:8}"},
		"read and gone": {func(h *history, _ map[topicPartition][]identity) { h.consumed(one, 4, identity{5, 1}) },
			"{producer:5 sequence:1} was read at offset 4"},
		"refused and there": {func(h *history, found map[topicPartition][]identity) {
			h.failed(identity{3, 9}, true)
			found[one] = append(found[one], identity{3, 9})
		}, "was refused"},
		"unknown and there": {func(h *history, found map[topicPartition][]identity) {
			h.failed(identity{3, 9}, false)
			found[one] = append(found[one], identity{3, 9})
		}, ""},
		"twice": {func(_ *history, found map[topicPartition][]identity) { found[one] = append(found[one], identity{3, 6}) }, "as well"},
		"twice in two partitions": {func(_ *history, found map[topicPartition][]identity) {
			found[topicPartition{orders, 2}] = []identity{{3, 6}}
		}, "as well"},
		"out of order": {func(_ *history, found map[topicPartition][]identity) {
			found[one] = append(found[one], identity{2, 4}, identity{2, 3})
		}, "comes after 4"},
	} {
		t.Run(name, func(t *testing.T) {
			h, found := told()
			c.spoil(h, found)
			_, err := h.compare(found)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestHistoryFindsContradictions(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*history)
		want  string
	}{
		"none": {func(h *history) { h.consumed(one, 2, identity{2, 2}) }, ""},
		"two acknowledged at one offset": {func(h *history) { h.acknowledged(one, 2, identity{5, 1}, time.Now()) },
			"were both acknowledged at offset 2"},
		"read as two": {func(h *history) { h.consumed(one, 2, identity{5, 1}) }, "offset 2 was read as"},
		"a gap":       {func(h *history) { h.consumed(one, 6, identity{5, 1}) }, "nobody has read 4"},
		"read, then acknowledged there": {func(h *history) {
			h.consumed(one, 4, identity{5, 1})
			h.acknowledged(one, 4, identity{5, 2}, time.Now())
		}, "had been read"},
		"watermark falls":                {func(h *history) { h.high(one, mark{3, 10}); h.high(one, mark{3, 9}) }, "high watermark is 9"},
		"watermark falls in a new epoch": {func(h *history) { h.high(one, mark{3, 10}); h.high(one, mark{4, 9}) }, "high watermark is 9"},
		"an old leader's watermark":      {func(h *history) { h.high(one, mark{4, 10}); h.high(one, mark{3, 9}) }, ""},
		"watermarks of an old leader fall": {func(h *history) {
			h.high(one, mark{3, 9})
			h.high(one, mark{4, 10})
			h.high(one, mark{3, 8})
		}, "high watermark is 8"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := told()
			c.spoil(h)
			if got := h.contradiction(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTooLittleProvesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil     func(*history)
		unwatched bool
		want      string
	}{
		"enough":                     {spoil: func(*history) {}},
		"few records":                {spoil: func(h *history) { h.acks-- }, want: "399 records acknowledged and 200 read in 2 rounds"},
		"few readers":                {spoil: func(h *history) { h.reads-- }, want: "400 records acknowledged and 199 read in 2 rounds"},
		"no watermark":               {spoil: func(h *history) { h.marks = 0 }, want: "a high watermark"},
		"no look at the tree":        {spoil: func(h *history) { h.trees = 0 }, want: "ZooKeeper's tree"},
		"a tree that nobody watches": {spoil: func(h *history) { h.trees = 0 }, unwatched: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := history{acks: 2 * leastRecords, reads: 2 * leastReads, marks: 1, trees: 1}
			c.spoil(&h)
			err := h.enough(2, !c.unwatched)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The longest time without an acknowledgement is that of the partition that waited longest.
func TestLongestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		other := topicPartition{orders, 2}
		for i, step := range []struct {
			tp    topicPartition
			after time.Duration
		}{{one, 0}, {other, time.Second}, {one, 2 * time.Second}, {other, 4 * time.Second}, {topicPartition{moved, 0}, 0}, {topicPartition{moved, 0}, time.Minute}} {
			time.Sleep(step.after)
			h.acknowledged(step.tp, int64(i), identity{1, uint64(i + 1)}, time.Now())
		}
		if got := h.longestGap(orders); got.length != 6*time.Second || got.partition != other || time.Since(got.end) != time.Minute {
			t.Errorf("%+v, want the 6 s between the second and the fourth", got)
		}
	})
}
