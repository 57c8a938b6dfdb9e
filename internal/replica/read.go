package replica

import (
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Bounds are the offsets of a partition that a client may ask about.
type Bounds struct {
	// Start is the log start offset.
	Start protocol.Offset
	// LastStable is where the oldest open transaction begins, at most HighWatermark.
	LastStable protocol.Offset
	// HighWatermark is exclusive: records below it are committed.
	HighWatermark protocol.Offset
	// End is the log end offset.
	End protocol.Offset
}

// Bounds reads the offsets of the partition; all are 0 where nothing was ever written.
func (p *Partition) Bounds() Bounds {
	l := p.log.Load()
	if l == nil {
		return Bounds{}
	}
	return Bounds{Start: l.StartOffset(), LastStable: l.LastStableOffset(), HighWatermark: l.HighWatermark(), End: l.EndOffset()}
}

// Limit is up to where a consumer may read: the last stable offset for read_committed, else the high
// watermark.
func (b Bounds) Limit(committed bool) protocol.Offset {
	if committed {
		return b.LastStable
	}
	return b.HighWatermark
}

// Read finds whole batches from the batch that holds offset on, up to limit (exclusive), of at most
// maxBytes, but at least one batch where atLeastOne asks for it. OFFSET_OUT_OF_RANGE outside of the log.
// The slice must be released.
func (p *Partition) Read(offset protocol.Offset, maxBytes int, limit protocol.Offset, atLeastOne bool) (log.Slice, error) {
	l := p.log.Load()
	if l == nil {
		if offset != 0 {
			return log.Slice{}, protocol.OffsetOutOfRange
		}
		return log.Slice{}, nil
	}
	slice, err := l.Read(offset, maxBytes, limit, atLeastOne)
	if err != nil && protocol.CodeOf(err) != protocol.OffsetOutOfRange {
		p.options.Dirs.Report(p.tp, err)
	}
	return slice, err
}
