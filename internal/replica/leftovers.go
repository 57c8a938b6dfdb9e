package replica

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A replica that is moved to another broker while its own is down leaves its log there: the controller waits for no dead
// broker, and tells one that comes back only what it has. What is left over is found by what the image says:
//
//	log found at the start ── any order about it ──────────────────────────────▶ none of ours
//	                       └─ the image: this topic id, led, no replica here ──▶ deleted, as StopReplica would have
//
// One that was only not registered meanwhile, and runs on with its replicas, finds them by what its view knows of its orders.
//
// A broker that has restarted hears nothing but from a controller that has seen its new registration, and so has read
// the assignment after that. A partition without a leader may need every log there is: it waits. And a move begins a
// leader epoch, which is above those of a log that was not there: where it is not, the store has been set back, and the log may be
// the only one that has what was acknowledged since.
type leftovers map[protocol.TopicPartition]bool

// claim takes the logs out of the leftovers that there are orders about.
func (r *Replicas) claim(changes []metadata.ReplicaChange) {
	if r.leftovers == nil {
		r.leftovers = leftovers{}
		for _, l := range r.options.Dirs.All() {
			r.leftovers[l.Partition()] = true
		}
	}
	for i := range changes {
		delete(r.leftovers, changes[i].TopicPartition)
	}
}

// movedAway takes those out of the leftovers whose replicas are on other brokers now.
func (r *Replicas) movedAway(changes []metadata.PartitionChange) []protocol.TopicPartition {
	if len(r.leftovers) == 0 {
		return nil
	}
	var moved []protocol.TopicPartition
	for i := range changes {
		tp, state := changes[i].TopicPartition, changes[i].New
		if !r.leftovers[tp] || state == nil || state.Leader == protocol.NoBroker || slices.Contains(state.Replicas, r.options.Self) {
			continue
		}
		l := r.options.Dirs.Get(tp)
		if l == nil {
			continue
		}
		if l.TopicID().IsZero() { // a power cut may have taken its file
			r.options.Logger.Warn("keeping a log although its replica is on other brokers: nothing says of which topic it is. Delete its folder if it is this one's",
				"partition", tp, "replicas", state.Replicas, "dir", l.Dir())
			delete(r.leftovers, tp) // said once
			continue
		}
		if l.TopicID() != changes[i].TopicID {
			continue // of an earlier topic of the name
		}
		if held := l.LatestEpoch(); held >= state.LeaderEpoch {
			r.options.Logger.Warn("keeping a log although its replica is on other brokers: the metadata store is not newer than the log. "+
				"Was it restored from an old backup? Restore a newer one", "partition", tp, "replicas", state.Replicas, "leader-epoch", state.LeaderEpoch, "log-epoch", held)
			delete(r.leftovers, tp) // said once
			continue
		}
		r.options.Logger.Info("deleting a log: its replica was moved to other brokers while this one was down",
			"partition", tp, "replicas", state.Replicas, "leader", state.Leader)
		delete(r.leftovers, tp)
		moved = append(moved, tp)
	}
	return moved
}
