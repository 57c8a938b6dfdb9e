package broker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metrics"
)

// holding is the session that the broker has, and what became of those before it.
//
//	requests, nanoseconds   feed a mean: their quotient between two scrapes
//	disconnects             the connection broke, the session may live on
//	expirations             the session is gone, and the registration with it
type holding struct {
	mu      sync.Mutex
	session coordination.Session

	// watching counts the goroutines that read the states of sessions; each ends with its session.
	watching                 sync.WaitGroup
	state                    atomic.Int32
	disconnects, expirations atomic.Int64
	requests, nanoseconds    atomic.Int64 // answered, and how long that took in sum
}

// session is the one that the broker has now; nil before the first.
func (b *Broker) session() coordination.Session {
	b.holding.mu.Lock()
	defer b.holding.mu.Unlock()
	return b.holding.session
}

// hold replaces the session.
//
// The goroutine that watches an earlier session ends by itself, when that session's states do.
func (b *Broker) hold(s coordination.Session) {
	h := &b.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = s
	h.watching.Go(func() {
		for state := range s.States() {
			if b.session() == s { // the last word of an earlier one may come late
				h.state.Store(int32(state))
			}
			switch state {
			case coordination.Suspended:
				h.disconnects.Add(1)
			case coordination.Lost:
				h.expirations.Add(1)
			case coordination.Connected:
			}
		}
	})
}

// answered notes how long the store took for a request.
func (h *holding) answered(took time.Duration) {
	h.requests.Add(1)
	h.nanoseconds.Add(int64(took))
}

// storeMetrics is how the broker stands with the store.
func (b *Broker) storeMetrics() metrics.Store {
	h := &b.holding
	return metrics.Store{
		Connected: coordination.State(h.state.Load()) == coordination.Connected, Remaining: time.Until(b.session().Deadline()),
		Disconnects: h.disconnects.Load(), Expirations: h.expirations.Load(),
		Requests: h.requests.Load(), Latency: time.Duration(h.nanoseconds.Load()),
	}
}
