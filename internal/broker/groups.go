package broker

import (
	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// groupConfig is what the broker's properties say about groups.
//
// It is asked each time it matters, so that dynamic changes hold at once.
func (b *Broker) groupConfig() group.Config {
	c := b.Config()
	g := group.DefaultConfig()
	g.InitialRebalanceDelay = c.Duration("group.initial.rebalance.delay.ms")
	g.MinSessionTimeout = c.Duration("group.min.session.timeout.ms")
	g.MaxSessionTimeout = c.Duration("group.max.session.timeout.ms")
	g.MaxSize = int(c.Int("group.max.size"))
	g.MaxMetadata = int(c.Int("offset.metadata.max.bytes"))
	g.OffsetsRetention = c.Duration("offsets.retention.minutes")
	g.RetentionCheckInterval = c.Duration("offsets.retention.check.interval.ms")
	return g
}

// groupLog is how the records of __consumer_offsets are written.
func (b *Broker) groupLog() shard.Config {
	c := b.Config()
	s := shard.Config{
		Codec: record.Codec(c.Int("offsets.topic.compression.codec")), CommitTimeout: c.Duration("offsets.commit.timeout.ms"),
		LoadBytes: int(c.Int("offsets.load.buffer.size")),
	}
	settings, err := c.Topic(b.view.Image().TopicConfig(protocol.GroupMetadataTopic))
	if err == nil {
		s.MaxBatchBytes = int(settings.MaxMessageBytes)
	}
	return s
}
