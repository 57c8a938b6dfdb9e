package replica

import (
	"errors"
	"io/fs"

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
	for {
		l := p.log.Load()
		if l == nil {
			if offset != 0 {
				return log.Slice{}, protocol.OffsetOutOfRange
			}
			return log.Slice{}, nil
		}
		slice, err := l.Read(offset, maxBytes, limit, atLeastOne)
		switch {
		case err == nil || protocol.CodeOf(err) == protocol.OffsetOutOfRange:
			return slice, err
		case errors.Is(err, fs.ErrNotExist) && p.swapped(l):
			continue // another directory has it now
		}
		p.options.Dirs.Report(p.tp, err)
		if _, leads := p.Leader(); !leads {
			return log.Slice{}, *p.refusal.Load() // its files may be gone because the topic is
		}
		return log.Slice{}, storageError(err)
	}
}

// swapped reports whether l is not the partition's log any more. It waits for a [Partition.SwapLog] that
// runs: the old log's files go before the new log is known.
func (p *Partition) swapped(l *log.Log) bool {
	p.lock <- struct{}{}
	defer p.release()
	return p.log.Load() != l
}

// storageError gives an error without a code of Kafka's the one for faults of our storage.
func storageError(err error) error {
	if protocol.CodeOf(err) == protocol.UnknownServerError {
		return protocol.Errorf(protocol.KafkaStorageError, "%w", err)
	}
	return err
}
