package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// errNoAnswer stands for a thing that the broker left out of its answer.
var errNoAnswer = errors.New("the broker did not answer for it")

// DetailedError is a code of Kafka's with the sentence that the broker added.
type DetailedError struct {
	// Code is the error without the sentence.
	Code error
	// Message is the broker's sentence.
	Message string
}

// Error is the broker's sentence behind the code's name.
func (e *DetailedError) Error() string { return CodeName(e.Code) + ": " + e.Message }

// Unwrap is the code.
func (e *DetailedError) Unwrap() error { return e.Code }

// UnreachableError says that no broker could be connected to.
type UnreachableError struct {
	// Address is the one that was tried last.
	Address string
	// Reason is what the system said, in a few words.
	Reason string
	err    error
}

// Error names the address and what to do.
func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("cannot reach %s: %s", e.Address, e.Reason)
	if errors.Is(e.err, syscall.ECONNREFUSED) {
		return text + "; is a broker running? (barnabas start)"
	}
	return text
}

// Unwrap is the system's error.
func (e *UnreachableError) Unwrap() error { return e.err }

// CodeName is Kafka's name for the code in err, and empty where there is none.
func CodeName(err error) string {
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Message
	}
	return ""
}

// Message is what is to be said about err beside its code: the broker's sentence, else the code's.
func Message(err error) string {
	var detailed *DetailedError
	if errors.As(err, &detailed) {
		return detailed.Message
	}
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Description
	}
	return err.Error()
}

// codeError is the error of a response's code and message; nil for no error.
func codeError(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err != nil && message != nil && *message != "" {
		return &DetailedError{Code: err, Message: *message}
	}
	return err
}

// Explain puts an error of the client into words that say what to do.
//
//	refused, unreachable, no such name   the address and the system's word for it
//	closed before an answer              most likely TLS or SASL on the other side
//	deadline                             how long was waited
//	anything else                        as it is; Kafka's codes stay visible to CodeName
func (c *Client) Explain(err error) error {
	first := ""
	if len(c.bootstrap) > 0 {
		first = c.bootstrap[0]
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &UnreachableError{Address: dialed(op, first), Reason: reason(op), err: err}
	}
	var eof *kgo.ErrFirstReadEOF
	if errors.As(err, &eof) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return &UnreachableError{Address: first, Reason: "the connection was closed before an answer came; does it " +
			"want TLS or SASL, or is it no broker at all?", err: err}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &UnreachableError{Address: first, Reason: fmt.Sprintf("no answer within %s", c.timeout), err: err}
	}
	return err
}

// dialed is the address of a failed connection attempt, in the words of the command line where it is the
// only one there.
func dialed(op *net.OpError, first string) string {
	if op.Addr == nil {
		return first
	}
	return op.Addr.String()
}

// reason is the innermost cause without the names of system calls.
func reason(op *net.OpError) string {
	var call *os.SyscallError
	if errors.As(op, &call) {
		return call.Err.Error()
	}
	var name *net.DNSError
	if errors.As(op, &name) {
		return "the name " + name.Name + " has no address"
	}
	return strings.TrimPrefix(op.Err.Error(), "dial tcp: ")
}
