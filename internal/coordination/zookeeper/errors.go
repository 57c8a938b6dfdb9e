package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// errorOf turns what a server answered into an error of the contract.
func errorOf(code jute.Code) error {
	switch code {
	case jute.OK:
		return nil
	case jute.NoNode:
		return coordination.ErrNoNode
	case jute.NodeExists:
		return coordination.ErrNodeExists
	case jute.BadVersion:
		return coordination.ErrBadVersion
	case jute.NotEmpty:
		return coordination.ErrNotEmpty
	case jute.NoChildrenForEphemerals:
		return coordination.ErrNoChildrenForEphemerals
	case jute.SessionExpired:
		return coordination.ErrSessionLost
	case jute.NoAuth, jute.AuthFailed, jute.InvalidACL, jute.SessionClosedSASL:
		return fmt.Errorf("%w: %w", coordination.ErrAuth, code)
	case jute.BadArguments, jute.Unimplemented:
		return fmt.Errorf("%w: %w", coordination.ErrBadOperation, code)
	case jute.QuotaExceeded:
		return fmt.Errorf("%w: %w", coordination.ErrTooLarge, code)
	case jute.ConnectionLoss, jute.OperationTimeout, jute.SystemError, jute.RequestTimeout:
		return fmt.Errorf("%w: %w", coordination.ErrUnknownOutcome, code)
	}
	// SessionMoved, NotReadOnly, Throttled and the like are refusals before anything happened.
	return fmt.Errorf("%w: %w", coordination.ErrNotSent, code)
}

// wrap adds operation and path to an error, unless they stand there.
func wrap(op, path string, err error) error {
	var known *coordination.OpError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &coordination.OpError{Op: op, Path: path, Err: err}
}

// cancelled is the error of a call whose context ended.
func cancelled(ctx context.Context, outcome error) error {
	return fmt.Errorf("%w: %w", outcome, ctx.Err())
}

// errExpired is how a session ends that the servers have expired.
func errExpired() error { return fmt.Errorf("expired: %w", coordination.ErrSessionLost) }

// errClosed is how a session ends that was closed.
func errClosed() error { return fmt.Errorf("closed: %w", coordination.ErrSessionLost) }
