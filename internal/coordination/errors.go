package coordination

import (
	"errors"
	"fmt"
)

// What a store answers. Stores wrap them with the operation and path; compare with errors.Is.
var (
	// ErrNoNode means that the node, or the parent of one to create, does not exist.
	ErrNoNode = errors.New("node does not exist")
	// ErrNodeExists means that the node to create is there.
	ErrNodeExists = errors.New("node exists")
	// ErrBadVersion means that the node has another version than the one given.
	ErrBadVersion = errors.New("version does not match")
	// ErrNotEmpty means that the node to delete has children.
	ErrNotEmpty = errors.New("node has children")
	// ErrNoChildrenForEphemerals means that the parent of a node to create is ephemeral.
	ErrNoChildrenForEphemerals = errors.New("ephemeral nodes have no children")
	// ErrBadPath means that the path is none of ZooKeeper's.
	ErrBadPath = errors.New("invalid path")
	// ErrBadOperation means an operation that cannot be: deleting the root, an unknown kind.
	ErrBadOperation = errors.New("invalid operation")
	// ErrTooLarge means that a node or transaction exceeds Limits; nothing was sent.
	ErrTooLarge = errors.New("too large for the store")
	// ErrAuth means that the store does not allow it.
	ErrAuth = errors.New("not authorised")
	// ErrSessionLost means that the session has ended, by expiry or Close, and the operation did not
	// happen. One that was under way when the session ended may fail with ErrUnknownOutcome instead.
	ErrSessionLost = errors.New("session lost")
	// ErrNotSent means that the operation did not happen and may be tried again.
	ErrNotSent = errors.New("not sent")
	// ErrUnknownOutcome means that the operation may have happened or may yet happen: read, then decide.
	ErrUnknownOutcome = errors.New("sent, outcome unknown")
	// ErrFenced means that the check of a Guard failed: somebody else leads.
	ErrFenced = errors.New("fenced")
	// ErrPremise means that what a batch was decided from has changed.
	ErrPremise = errors.New("decided from what is not so any more")
)

// TxnError says which operation of a transaction failed. None of the others had any effect.
type TxnError struct {
	// Index is the position among the operations.
	Index int
	// Err is why; an *OpError, usually.
	Err error
}

// Error tells index and reason.
func (e *TxnError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }

// Unwrap gives the reason to errors.Is.
func (e *TxnError) Unwrap() error { return e.Err }

// OpError is a failed operation on one path.
type OpError struct {
	// Op is what was tried: "get", "create", …
	Op string
	// Path is the node.
	Path string
	// Err is one of this package's errors.
	Err error
}

// Error tells operation, path and reason.
func (e *OpError) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap gives the reason to errors.Is.
func (e *OpError) Unwrap() error { return e.Err }

// opError wraps err with the operation that met it.
func opError(op Op, err error) error {
	return &OpError{Op: op.Kind.String(), Path: op.Path, Err: err}
}
