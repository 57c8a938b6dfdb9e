// Package coordination is the contract with the store that holds a cluster's metadata: a tree of nodes
// shaped like ZooKeeper's, with versions, transactions, sessions with ephemeral nodes, and watches.
//
// Three stores keep it: memory (the tree alone, with injected faults), quorum (the tree replicated by
// raft, one voter by default) and zookeeper (a real ensemble). One suite, coordtest, holds them all to the
// same behaviour; what it does not test is not promised.
//
// The tree is ZooKeeper 3.8's: a node has data (nil and empty differ), a data version that starts at 0 and
// rises by one with each Set, and the transaction numbers (zxids) that created it, last wrote it and last
// changed its children. Zxids rise over the whole store and never go back, also across restarts and moves
// between stores: Kafka's broker epoch is one, and Kafka's partition epoch is a data version.
//
// On top of the contract, written once for all stores: [EnsurePath], [CreateEphemeralChecked], [Elect],
// [FencedTxn], [BatchFenced] and [Mirror].
package coordination

import (
	"context"
	"time"
)

// Store is where sessions come from. Its methods may be called concurrently.
type Store interface {
	// Open starts a new session. It waits until the store answers or ctx ends; with ErrUnknownOutcome a
	// session may have been opened, which then expires by itself.
	Open(ctx context.Context, options SessionOptions) (Session, error)
	// Limits tells what one node and one transaction may hold.
	Limits() Limits
}

// SessionOptions say how a session is opened. The zero value is usable.
type SessionOptions struct {
	// Timeout is how long the store waits for a sign of life before it ends the session and removes its
	// ephemeral nodes. 0 means DefaultSessionTimeout. Stores round and bound it: Session.Timeout tells.
	Timeout time.Duration
	// Chroot is a path that is put before every path of the session and taken off in its answers; "" and
	// "/" mean none. Stores do not create it: see EnsurePath.
	Chroot string
	// Auth are credentials given to a remote store, in this order. In-process stores ignore them.
	Auth []Auth
}

// DefaultSessionTimeout is Kafka's zookeeper.session.timeout.ms.
const DefaultSessionTimeout = 18 * time.Second

// Auth is one credential of a remote store, such as scheme "digest" with "user:password".
type Auth struct {
	Scheme string
	Data   []byte
}

// ACL grants Permissions (ZooKeeper's bits: read 1, write 2, create 4, delete 8, admin 16) on a node to
// an identity. In-process stores serve only their own process and ignore it.
type ACL struct {
	Permissions int32
	Scheme      string
	ID          string
}

// Session is one session of a store; once it has ended it never comes back, and a new one is opened. All
// methods may be called concurrently.
//
// Reads see at least all that this session's earlier calls saw or wrote, but may be older than what
// another session has written; Sync, or a write with a version, is what to rely on.
//
// Errors are those of this package, found with errors.Is and errors.As. A cancelled ctx gives ErrNotSent
// where nothing can have happened and ErrUnknownOutcome where it may have, together with ctx.Err().
type Session interface {
	// ID is the session's number, which Stat.EphemeralOwner of its ephemeral nodes shows.
	ID() int64
	// Timeout is what the store granted.
	Timeout() time.Duration
	// Deadline is the time on the local clock until which the session is alive for certain: the last
	// answer plus Timeout. Who acts only as long as the session lives stops there.
	Deadline() time.Time
	// States delivers the newest state; an unread older one is replaced. It starts with Connected, and is
	// closed after Lost.
	States() <-chan State
	// Done is closed once, when the session has ended: expired, closed, or refused.
	Done() <-chan struct{}
	// Err says why the session ended; nil before.
	Err() error

	// Get reads a node. The data is shared and must not be changed. It fails with ErrNoNode.
	Get(ctx context.Context, path string) ([]byte, Stat, error)
	// GetMany reads many nodes in few round trips; the results stand in the order of paths, each with an
	// error of its own. It is not one consistent picture.
	GetMany(ctx context.Context, paths []string) ([]GetResult, error)
	// Exists reads a node's Stat; a missing node is no error.
	Exists(ctx context.Context, path string) (Stat, bool, error)
	// Children lists the names (not paths) of a node's children in rising order. It fails with ErrNoNode.
	Children(ctx context.Context, path string) ([]string, Stat, error)
	// Create makes a node and returns its path, which for a sequential one ends in ten digits. It fails
	// with ErrNoNode (no parent), ErrNodeExists and ErrNoChildrenForEphemerals.
	Create(ctx context.Context, path string, data []byte, options CreateOptions) (string, Stat, error)
	// Set replaces a node's data if its version is the given one, or AnyVersion. It fails with ErrNoNode
	// and ErrBadVersion.
	Set(ctx context.Context, path string, data []byte, version int32) (Stat, error)
	// Delete removes a node without children if its version is the given one, or AnyVersion. It fails
	// with ErrNoNode, ErrBadVersion and ErrNotEmpty.
	Delete(ctx context.Context, path string, version int32) error
	// Txn carries out all operations in order, or none: then the error is a *TxnError that names the one
	// that failed. All get the same zxid. The results stand in the order of ops.
	Txn(ctx context.Context, ops ...Op) ([]OpResult, error)
	// Sync returns once this session's reads see all that was committed anywhere before the call.
	Sync(ctx context.Context, path string) error
	// Watch observes path, which need not exist, until it is closed or the session ends. For every change
	// after it returned there comes an event, or Resync, or Done.
	Watch(ctx context.Context, path string, mode Mode) (Watch, error)
	// Close ends the session and removes its ephemeral nodes at once. An error means that this may last
	// until Timeout. Closing twice is fine.
	Close() error
}

// State is what a session knows about its connection.
type State int8

// The states. Suspended means that a third of the session's time has passed without an answer, or that
// the connection is cut: take no new decisions. Lost is final.
const (
	Connected State = iota + 1
	Suspended
	Lost
)

// String names a state for logs.
func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Lost:
		return "lost"
	}
	return "unknown"
}

// Stat describes a node as ZooKeeper does.
type Stat struct {
	// Czxid is the transaction that created the node: of a broker's registration, its broker epoch.
	Czxid int64
	// Mzxid is the transaction that last wrote its data.
	Mzxid int64
	// Pzxid is the transaction that last created or deleted a child of it.
	Pzxid int64
	// EphemeralOwner is the session that the node belongs to; 0 of a persistent one.
	EphemeralOwner int64
	// Ctime and Mtime are when it was created and last written, in milliseconds since 1970, by the clock
	// of whoever wrote: for people only.
	Ctime, Mtime int64
	// Version counts the writes of its data, from 0.
	Version int32
	// Cversion counts the creations and deletions of children.
	Cversion int32
	// NumChildren is how many children it has.
	NumChildren int32
}

// GetResult is one node of GetMany.
type GetResult struct {
	Data []byte
	Stat Stat
	Err  error
}
