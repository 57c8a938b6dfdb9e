package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// fetcher fetches partitions from one leader. What follows changes is its goroutine's alone.
type fetcher struct {
	all  *fetchers
	name fetcherName

	mu      sync.Mutex
	changes map[protocol.TopicPartition]*following // nil to forget
	wake    chan struct{}                          // one slot
	retry   atomic.Bool                            // do not wait any longer after a failure

	channel  *peer.Channel // nil while there is no connection
	version  int16         // of Fetch, on that connection
	session  fetchSession
	parts    map[protocol.TopicPartition]*following
	next     []*following // to be named in the next request
	resting  []*following // after a failure
	nameless int          // how many of parts have no topic id
	failures int          // of connections, in a row
}

// following is a partition that a fetcher fetches, in one leader epoch.
//
//	told ─▶ next ─▶ named in a request ─▶ in the session ── new position ──▶ next
//	                                            │ error          ▲
//	                                            ▼                │ time, or a changed cluster
//	                        forgotten by the leader ─▶ resting ──┘
//	halted, or told otherwise ─▶ gone
type following struct {
	partition *Partition
	epoch     protocol.LeaderEpoch
	at        position // that the leader was told last
	queued    bool     // in next
	resting   bool     // in resting
	named     bool     // the leader's session has it
	gone      bool     // the fetcher has it no more
	failures  int      // in a row
	due       time.Time
}

func newFetcher(all *fetchers, name fetcherName) *fetcher {
	return &fetcher{
		all: all, name: name, changes: map[protocol.TopicPartition]*following{}, wake: make(chan struct{}, 1),
		parts: map[protocol.TopicPartition]*following{}, session: newFetchSession(),
	}
}

// tell hands a change to the fetcher's goroutine; nil ends the following.
func (f *fetcher) tell(tp protocol.TopicPartition, what *following) {
	f.mu.Lock()
	f.changes[tp] = what
	f.mu.Unlock()
	f.wakeUp()
}

func (f *fetcher) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run fetches until there is nothing left to fetch, or ctx ends.
func (f *fetcher) run(ctx context.Context) {
	defer f.disconnect()
	for ctx.Err() == nil {
		f.takeChanges()
		f.awaken(time.Now())
		f.throttle()
		switch {
		case len(f.parts) == 0:
			if f.all.retire(f) {
				return
			}
		case len(f.parts) == len(f.resting):
			f.wait(ctx, f.rest(time.Now()))
		default:
			if err := f.round(ctx); err != nil && ctx.Err() == nil {
				f.failed(ctx, err)
			}
		}
	}
}

// takeChanges takes over what the controller has said.
func (f *fetcher) takeChanges() {
	select { // what woke the fetcher is about to be looked at
	case <-f.wake:
	default:
	}
	f.mu.Lock()
	changes := f.changes
	if len(changes) == 0 {
		f.mu.Unlock()
		return
	}
	f.changes = map[protocol.TopicPartition]*following{}
	f.mu.Unlock()
	for tp, next := range changes {
		if old := f.parts[tp]; old != nil {
			f.drop(old)
		}
		if next != nil {
			f.parts[tp] = next
			if next.partition.id.IsZero() {
				f.nameless++
			}
			f.enqueue(next)
		}
	}
}

// superseded reports whether each partition has got other orders.
func (f *fetcher) superseded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for tp := range f.parts {
		if _, changed := f.changes[tp]; !changed {
			return false
		}
	}
	return true
}

// drop forgets a partition.
func (f *fetcher) drop(part *following) {
	part.gone = true
	delete(f.parts, part.partition.tp)
	if part.partition.id.IsZero() {
		f.nameless--
	}
	f.session.forget(part)
	if part.resting {
		part.resting = false
		f.resting = without(f.resting, part)
	}
}

func without(list []*following, part *following) []*following {
	for i, one := range list {
		if one == part {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// enqueue asks for the partition to be named in the next request.
func (f *fetcher) enqueue(part *following) {
	if !part.queued && !part.gone {
		part.queued = true
		f.next = append(f.next, part)
	}
}

// retryLater leaves a partition out for a while: a leader answers at once while one of the partitions fails.
func (f *fetcher) retryLater(part *following) {
	f.hold(part, f.pause(part.failures))
	part.failures++
}

// hold leaves a partition out for some time.
func (f *fetcher) hold(part *following, pause time.Duration) {
	part.due = time.Now().Add(pause)
	f.session.forget(part)
	part.resting = true
	f.resting = append(f.resting, part)
}

// throttle leaves the partitions out for which follower.replication.throttled.rate is used up, also those that the
// leader would send more of without being asked again.
func (f *fetcher) throttle() {
	pause := f.all.shared.fetching.held()
	if pause == 0 {
		return
	}
	for _, part := range f.parts {
		if !part.resting && part.partition.heldBack() {
			f.hold(part, pause)
		}
	}
}

// firstPause is how long to wait after a first failure; with each that follows twice as long, up to
// replica.fetch.backoff.ms. Right after a change of leadership the leader may hear of it a moment later.
const firstPause = 5 * time.Millisecond

func (f *fetcher) pause(failures int) time.Duration {
	most := f.all.shared.Config().Duration("replica.fetch.backoff.ms")
	return min(firstPause<<min(failures, 20), max(most, firstPause))
}

// awaken takes up the partitions again that have rested long enough.
func (f *fetcher) awaken(now time.Time) {
	all := f.retry.Swap(false)
	kept := f.resting[:0]
	for _, part := range f.resting {
		if all || !part.due.After(now) {
			part.resting = false
			f.enqueue(part)
			continue
		}
		kept = append(kept, part)
	}
	clear(f.resting[len(kept):])
	f.resting = kept
}

// rest is how long it is until a partition has rested long enough.
func (f *fetcher) rest(now time.Time) time.Duration {
	rest := time.Hour
	for _, part := range f.resting {
		rest = min(rest, max(part.due.Sub(now), 0))
	}
	return rest
}

// wait ends when something has changed, or the time is up.
func (f *fetcher) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.wake:
	case <-ctx.Done():
	}
}

// failed waits after a request that got no answer.
func (f *fetcher) failed(ctx context.Context, err error) {
	f.disconnect()
	if f.failures++; f.failures == 1 {
		f.all.shared.Logger.Warn("fetching from a leader failed; trying again", "leader", f.name.leader, "error", err)
	}
	until := time.Now().Add(f.pause(f.failures - 1))
	for ctx.Err() == nil && !f.retry.Swap(false) {
		left := time.Until(until)
		if left <= 0 {
			return
		}
		f.wait(ctx, left)
		f.takeChanges()
		if len(f.parts) == 0 {
			return
		}
	}
}

// disconnect closes the connection; the session ends with it.
func (f *fetcher) disconnect() {
	if f.channel != nil {
		f.channel.Close()
		f.channel = nil
	}
	f.session.reset()
	for _, part := range f.parts {
		part.named = false
	}
}

// round sends one fetch and does what the answer asks for.
func (f *fetcher) round(ctx context.Context) error {
	if f.channel == nil {
		if err := f.connect(ctx); err != nil {
			return err
		}
	}
	request := f.request()
	if request == nil {
		return nil // all of them have got new orders
	}
	answer, err := f.poll(ctx, request)
	if err != nil {
		return err
	}
	f.failures = 0
	channel := f.channel
	err = f.take(ctx, answer.response)
	channel.GiveBack(answer.frame) // what it held is in the logs now
	return err
}

// act does what is left to do for a partition after its part of an answer.
func (f *fetcher) act(ctx context.Context, part *following, step partition.Step) error {
	switch step.Kind {
	case partition.Append:
		part.failures = 0
		if at, ok := part.partition.position(part.epoch); !ok {
			f.drop(part)
		} else if at != part.at {
			f.enqueue(part)
		}
	case partition.AskBounds:
		return f.askBounds(ctx, part)
	case partition.Halt:
		f.drop(part)
	default:
		f.logLater(part, step.Err)
		f.retryLater(part)
	}
	return nil
}

// logLater says why a partition rests, if it goes on for longer than a change of leadership takes.
func (f *fetcher) logLater(part *following, err error) {
	const patience = 8
	if part.failures != patience || err == nil {
		return
	}
	f.all.shared.Logger.Warn("a follower gets no records; trying again", "partition", part.partition.tp, "leader", f.name.leader,
		"leader-epoch", part.epoch, "error", err)
}
