package jute

// WatchMode is how a watch of OpAddWatch behaves.
type WatchMode int32

// The modes: both stay after they have fired.
const (
	// Persistent hears of the node's data and of its list of children.
	Persistent WatchMode = 0
	// PersistentRecursive hears of the data of the node and of all below it, not of lists of children.
	PersistentRecursive WatchMode = 1
)

// AddWatchRequest leaves a watch: string path, int mode.
type AddWatchRequest struct {
	Path string
	Mode WatchMode
}

// Append implements Record.
func (a *AddWatchRequest) Append(dst []byte) []byte {
	return AppendInt(AppendString(dst, a.Path), int32(a.Mode))
}

// Read implements Record.
func (a *AddWatchRequest) Read(r *Reader) { a.Path, a.Mode = r.String(), WatchMode(r.Int()) }

// WatcherAny means watches of every kind in RemoveWatchesRequest.
const WatcherAny int32 = 3

// RemoveWatchesRequest takes the watches of a path away: string path, int type.
type RemoveWatchesRequest struct {
	Path string
	Type int32
}

// Append implements Record.
func (w *RemoveWatchesRequest) Append(dst []byte) []byte {
	return AppendInt(AppendString(dst, w.Path), w.Type)
}

// Read implements Record.
func (w *RemoveWatchesRequest) Read(r *Reader) { w.Path, w.Type = r.String(), r.Int() }

// SetWatches brings the watches of a session to a new connection. The first three lists are of watches that
// fire once; the server compares LastZxid, and fires those whose change was missed. It does not for
// persistent ones: whoever has them reads again.
//
//	long relativeZxid, vector<string> dataWatches, existWatches, childWatches
//	and in OpSetWatches2: vector<string> persistentWatches, persistentRecursiveWatches
type SetWatches struct {
	LastZxid              int64
	Data, Exist, Children []string
	Persistent, Recursive []string
}

// Append implements Record, as OpSetWatches2 has it.
func (s *SetWatches) Append(dst []byte) []byte {
	dst = AppendStrings(AppendLong(dst, s.LastZxid), s.Data)
	dst = AppendStrings(AppendStrings(dst, s.Exist), s.Children)
	return AppendStrings(AppendStrings(dst, s.Persistent), s.Recursive)
}

// Read implements Record, for OpSetWatches as well: that one ends after three lists.
func (s *SetWatches) Read(r *Reader) {
	s.LastZxid, s.Data, s.Exist, s.Children = r.Long(), r.Strings(), r.Strings(), r.Strings()
	if len(r.Rest()) > 0 {
		s.Persistent, s.Recursive = r.Strings(), r.Strings()
	}
}

// EventType is what happened to a node.
type EventType int32

// The types of events.
const (
	EventNone            EventType = -1
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// WatchEvent comes behind a ReplyHeader with XidEvent: int type, int state, string path.
type WatchEvent struct {
	Type EventType
	// State is 3, connected.
	State int32
	Path  string
}

// Append implements Record.
func (w *WatchEvent) Append(dst []byte) []byte {
	return AppendString(AppendInt(AppendInt(dst, int32(w.Type)), w.State), w.Path)
}

// Read implements Record.
func (w *WatchEvent) Read(r *Reader) {
	w.Type, w.State, w.Path = EventType(r.Int()), r.Int(), r.String()
}
