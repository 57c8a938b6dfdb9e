package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Code is one of Kafka's error codes as an error. Clients act on the code alone: whether they retry,
// refresh their metadata or give up hangs on it, so it is chosen once, where the reason is known.
type Code int16

// Name is Kafka's name of the code, such as OFFSET_OUT_OF_RANGE.
func (c Code) Name() string {
	if c == None {
		return "NONE"
	}
	return kerr.TypedErrorForCode(int16(c)).Message
}

// Description is Kafka's sentence about the code.
func (c Code) Description() string {
	if c == None {
		return ""
	}
	text := kerr.TypedErrorForCode(int16(c)).Description
	if !strings.HasSuffix(text, ".") {
		text += "." // as Kafka's do
	}
	return text
}

// Retriable reports whether clients try again after this code.
func (c Code) Retriable() bool { return c != None && kerr.TypedErrorForCode(int16(c)).Retriable }

// Error makes a Code an error by itself, for where there is nothing to add.
func (c Code) Error() string { return c.Name() + ": " + c.Description() }

// Error is a code with a sentence of our own, which versions that carry an error message hand to the user.
type Error struct {
	// Code is what the client acts on.
	Code Code
	// Message says what was wrong and what to do about it.
	Message string
	// Cause is the error behind this one, or nil.
	Cause error
}

// Errorf makes an Error; a %w in format sets its cause.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Error is the name of the code and the sentence.
func (e *Error) Error() string { return e.Code.Name() + ": " + e.Message }

// Unwrap lets errors.Is and errors.As reach both the code and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}

// CodeOf is the code that a response carries for err: None for nil, the code inside it, REQUEST_TIMED_OUT
// for a wait that has ended by its deadline or otherwise, and UNKNOWN_SERVER_ERROR for anything that nobody gave a code.
func CodeOf(err error) Code {
	if err == nil {
		return None
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if code, ok := errors.AsType[Code](err); ok {
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return RequestTimedOut
	}
	return UnknownServerError
}

// MessageOf is the sentence for a response's error message field; nil where there is no error. Errors
// without a code of Kafka's may name files, so the client only gets the general description.
func MessageOf(err error) *string {
	if err == nil {
		return nil
	}
	message := CodeOf(err).Description()
	if e, ok := errors.AsType[*Error](err); ok {
		message = e.Message
	}
	return &message
}
