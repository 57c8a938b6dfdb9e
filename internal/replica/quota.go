package replica

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A reassignment copies whole logs. So that it leaves room for clients, its traffic has a rate (KIP-73), at the leader
// and at the follower, of which the lower one counts:
//
//	leader.replication.throttled.rate      what this broker sends to followers   of leader.replication.throttled.replicas
//	follower.replication.throttled.rate    what it fetches from leaders          of follower.replication.throttled.replicas
//
// A replica that is in sync is never held up, and its traffic does not count: otherwise a rate below what is produced
// would keep the copies from getting on, or throw replicas out of the in-sync set. What is held up is left out of
// fetches and of their answers, so that nothing else waits for it.
//
// quota is one of the two rates. Fetches go out before it is known how much they bring, so that what is too much
// is a debt, which time pays off:
//
//	debt   +n bytes for each answer, -rate each second, and down to -rate × window while nothing is fetched
//	held   while debt > 0, for debt / rate
type quota struct {
	config   func() *config.Broker
	property string // the name of the rate
	clock    func() time.Duration

	mu   sync.Mutex
	debt float64 // bytes, as of at
	at   time.Duration
}

// rate is in bytes a second; false where there is none.
func (q *quota) rate() (float64, bool) {
	c := q.config()
	return float64(c.Long(q.property)), c.IsSet(q.property)
}

// held is for how long nothing may be fetched; 0 where something may be now. Where the rate is 0, it is an hour.
func (q *quota) held() time.Duration {
	rate, limited := q.rate()
	if !limited {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(rate)
	switch {
	case rate <= 0:
		return time.Hour
	case q.debt <= 0:
		return 0
	}
	return time.Duration(min(q.debt/rate, time.Hour.Seconds())*float64(time.Second)) + 1
}

// add counts what was fetched.
func (q *quota) add(bytes int) {
	rate, limited := q.rate()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !limited {
		q.debt, q.at = 0, q.clock() // a rate that comes later begins with nothing
		return
	}
	q.settle(rate)
	q.debt += float64(bytes)
}

// settle pays off what the time since allows. It needs mu.
func (q *quota) settle(rate float64) {
	now := q.clock()
	window := float64(q.config().Int("replication.quota.window.size.seconds"))
	q.debt = max(q.debt-rate*(now-q.at).Seconds(), -rate*window)
	q.at = now
}

// Throttled reports whether what a follower fetches of this partition counts as throttled, and for how long nothing may
// be sent to it.
func (p *Partition) Throttled(ctx context.Context, follower protocol.BrokerID) (counts bool, held time.Duration) {
	q := &p.options.sending
	settings := p.settings.Load()
	if settings == nil || !settings.ThrottledLeaders.Has(p.tp.Partition, p.options.Self) {
		return false, 0
	}
	if _, limited := q.rate(); !limited || p.acquire(ctx) != nil {
		return false, 0
	}
	defer p.release()
	if p.leader == nil || slices.Contains(p.leader.InSync(), follower) {
		return false, 0
	}
	return true, q.held()
}

// Sent counts bytes that a follower got of partitions for which [Partition.Throttled] says that they count.
func (r *Replicas) Sent(bytes int) { r.options.sending.add(bytes) }

// throttled reports whether what this follower fetches counts as throttled. It needs the lock.
func (p *Partition) throttled() bool {
	settings := p.settings.Load()
	return !p.caughtUp && settings != nil && settings.ThrottledFollowers.Has(p.tp.Partition, p.options.Self)
}

// heldBack is throttled, without the lock.
func (p *Partition) heldBack() bool {
	p.lock <- struct{}{}
	defer p.release()
	return p.throttled()
}
