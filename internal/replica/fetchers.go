package replica

import (
	"context"
	"hash/fnv"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// fetchers fetch from the leaders of the partitions that this broker follows: for each leader
// num.replica.fetchers of them, each with one connection. A partition is always the same one's, so that its
// records come in order.
//
//	Apply ─▶ assign, remove ─▶ fetcher (leader 2, 0) ─ one request at a time ─▶ leader 2
//	                        └▶ fetcher (leader 3, 0) ─────────────────────────▶ leader 3
//
// A fetcher ends with its last partition.
type fetchers struct {
	shared *shared

	mu       sync.Mutex
	ctx      context.Context // nil before run
	ended    bool
	running  map[fetcherName]*fetcher
	assigned map[protocol.TopicPartition]assignment
	number   int // of fetchers for each leader, as of the last resize
	finish   sync.WaitGroup
}

// fetcherName names one fetcher.
type fetcherName struct {
	leader protocol.BrokerID
	index  int
}

// assignment is a partition and who fetches it.
type assignment struct {
	fetcherName
	partition *Partition
	epoch     protocol.LeaderEpoch
}

func newFetchers(c *shared) *fetchers {
	fs := &fetchers{shared: c, running: map[fetcherName]*fetcher{}, assigned: map[protocol.TopicPartition]assignment{}}
	fs.resize()
	return fs
}

// resize takes over another num.replica.fetchers: partitions move to the fetchers that have them now.
func (fs *fetchers) resize() {
	number := max(int(fs.shared.Config().Int("num.replica.fetchers")), 1)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if number == fs.number {
		return
	}
	fs.number = number
	for _, a := range fs.assigned {
		fs.assignLocked(a.partition, a.leader, a.epoch)
	}
}

// run lets the fetchers fetch until ctx ends.
func (fs *fetchers) run(ctx context.Context) {
	fs.mu.Lock()
	fs.ctx = ctx
	for _, f := range fs.running {
		fs.launch(f)
	}
	fs.mu.Unlock()
	<-ctx.Done()
	fs.mu.Lock()
	fs.ended = true
	fs.mu.Unlock()
	fs.finish.Wait()
}

// launch needs mu.
func (fs *fetchers) launch(f *fetcher) {
	if fs.ctx != nil && !fs.ended {
		fs.finish.Go(func() { f.run(fs.ctx) })
	}
}

// assign makes a partition be fetched from the leader of its state, and from nobody else.
func (fs *fetchers) assign(p *Partition, leader protocol.BrokerID, epoch protocol.LeaderEpoch) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.assignLocked(p, leader, epoch)
}

// assignLocked needs mu.
func (fs *fetchers) assignLocked(p *Partition, leader protocol.BrokerID, epoch protocol.LeaderEpoch) {
	name := fetcherName{leader, fs.index(p.tp)}
	if old, ok := fs.assigned[p.tp]; ok && old.fetcherName != name {
		fs.tell(old.fetcherName, p.tp, nil)
	}
	fs.assigned[p.tp] = assignment{name, p, epoch}
	f := fs.running[name]
	if f == nil {
		f = newFetcher(fs, name)
		fs.running[name] = f
		fs.launch(f)
	}
	f.tell(p.tp, &following{partition: p, epoch: epoch})
}

// remove makes a partition be fetched from nobody.
func (fs *fetchers) remove(tp protocol.TopicPartition) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if a, ok := fs.assigned[tp]; ok {
		delete(fs.assigned, tp)
		fs.tell(a.fetcherName, tp, nil)
	}
}

// tell needs mu.
func (fs *fetchers) tell(name fetcherName, tp protocol.TopicPartition, what *following) {
	if f := fs.running[name]; f != nil {
		f.tell(tp, what)
	}
}

// retire ends a fetcher that has nothing to do, unless it was told of something in this moment.
func (fs *fetchers) retire(f *fetcher) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.changes) > 0 {
		return false
	}
	delete(fs.running, f.name)
	return true
}

// retry makes fetchers try at once that wait after a failure: the cluster has changed.
func (fs *fetchers) retry() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.running {
		f.retry.Store(true)
		f.wakeUp()
	}
}

// index is which of a leader's fetchers has a partition. It needs mu.
func (fs *fetchers) index(tp protocol.TopicPartition) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tp.Topic)) // never fails
	return int((h.Sum32() + uint32(tp.Partition)) % uint32(fs.number))
}
