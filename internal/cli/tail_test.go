package cli

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTailKeepsTheLast feeds more records than are held at once, in an order that is not theirs.
func TestTailKeepsTheLast(t *testing.T) {
	const records, wanted = 3 * trimAt, 10
	last := tail{keep: func(r *kgo.Record) bool { return r.Offset%2 == 0 }, most: wanted}
	for i := range int64(records) {
		offset := i * 7919 % records
		if err := last.take(&kgo.Record{Topic: "t", Offset: offset, Timestamp: time.UnixMilli(offset)}); err != nil {
			t.Fatal(err)
		}
		if len(last.records) > wanted+trimAt+1 {
			t.Fatalf("%d records are held", len(last.records))
		}
	}
	got := last.last()
	if len(got) != wanted {
		t.Fatalf("%d records, expected %d", len(got), wanted)
	}
	for i, r := range got {
		if want := int64(records - 2*(wanted-i)); r.Offset != want {
			t.Errorf("record %d is at %d, expected %d", i, r.Offset, want)
		}
	}
}

func TestTopicPartitions(t *testing.T) {
	topic, numbers, err := parseTopicPartitions("orders:0,7")
	if err != nil || topic != "orders" || len(numbers) != 2 || numbers[1] != 7 {
		t.Errorf("%s %v %v", topic, numbers, err)
	}
	if topic, numbers, err := parseTopicPartitions("orders"); err != nil || topic != "orders" || numbers != nil {
		t.Errorf("%s %v %v", topic, numbers, err)
	}
	for _, given := range []string{"", ":1", "orders:", "orders:x", "orders:-1", "orders:1,,2", "orders:99999999999"} {
		if _, _, err := parseTopicPartitions(given); err == nil {
			t.Errorf("%q is taken", given)
		}
	}
}

func TestLogLevels(t *testing.T) {
	previous := logLevel("trace")
	for _, name := range []string{"debug", "INFO", "warn", "Error", "fatal", "off"} {
		level := logLevel(name)
		if level <= previous {
			t.Errorf("%s is %v, not above %v", name, level, previous)
		}
		previous = level
	}
}
