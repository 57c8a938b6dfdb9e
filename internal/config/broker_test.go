package config

import (
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	b := Default()
	topic, err := b.Topic(nil)
	if err != nil {
		t.Fatal(err)
	}
	week := 7 * 24 * time.Hour
	if topic.SegmentBytes != 1<<30 || topic.RetentionAge != week || topic.SegmentAge != week || !topic.Delete || topic.Compact {
		t.Errorf("%+v", topic)
	}
	if b.Duration("log.retention.ms") != week || b.Int("num.partitions") != 1 || !b.Bool("auto.create.topics.enable") {
		t.Error("wrong")
	}
}
