package config

import (
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestTopicFallsBackToTheBroker(t *testing.T) {
	b := load(t, "log.retention.minutes=30\nlog.retention.hours=9\nlog.roll.hours=2\nlog.flush.scheduler.interval.ms=500\nlog.cleanup.policy=\nmessage.max.bytes=7")
	topic, err := b.Topic(map[string]string{"segment.ms": "1000", "retention.bytes": "-7"})
	if err != nil || topic.RetentionAge != 30*time.Minute || topic.SegmentAge != time.Second || topic.FlushInterval != 500*time.Millisecond ||
		topic.Delete || topic.Compact || topic.MaxMessageBytes != 7 || topic.RetentionBytes != -7 {
		t.Errorf("%v %+v", err, topic)
	}
	if b.Duration("log.retention.ms") != 30*time.Minute || b.Duration("offsets.retention.minutes") != 7*24*time.Hour || b.Duration("quota.window.size.seconds") != time.Second {
		t.Error("durations are wrong")
	}
	for file, want := range map[string]time.Duration{"log.retention.ms=-2": NoLimit, "log.retention.minutes=-1": NoLimit, "log.retention.hours=1": time.Hour} {
		if topic, _ := load(t, file).Topic(nil); topic.RetentionAge != want {
			t.Errorf("%s: %v", file, topic.RetentionAge)
		}
	}
}

// What the store holds may be older than a bound, or wrong: the topic must work all the same.
func TestTopicOfTheStoreIsLenient(t *testing.T) {
	b := Default()
	topic, err := b.Topic(map[string]string{"segment.bytes": "16384", "retention.ms": "abc", "cleanup.policy": "compact,compact", "unknown": "x", "message.format.version": "0.10.0", "flush.ms": "-1"})
	if protocol.CodeOf(err) != protocol.InvalidConfig || topic.SegmentBytes != 16384 || topic.RetentionAge != 7*24*time.Hour || !topic.Compact || topic.Delete {
		t.Errorf("%v %+v", err, topic)
	}
	topic, err = b.Topic(map[string]string{"internal.segment.bytes": "100", "segment.bytes": "2097152"})
	if err != nil || topic.SegmentBytes != 100 {
		t.Error(topic.SegmentBytes, err)
	}
}

func TestOlderTimestampLimit(t *testing.T) {
	const older = "message.timestamp.difference.max.ms"
	for _, c := range []struct {
		file          string
		own           map[string]string
		before, after time.Duration
	}{
		{"", map[string]string{older: "5"}, 5 * time.Millisecond, 5 * time.Millisecond},
		{"", map[string]string{older: "5", "message.timestamp.after.max.ms": "6"}, 5 * time.Millisecond, 6 * time.Millisecond},
		{"log." + older + "=7", nil, 7 * time.Millisecond, 7 * time.Millisecond},
		{"log." + older + "=7\nlog.message.timestamp.before.max.ms=8", nil, 8 * time.Millisecond, 7 * time.Millisecond},
	} {
		topic, err := load(t, c.file).Topic(c.own)
		if err != nil || topic.TimestampBeforeMax != c.before || topic.TimestampAfterMax != c.after {
			t.Errorf("%q %v: %v %v %v", c.file, c.own, topic.TimestampBeforeMax, topic.TimestampAfterMax, err)
		}
	}
}

// The sentences and codes are those of Kafka 4.4.0, but for the older properties, which it does not know.
func TestValidateTopic(t *testing.T) {
	for _, c := range []struct {
		own  map[string]string
		want string
	}{
		{map[string]string{"retention.ms": "abc"}, "Invalid value abc for configuration retention.ms: Not a number of type LONG"},
		{map[string]string{"retention.ms": "-5"}, "Invalid value -5 for configuration retention.ms: Value must be at least -1"},
		{map[string]string{"retention.ms": "abc", "segment.bytes": "1"}, "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576"},
		{map[string]string{"cleanup.policy": ""}, ""},
		{map[string]string{"cleanup.policy": " compact , delete "}, ""},
		{map[string]string{"cleanup.policy": "compact,compact"}, ""},
		{map[string]string{"cleanup.policy": "compact,"}, "Configuration 'cleanup.policy' values must not be empty."},
		{map[string]string{"cleanup.policy": "COMPACT"}, "Invalid value COMPACT for configuration cleanup.policy: String must be one of: compact, delete"},
		{map[string]string{"compression.type": "foo"}, "Invalid value foo for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"},
		{map[string]string{"unknown.key": "1", "retention.ms": "abc"}, "Unknown topic config name: unknown.key"},
		{map[string]string{"internal.segment.bytes": "100"}, ""},
		{map[string]string{"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"},
		{map[string]string{"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."},
		{map[string]string{"local.retention.ms": "-1", "retention.ms": "5", "remote.log.copy.disable": "true"}, ""},
		{map[string]string{"leader.replication.throttled.replicas": "*", "retention.ms": "+5"}, ""},
		{map[string]string{"message.format.version": "2.0", "message.downconversion.enable": "false", "message.timestamp.difference.max.ms": "5"}, ""},
	} {
		err := Default().ValidateTopic(c.own)
		if got := messageOf(err); got != c.want {
			t.Errorf("%v:\n got %q\nwant %q", c.own, got, c.want)
		}
		if err != nil && protocol.CodeOf(err) != protocol.InvalidConfig {
			t.Errorf("%v: code %v", c.own, protocol.CodeOf(err))
		}
	}
	if err := load(t, "log.cleaner.max.compaction.lag.ms=5").ValidateTopic(map[string]string{"min.compaction.lag.ms": "10"}); err == nil {
		t.Error("a topic's minimum above the broker's maximum must be refused")
	}
}

// What may be stored must be usable, whatever it is.
func FuzzTopic(f *testing.F) {
	for _, k := range TopicKeys() {
		f.Add(k.Name, "1")
	}
	f.Add("cleanup.policy", "compact,,delete")
	f.Add("min.cleanable.dirty.ratio", "0x1p-2d")
	f.Add("message.timestamp.type", "LogAppendTime")
	b := Default()
	f.Fuzz(func(t *testing.T, name, text string) {
		next, err := ApplyOps(ScopeTopic, nil, []Op{{name, OpAppend, &text}})
		if err != nil {
			next = map[string]string{name: text}
		}
		if b.ValidateTopic(next) != nil {
			return
		}
		if _, err := b.Topic(next); err != nil {
			t.Errorf("%q was allowed, and then: %v", next, err)
		}
		b.DescribeTopic(next, nil)
	})
}

func BenchmarkTopic(b *testing.B) {
	broker := Default()
	own := map[string]string{"retention.ms": "1000", "cleanup.policy": "compact"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := broker.Topic(own); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Load(LoadOptions{File: "testdata/kafka-4.4/server.properties"}); err != nil {
			b.Fatal(err)
		}
	}
}
