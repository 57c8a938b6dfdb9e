package controller

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// The wait before an unclean election (unclean.recovery.timeout.ms). Where no member of the in-sync set may lead, and no
// eligible replica, those that are missing may be on their way, and with all of them there the one that holds most is
// known to have everything. So a topic that allows an unclean election gets one only when the time is over:
//
//	nobody may lead ──▶ deadline ──▶ all members are there and say what they have: the longest log leads
//	                       │
//	                       └──▶ over: of the replicas that live, the longest log leads, and records may be lost
//
// The time begins when this controller finds the partition so and one of its replicas lives: as long as none does, nobody is
// kept waiting, and of several machines that come back after a power cut the first one must not win for having been
// quickest. It counts whether or not the topic allows an unclean election: who allows it later has waited already. A changed
// property moves the deadlines of those that wait. The next controller begins again. A command (ElectLeaders) waits for
// nobody who is missing.

// waiting is since when nobody may lead partitions, although a replica lives.
type waiting map[P.TopicPartition]time.Time

// note begins the wait of the partitions among those that were decided about that are stuck, and ends that of the others.
func (w waiting) note(decided, stuck []P.TopicPartition, now time.Time) {
	still := make(map[P.TopicPartition]bool, len(stuck))
	for _, tp := range stuck {
		still[tp] = true
		if _, ok := w[tp]; !ok {
			w[tp] = now
		}
	}
	for _, tp := range decided {
		if !still[tp] {
			delete(w, tp)
		}
	}
}

// nextDeadline is the first one after now; false where there is none.
func (c *cluster) nextDeadline() (first time.Time, ok bool) {
	for _, since := range c.waiting {
		if deadline := since.Add(c.patience); deadline.After(c.now) && (!ok || deadline.Before(first)) {
			first, ok = deadline, true
		}
	}
	return first, ok
}

// waited reports whether missing members of a partition's in-sync set have been waited for long enough.
func (c *cluster) waited(tp P.TopicPartition) bool {
	since, ok := c.waiting[tp]
	return ok && c.now.Sub(since) >= c.patience
}

// uncleanly elects among replicas that live, all of which may lack acknowledged records: the one that holds most, of those
// that have said what they hold, which brokers of Kafka's do not.
func (c *cluster) uncleanly(tp P.TopicPartition, p *metadata.Partition, live []P.BrokerID) verdict {
	best, untold := c.longest(tp, live)
	if len(best) == 0 {
		best = untold
	}
	v := c.lead(p, c.pick(p, best), "elected uncleanly: acknowledged records may be lost")
	v.next.Recovering, v.next.UncleanEpoch = true, v.next.LeaderEpoch
	return v
}

// lookAtStuck is how often partitions that nobody may lead are looked at: somebody may have allowed an unclean election
// meanwhile, by whatever broker or tool, or have changed how long is waited.
const lookAtStuck = 5 * time.Second

// armStuck sets the timer for partitions that nobody may lead: to the next deadline, or to a look before it.
func (t *term) armStuck() {
	if len(t.cluster.waiting) == 0 {
		clear(t.unclean)
		return
	}
	at := t.cluster.now.Add(lookAtStuck)
	if deadline, ok := t.cluster.nextDeadline(); ok && deadline.Before(at) {
		at = deadline
	}
	if t.stuck == nil || at.Before(t.stuckAt) {
		t.stuck, t.stuckAt = time.After(time.Until(at)), at
	}
}

// decideStuck decides again about the partitions that nobody may lead.
func (t *term) decideStuck() error {
	t.stuck = nil
	partitions := sorted(t.cluster.waiting)
	left := slices.DeleteFunc(slices.Clone(partitions), func(tp P.TopicPartition) bool {
		return t.deletions[tp.Topic] != nil || t.cluster.image.Partition(tp) == nil || t.look.state[tp]
	})
	return t.decide(left)
}

// Wait says until when missing members of a partition's in-sync set are waited for.
type Wait struct {
	P.TopicPartition
	// Until is when an unclean election is held.
	Until time.Time
}

// Waits lists the partitions without a leader that an unclean election will be held for, by topic and number; none where
// this controller is not active.
func (c *Controller) Waits() []Wait {
	if t := c.term.Load(); t != nil {
		if waits := t.waits.Load(); waits != nil {
			return *waits
		}
	}
	return nil
}

// publishWaits lets others see the deadlines of those topics that allow an unclean election, and are not being deleted.
func (t *term) publishWaits() {
	var waits []Wait
	for _, tp := range sorted(t.cluster.waiting) {
		if deadline := t.cluster.waiting[tp].Add(t.cluster.patience); t.unclean[tp.Topic] && t.deletions[tp.Topic] == nil && deadline.After(t.cluster.now) {
			waits = append(waits, Wait{tp, deadline})
		}
	}
	t.waits.Store(&waits)
}
