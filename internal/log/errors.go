package log

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// DamageError says that a segment holds bytes that are no batch with valid batches behind them. It is not
// the end that a crash leaves, so nothing was cut: the partition must not be served, and a person, or a
// replica, has to decide.
//
//	found by            what becomes of the partition
//	Open                it is offline; nothing was cut, and the folder is a suspect for the next start
//	Verify              the log breaks, and goes offline
//	Read, compaction    the call fails; the rest of the log is served
type DamageError struct {
	// Partition is whose log it is.
	Partition protocol.TopicPartition
	// File is the path of the segment.
	File string
	// Position is where in the file the damaged bytes begin.
	Position int64
	// Offset is the first offset that cannot be read.
	Offset protocol.Offset
	// Cause says what is wrong with them.
	Cause error
}

// Error names the place and the reason.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %s at position %d, offset %d: %v", e.Partition, e.File, e.Position, e.Offset, e.Cause)
}

// Unwrap gives clients KAFKA_STORAGE_ERROR.
func (e *DamageError) Unwrap() []error { return []error{protocol.KafkaStorageError, e.Cause} }

// damaged wraps the error that a walk over s ended with: bytes that are no batch are a DamageError, a failed
// read keeps its own cause.
func (l *Log) damaged(s *segment, w *walker, err error) error {
	path := l.path(s.base, logSuffix)
	if !isBadBatch(err) {
		return protocol.Errorf(protocol.KafkaStorageError, "read %s: %w", path, err)
	}
	return &DamageError{Partition: l.partition, File: path, Position: w.pos, Offset: max(s.base, w.expected), Cause: err}
}
