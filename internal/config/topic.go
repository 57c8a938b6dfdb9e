package config

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Topic is the effective configuration of one topic, in the types that the log and the replicas use. It is
// comparable. Durations are [NoLimit] where the property is -1.
type Topic struct {
	// SegmentBytes is the size at which a segment is rolled (segment.bytes, for tests internal.segment.bytes).
	SegmentBytes int32
	// SegmentAge is the age at which a segment is rolled (segment.ms), SegmentJitter how much of it may be
	// taken off at random, so that segments do not all roll at once (segment.jitter.ms).
	SegmentAge, SegmentJitter time.Duration
	// IndexBytes is the largest size of an index file (segment.index.bytes).
	IndexBytes int32
	// IndexIntervalBytes is how many bytes of batches lie between two index entries (index.interval.bytes).
	IndexIntervalBytes int32
	// RetentionAge is how long a segment is kept after its last record (retention.ms).
	RetentionAge time.Duration
	// RetentionBytes is how large a partition may grow before old segments go; negative for no limit.
	RetentionBytes int64
	// Delete and Compact are the cleanup.policy; a topic with neither keeps everything.
	Delete, Compact bool
	// DeleteRetention is how long a tombstone stays in a compacted log (delete.retention.ms).
	DeleteRetention time.Duration
	// MinCompactionLag and MaxCompactionLag bound the age at which a record may, and must, be compacted.
	MinCompactionLag, MaxCompactionLag time.Duration
	// FileDeleteDelay is how long a file stays after it was renamed to .deleted (file.delete.delay.ms).
	FileDeleteDelay time.Duration
	// MinCleanableRatio is the share of uncompacted bytes from which on a log is compacted.
	MinCleanableRatio float64
	// MaxMessageBytes is the largest batch that is taken, header included (max.message.bytes).
	MaxMessageBytes int32
	// MaxDecompressedBytes is the largest record that a compressed batch may hold, decompressed.
	MaxDecompressedBytes int32
	// Compression is the compression.type: "producer" keeps what the producer chose, "uncompressed" is none.
	Compression string
	// GzipLevel, Lz4Level and ZstdLevel are used where the broker compresses itself.
	GzipLevel, Lz4Level, ZstdLevel int
	// LogAppendTime says that records get the broker's time instead of the producer's.
	LogAppendTime bool
	// TimestampBeforeMax and TimestampAfterMax are how far a producer's time may lie before and after the
	// broker's.
	TimestampBeforeMax, TimestampAfterMax time.Duration
	// FlushMessages is after how many records the log is synced, FlushInterval after how long.
	FlushMessages int64
	FlushInterval time.Duration
	// Preallocate says that a new segment gets its full size at once.
	Preallocate bool
	// MinInsyncReplicas is how many replicas must have a record for acks=all.
	MinInsyncReplicas int
	// UncleanLeaderElection allows a leader that may lack acknowledged records.
	UncleanLeaderElection bool
	// ThrottledLeaders and ThrottledFollowers are the replicas whose traffic is throttled, at the leader and at the
	// follower ({leader,follower}.replication.throttled.replicas).
	ThrottledLeaders, ThrottledFollowers ThrottledReplicas
}

// segmentBytesFloor is the least segment.bytes that is honoured in a stored configuration. 4.0 raised the
// bound for new ones to 1 MiB (KIP-1030), but topics made before keep theirs.
const segmentBytesFloor = 14

// Topic is the configuration of a topic with these properties of its own. Properties that do not parse are
// named in the error and count as not set: a topic stays usable whatever the store holds.
//
// For each property: its own value, else the first of its synonyms that the broker has a value of, else the
// default.
func (b *Broker) Topic(overrides map[string]string) (Topic, error) {
	values := topicValues{b, map[string]Value{}}
	var faults []error
	for i := range table().topic {
		k := &table().topic[i]
		text, ok := overrides[k.Name]
		if !ok {
			continue
		}
		value, err := looseTopic(*k).Parse(text)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		values.own[k.Name] = value
	}
	return values.topic(), errors.Join(faults...)
}

// looseTopic is the key as it applies to configurations that are stored already.
func looseTopic(k Key) Key {
	if k.Name == "segment.bytes" {
		k.Rule = atLeast(segmentBytesFloor)
	}
	return k
}

// topicValues are a topic's own values over those of the broker.
type topicValues struct {
	broker *Broker
	own    map[string]Value
}

// get is the effective value of a topic property.
func (t topicValues) get(name string) Value {
	if v, ok := t.own[name]; ok {
		return v
	}
	return t.broker.topicDefault(table().topicName[name])
}

// topicDefault is what a topic without its own value of the property has.
func (b *Broker) topicDefault(k *Key) Value {
	switch len(k.Synonyms) {
	case 0:
		return k.fallback()
	case 1:
		return b.values[k.Synonyms[0]]
	}
	return Value{typ: Long, number: b.millis(k.Synonyms)}
}

func (t topicValues) int(name string) int32         { return int32(t.get(name).number) }
func (t topicValues) age(name string) time.Duration { return millis(t.get(name).number) }

func (t topicValues) throttled(name string) ThrottledReplicas {
	return ThrottledReplicas(strings.Join(t.get(name).list, ","))
}

// timestampLimit is one of the two limits on producers' timestamps. Where it is not set itself, the older
// property that limits both ways counts if that is, so that a topic of an old cluster refuses what it did.
func (t topicValues) timestampLimit(name string) time.Duration {
	const older = "message.timestamp.difference.max.ms"
	if _, ok := t.own[name]; !ok {
		if v, ok := t.own[older]; ok {
			return millis(v.number)
		}
		if !t.broker.IsSet("log."+name) && t.broker.IsSet("log."+older) {
			name = older
		}
	}
	return t.age(name)
}

func (t topicValues) topic() Topic {
	segment := t.int("segment.bytes")
	if v := t.get("internal.segment.bytes"); !v.null {
		segment = int32(v.number)
	}
	policy := t.get("cleanup.policy").list
	return Topic{
		SegmentBytes:          segment,
		SegmentAge:            t.age("segment.ms"),
		SegmentJitter:         t.age("segment.jitter.ms"),
		IndexBytes:            t.int("segment.index.bytes"),
		IndexIntervalBytes:    t.int("index.interval.bytes"),
		RetentionAge:          t.age("retention.ms"),
		RetentionBytes:        t.get("retention.bytes").number,
		Delete:                slices.Contains(policy, "delete"),
		Compact:               slices.Contains(policy, "compact"),
		DeleteRetention:       t.age("delete.retention.ms"),
		MinCompactionLag:      t.age("min.compaction.lag.ms"),
		MaxCompactionLag:      t.age("max.compaction.lag.ms"),
		FileDeleteDelay:       t.age("file.delete.delay.ms"),
		MinCleanableRatio:     t.get("min.cleanable.dirty.ratio").real,
		MaxMessageBytes:       t.int("max.message.bytes"),
		MaxDecompressedBytes:  t.int("max.decompressed.message.bytes"),
		Compression:           t.get("compression.type").text,
		GzipLevel:             int(t.int("compression.gzip.level")),
		Lz4Level:              int(t.int("compression.lz4.level")),
		ZstdLevel:             int(t.int("compression.zstd.level")),
		LogAppendTime:         t.get("message.timestamp.type").text == "LogAppendTime",
		TimestampBeforeMax:    t.timestampLimit("message.timestamp.before.max.ms"),
		TimestampAfterMax:     t.timestampLimit("message.timestamp.after.max.ms"),
		FlushMessages:         t.get("flush.messages").number,
		FlushInterval:         t.age("flush.ms"),
		Preallocate:           t.get("preallocate").flag,
		MinInsyncReplicas:     int(t.int("min.insync.replicas")),
		UncleanLeaderElection: t.get("unclean.leader.election.enable").flag,
		ThrottledLeaders:      t.throttled(ThrottledLists[0]),
		ThrottledFollowers:    t.throttled(ThrottledLists[1]),
	}
}
