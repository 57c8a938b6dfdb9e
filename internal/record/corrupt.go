package record

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// ErrShort says that the bytes end before the batch does: more may follow, or a write was cut.
var ErrShort = errors.New("record batch is cut short")

// CorruptError says that bytes are not what they claim to be. Who reads a file adds its name and position;
// who answers a client takes the code.
type CorruptError struct {
	// Code is what a client gets: CORRUPT_MESSAGE for batches, INVALID_RECORD for what is inside them.
	Code protocol.Code
	// Offset is the base offset of the batch, as far as it can be trusted.
	Offset protocol.Offset
	// Reason says what is wrong, with the values.
	Reason string
	// Cause is a decompressor's error, or nil.
	Cause error
}

// Error names the batch and the reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("batch at offset %d: %s", e.Offset, e.Reason)
}

// Unwrap makes the code and the cause reachable.
func (e *CorruptError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}

// corrupt makes the error for a batch that is damaged as a whole.
func corrupt(offset protocol.Offset, format string, args ...any) error {
	return &CorruptError{Code: protocol.CorruptMessage, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// invalid makes the error for a batch whose inside is wrong.
func invalid(offset protocol.Offset, format string, args ...any) error {
	return &CorruptError{Code: protocol.InvalidRecord, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}
