package api

import (
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// rackSelector is the Java class that replica.selector.class names for reading from the nearest replica
// (KIP-392): the one of Kafka's two that does something, and the only one there is here.
const rackSelector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

// rackOf is the rack of a consumer that shall be sent to a replica there; empty where nobody is to be sent away.
func (a *API) rackOf(q *fetchRequest) string {
	if len(q.rack) == 0 || q.replica >= 0 || a.Config().String("replica.selector.class") != rackSelector {
		return ""
	}
	return string(q.rack)
}

// preferred is the replica that a consumer should read a partition from instead of this one, the leader: in the
// consumer's rack, alive, in sync and with the offset that is asked for; of several the one that has most, then
// the one that was last up to date. NoBroker where the leader itself is in that rack, or nobody is.
func (f *fetch) preferred(part *fetchPart) protocol.BrokerID {
	if f.rack == "" || f.api.rackIs(f.api.Self, f.rack) {
		return protocol.NoBroker
	}
	var buffer [4]partition.Reader
	best := partition.Reader{ID: protocol.NoBroker}
	for _, r := range part.partition.Readers(f.ctx, buffer[:0], part.offset) {
		if !f.api.rackIs(r.ID, f.rack) {
			continue
		}
		if best.ID == protocol.NoBroker || r.End > best.End || r.End == best.End && r.CaughtUp > best.CaughtUp {
			best = r
		}
	}
	return best.ID
}

// rackIs reports whether a living broker is in a rack.
func (a *API) rackIs(id protocol.BrokerID, rack string) bool {
	broker := a.View.Image().Broker(id)
	return broker != nil && broker.Rack != nil && *broker.Rack == rack
}
