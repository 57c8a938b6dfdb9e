package coordination

// Mode says what a watch observes.
type Mode uint8

// The modes of a watch.
const (
	// Node observes that the node is created, deleted, or its data written.
	Node Mode = iota + 1
	// Children observes that the node is created or deleted, or children of it are; not their data.
	Children
	// Subtree observes that the node or any node below it is created, deleted, or its data written.
	Subtree
)

// EventKind is what happened to a node last.
type EventKind uint8

// The kinds of events.
const (
	Created EventKind = iota + 1
	Changed
	Deleted
	ChildrenChanged
	// Resync means that changes may have been missed: read again everything that the watch is for.
	Resync
)

// String names a kind for logs.
func (k EventKind) String() string {
	switch k {
	case Created:
		return "created"
	case Changed:
		return "changed"
	case Deleted:
		return "deleted"
	case ChildrenChanged:
		return "children changed"
	case Resync:
		return "resync"
	}
	return "unknown"
}

// Event says that a node may differ from what was read before. It carries no data and no version, since
// ZooKeeper's do not; whoever wants to know reads. Events of one path that wait are merged into the last,
// so Kind is a hint and counting events means nothing.
type Event struct {
	// Path is the node; of Resync, the path that is watched.
	Path string
	Kind EventKind
}

// Watch is level-triggered: it says what to read again. Its methods may be called concurrently.
type Watch interface {
	// Events delivers what happened. It is closed after Close, and when the session has ended.
	Events() <-chan Event
	// Close stops the watch. Closing twice is fine.
	Close()
}
