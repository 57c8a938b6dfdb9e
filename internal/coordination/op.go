package coordination

// AnyVersion as a version matches every version.
const AnyVersion int32 = -1

// CreateOptions say what kind of node is created; the zero value is a persistent one.
type CreateOptions struct {
	// Ephemeral ties the node to the session; such a node has no children.
	Ephemeral bool
	// Sequential appends the count of all creations below the parent so far, as ten digits. The path may
	// then end in a slash.
	Sequential bool
	// ACL protects the node in stores that know ACLs; nil leaves it open.
	ACL []ACL
}

// OpKind is what an Op does.
type OpKind uint8

// The kinds of operations.
const (
	OpCheck OpKind = iota + 1
	OpCreate
	OpSet
	OpDelete
)

// String names a kind as error messages do.
func (k OpKind) String() string {
	switch k {
	case OpCheck:
		return "check"
	case OpCreate:
		return "create"
	case OpSet:
		return "set"
	case OpDelete:
		return "delete"
	}
	return "unknown operation"
}

// Op is one operation of a transaction. Make it with Check, Create, Set or Delete.
type Op struct {
	Kind    OpKind
	Path    string
	Data    []byte        // of OpCreate, OpSet
	Version int32         // of OpCheck, OpSet, OpDelete
	Options CreateOptions // of OpCreate
}

// OpResult is what an Op of a committed transaction did.
type OpResult struct {
	// Path is the path of the node; of a sequential create, with its number.
	Path string
	// Stat is the node right after the operation; zero after OpDelete and OpCheck. Ctime and Mtime of a node
	// that the transaction creates may be missing: ZooKeeper does not tell.
	Stat Stat
}

// Check demands that a node exists and has this version (or any, with AnyVersion).
func Check(path string, version int32) Op {
	return Op{Kind: OpCheck, Path: path, Version: version}
}

// Create makes a node; see Session.Create.
func Create(path string, data []byte, options CreateOptions) Op {
	return Op{Kind: OpCreate, Path: path, Data: data, Options: options}
}

// Set writes a node's data; see Session.Set.
func Set(path string, data []byte, version int32) Op {
	return Op{Kind: OpSet, Path: path, Data: data, Version: version}
}

// Delete removes a node; see Session.Delete.
func Delete(path string, version int32) Op {
	return Op{Kind: OpDelete, Path: path, Version: version}
}

// opOverhead is an upper bound of what a request adds to an operation's path and data: headers, lengths,
// flags and an ACL of one entry.
const opOverhead = 64

// Size bounds from above the bytes that the operation takes in a request.
func (o Op) Size() int {
	size := opOverhead + len(o.Path) + len(o.Data)
	for _, acl := range o.Options.ACL {
		size += 16 + len(acl.Scheme) + len(acl.ID)
	}
	return size
}

// Limits bound what is sent to a store, since an oversized request looks like a network fault there.
type Limits struct {
	// MaxTxnBytes bounds the sum of Op.Size over a transaction.
	MaxTxnBytes int
	// MaxNodeBytes bounds the data of a node.
	MaxNodeBytes int
}

// DefaultLimits are those of ZooKeeper's jute.maxbuffer of 1 MiB, with 1 KiB of a node's share left for
// its path and the request around it.
var DefaultLimits = Limits{MaxTxnBytes: 1 << 20, MaxNodeBytes: 1<<20 - 1<<10}

// Validate checks paths and sizes before anything is sent. It fails with a *TxnError that holds
// ErrBadPath or ErrTooLarge and names the first operation that is wrong, or that does not fit any more.
func (l Limits) Validate(ops ...Op) error {
	total := 0
	for i, op := range ops {
		if err := ValidateOp(op); err != nil {
			return &TxnError{Index: i, Err: err}
		}
		total += op.Size()
		if len(op.Data) > l.MaxNodeBytes || total > l.MaxTxnBytes {
			return &TxnError{Index: i, Err: opError(op, ErrTooLarge)}
		}
	}
	return nil
}

// ValidateOp checks an operation's kind and path.
func ValidateOp(op Op) error {
	if op.Kind < OpCheck || op.Kind > OpDelete {
		return opError(op, ErrBadOperation)
	}
	if op.Kind == OpCreate && op.Options.Sequential {
		return ValidatePath(op.Path + "1")
	}
	return ValidatePath(op.Path)
}
