package replica

import (
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// codecs lends decompression and compression buffers; shared by all brokers of the process, as memory is.
var codecs = sync.Pool{New: func() any { return new(codecBuffers) }}

type codecBuffers struct {
	decompressor record.Decompressor
	compressor   record.Compressor
}

// Validate checks that records are one batch that may be appended to this partition, with Kafka's rules and
// codes; it needs no lock. version is that of the produce request, 0 for a coordinator of this broker.
func (p *Partition) Validate(records []byte, origin record.Origin, version int16, now time.Time) (record.Validated, error) {
	settings := p.settings.Load()
	if settings == nil {
		return record.Validated{}, protocol.NotLeaderOrFollower
	}
	// The batch that comes out never lies in these buffers: it is the request's own, or new.
	buffers := codecs.Get().(*codecBuffers)
	defer codecs.Put(buffers)
	v := validation(settings)
	v.Partition, v.Origin, v.ProduceVersion, v.Now = p.tp, origin, version, now
	v.Decompressor, v.Compressor = &buffers.decompressor, &buffers.compressor
	return record.Validate(records, v)
}

// validation is what a topic's settings ask of a batch.
func validation(s *config.Topic) record.Validation {
	v := record.Validation{
		BeforeMax: s.TimestampBeforeMax, AfterMax: s.TimestampAfterMax,
		MaxMessageBytes: s.MaxMessageBytes, SegmentBytes: s.SegmentBytes, Compacted: s.Compact,
	}
	if s.LogAppendTime {
		v.TimestampType = record.LogAppendTime
	}
	if s.Compression == "producer" {
		return v
	}
	codec, err := record.ParseCodec(s.Compression)
	if err != nil {
		return v
	}
	v.Recompress, v.Codec = true, codec
	switch codec {
	case record.Gzip:
		v.Level = s.GzipLevel
	case record.Lz4:
		v.Level = s.Lz4Level
	case record.Zstd:
		v.Level = s.ZstdLevel
	}
	return v
}
