package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// heard is what this broker knows of those that fetch from it as followers, whatever they fetch.
type heard struct {
	mu sync.RWMutex
	of map[protocol.BrokerID]*caller
}

// caller is one of them.
type caller struct {
	at   atomic.Int64 // when it fetched anything last
	left atomic.Int64 // how often it has left the cluster
}

// Heard notes that a broker fetches as a follower. A follower that waits at the log end names its partitions no
// more, so that this is how its leader knows that it lives.
//
// It returns how often the broker has left the cluster. Each time the leaders here have forgotten how far its replicas
// outside of in-sync sets are. A broker whose session with the store has expired comes back with the connections and the
// logs that it had, and does not know that it was away: what it said before is to be taken for said again.
//
// Anybody may claim to be a broker: nothing is kept of one that never was in the cluster.
func (r *Replicas) Heard(broker protocol.BrokerID) (left int64) {
	c := r.options.heard.known(broker)
	if c == nil {
		if image := r.image.Load(); image == nil || image.Broker(broker) == nil {
			return 0
		}
		c = r.options.heard.caller(broker)
	}
	c.at.Store(int64(r.options.clock()))
	return c.left.Load()
}

// known finds a broker; nil where there was nothing to keep of it.
func (h *heard) known(broker protocol.BrokerID) *caller {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.of[broker]
}

// caller finds a broker, or adds it.
func (h *heard) caller(broker protocol.BrokerID) *caller {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.of[broker]
	if c == nil {
		c = new(caller)
		h.of[broker] = c
	}
	return c
}

// last is when a broker was heard; 0, the beginning, where it never was.
func (h *heard) last(broker protocol.BrokerID) time.Duration {
	if c := h.known(broker); c != nil {
		return time.Duration(c.at.Load())
	}
	return 0
}
