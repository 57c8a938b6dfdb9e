package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Replicas holds the partitions of one broker. Its methods may be called concurrently, except Apply, which
// one goroutine calls.
type Replicas struct {
	options  *shared
	fetchers *fetchers
	// noted is what was logged about partitions that cannot do what they are told, which Apply is told again
	// and again.
	noted    map[protocol.TopicPartition]string
	settings settings // Apply's alone
	// leftovers are the logs that were found at the start and that nobody has claimed; Apply's alone.
	leftovers leftovers
	// image is the newest one.
	image atomic.Pointer[metadata.Image]

	mu struct {
		sync.RWMutex
		partitions map[protocol.TopicPartition]*Partition
	}
}

// New makes an empty set: partitions come with the first image.
func New(o Options) *Replicas {
	c := newShared(o)
	r := &Replicas{options: c, fetchers: newFetchers(c), noted: map[protocol.TopicPartition]string{}}
	r.settings = settings{known: map[config.Topic]*config.Topic{}, topics: map[string]*config.Topic{}}
	r.mu.partitions = map[protocol.TopicPartition]*Partition{}
	return r
}

// Partition finds a partition that has a replica here, whatever its role. Where there is none, the error is
// NOT_LEADER_OR_FOLLOWER if the partition is elsewhere, as after a reassignment: the client then asks who leads
// it; otherwise UNKNOWN_TOPIC_OR_PARTITION, after which some clients give up soon.
func (r *Replicas) Partition(tp protocol.TopicPartition) (*Partition, error) {
	r.mu.RLock()
	p := r.mu.partitions[tp]
	r.mu.RUnlock()
	if p == nil {
		return nil, r.missing(tp)
	}
	return p, nil
}

// missing is why requests fail for a partition that has no replica here.
func (r *Replicas) missing(tp protocol.TopicPartition) error {
	if image := r.image.Load(); image != nil && image.Partition(tp) != nil {
		return protocol.NotLeaderOrFollower
	}
	return protocol.UnknownTopicOrPartition
}

// All lists the partitions in no order.
func (r *Replicas) All() []*Partition {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*Partition, 0, len(r.mu.partitions))
	for _, p := range r.mu.partitions {
		all = append(all, p)
	}
	return all
}

// Run fetches from leaders and keeps the in-sync sets until ctx ends.
func (r *Replicas) Run(ctx context.Context) {
	var jobs sync.WaitGroup
	jobs.Go(func() { r.fetchers.run(ctx) })
	jobs.Go(func() { r.sendProposals(ctx) })
	jobs.Go(func() { r.watchFollowers(ctx) })
	jobs.Wait()
}

// watchFollowers looks for members of in-sync sets that lag, every half of replica.lag.time.max.ms as Kafka does.
func (r *Replicas) watchFollowers(ctx context.Context) {
	for {
		timer := time.NewTimer(r.options.Config().Duration("replica.lag.time.max.ms") / 2)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		for _, p := range r.All() {
			p.checkFollowers()
		}
	}
}

// note logs and remembers a failure, the same one once; nil is none.
func (r *Replicas) note(failed map[protocol.TopicPartition]error, tp protocol.TopicPartition, err error) {
	if err == nil {
		delete(r.noted, tp)
		return
	}
	failed[tp] = err
	if r.noted[tp] != err.Error() {
		r.options.Logger.Error("a replica cannot do what the controller asks", "partition", tp, "error", err)
		r.noted[tp] = err.Error()
	}
}

// setStraysAside takes the logs out of service that belong to an earlier topic of the same name: a topic id has
// one log, and the replica of the new topic starts empty. Nothing is deleted, since only the deletion of the
// earlier topic would allow that.
func (r *Replicas) setStraysAside(changes []metadata.ReplicaChange, failed map[protocol.TopicPartition]error) {
	var strays []protocol.TopicPartition
	for _, change := range changes {
		l := r.options.Dirs.Get(change.TopicPartition)
		if l == nil || change.Role != metadata.Lead && change.Role != metadata.Follow {
			continue
		}
		if id := l.TopicID(); id != change.TopicID && !id.IsZero() && !change.TopicID.IsZero() {
			r.drop(change.TopicPartition)
			strays = append(strays, change.TopicPartition)
		}
	}
	if len(strays) == 0 {
		return
	}
	if err := r.options.Dirs.MarkStray(strays...); err != nil {
		for _, tp := range strays {
			r.note(failed, tp, err)
		}
	}
}

// createLogs makes the logs that are missing, all at once: a directory is synced once for all of them.
func (r *Replicas) createLogs(changes []metadata.ReplicaChange, image *metadata.Image, failed map[protocol.TopicPartition]error) {
	var specs []logdir.Spec
	for _, change := range changes {
		tp := change.TopicPartition
		if change.Role != metadata.Lead && change.Role != metadata.Follow || failed[tp] != nil {
			continue
		}
		if err := r.options.Dirs.Err(tp); err != nil {
			r.note(failed, tp, err)
			r.ensure(tp, change.TopicID).resign(err)
			continue
		}
		if l := r.options.Dirs.Get(tp); l != nil {
			r.note(failed, tp, l.AssignTopicID(change.TopicID))
			continue
		}
		if protocol.IsInternalTopic(tp.Topic) {
			continue // made with its first record
		}
		specs = append(specs, logdir.Spec{Partition: tp, TopicID: change.TopicID, Config: *r.settingsOf(tp.Topic, image), New: change.New})
	}
	if len(specs) == 0 {
		return
	}
	_, errs := r.options.Dirs.CreateAll(specs)
	for i, err := range errs {
		if err != nil {
			r.note(failed, specs[i].Partition, err)
			r.ensure(specs[i].Partition, specs[i].TopicID).resign(err)
		}
	}
}

// Fence takes the partitions out of service whose logs have gone offline since, and returns them. Without an
// order of the controller they would go on serving reads.
func (r *Replicas) Fence() []protocol.TopicPartition {
	var fenced []protocol.TopicPartition
	for _, p := range r.All() {
		if !p.serves() {
			continue
		}
		if err := r.options.Dirs.Err(p.tp); err != nil {
			r.fetchers.remove(p.tp)
			p.resign(err)
			fenced = append(fenced, p.tp)
		}
	}
	return fenced
}

// ensure finds a partition, or adds it. A partition of the same name with another topic id is another
// partition: the old one ends.
func (r *Replicas) ensure(tp protocol.TopicPartition, id protocol.TopicID) *Partition {
	r.mu.Lock()
	p := r.mu.partitions[tp]
	var old *Partition
	if p != nil && p.id != id && !id.IsZero() {
		old, p = p, nil
	}
	if p == nil {
		p = newPartition(tp, id, r.options)
		r.mu.partitions[tp] = p
	}
	r.mu.Unlock()
	if old != nil { // not under mu, since its lock may be held across file I/O
		old.resign(protocol.UnknownTopicOrPartition)
	}
	return p
}

// drop takes a partition out of service; its log stays.
func (r *Replicas) drop(tp protocol.TopicPartition) {
	r.mu.Lock()
	p := r.mu.partitions[tp]
	delete(r.mu.partitions, tp)
	r.mu.Unlock()
	if p != nil {
		p.resign(r.missing(tp))
	}
}

// configure hands changed settings to the logs that they concern: those of one topic, or all where the
// broker's own defaults changed.
func (r *Replicas) configure(changed []metadata.Entity, image *metadata.Image) {
	topics := map[string]bool{}
	everything := false
	for _, entity := range changed {
		switch entity.Type() {
		case metadata.TopicEntities:
			topics[entity.Name()] = true
		case metadata.BrokerEntities:
			everything = true
		}
	}
	if everything {
		r.fetchers.resize()
	}
	if !everything && len(topics) == 0 {
		return
	}
	defer r.fetchers.retry() // what was throttled may not be any more
	for _, p := range r.All() {
		if !everything && !topics[p.tp.Topic] {
			continue
		}
		resolved, err := r.options.Topic(image.TopicConfig(p.tp.Topic))
		if err != nil && p.Settings() != nil {
			r.options.Logger.Error("a topic keeps its old settings: the new ones are not valid", "topic", p.tp.Topic, "error", err)
			continue
		}
		p.configure(r.settings.share(resolved))
	}
}

// LogOf finds the log of a partition whatever its role; nil where there is none.
func (r *Replicas) LogOf(tp protocol.TopicPartition) *log.Log {
	p, err := r.Partition(tp)
	if err != nil {
		return nil
	}
	return p.Log()
}

// Stats are what a broker's replication adds up to.
type Stats struct {
	// Shrinks and Expands count changes of in-sync sets by this broker's proposals, Refused those that the
	// controller refused.
	Shrinks, Expands, Refused int64
	// MaxLag is by how many committed records the followed partition that lags most is behind.
	MaxLag int64
}

// Stats adds the replication up.
func (r *Replicas) Stats() Stats {
	s := Stats{Shrinks: r.options.shrinks.Load(), Expands: r.options.expands.Load(), Refused: r.options.refused.Load()}
	for _, p := range r.All() {
		s.MaxLag = max(s.MaxLag, p.lag.Load())
	}
	return s
}
