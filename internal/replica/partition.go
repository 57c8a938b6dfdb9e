package replica

import (
	"context"
	"runtime/debug"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Partition is one replica on this broker. All methods may be called concurrently.
type Partition struct {
	tp      protocol.TopicPartition
	id      protocol.TopicID
	options *shared

	// lock is the one lock of a partition, see the package comment. It guards what follows.
	lock chan struct{}
	// leader is nil while this replica does not lead.
	leader *partition.Leader
	// caughtUp says that this follower had all that was committed when it last heard of it, or that it is in sync.
	caughtUp bool
	// following is whom this replica follows; its epoch is NoLeaderEpoch while it follows nobody.
	following partition.Follower
	// comparison is of a log that ends with records without epochs; inactive otherwise.
	comparison comparison

	// Readers look at these without the lock.
	term  atomic.Int64 // the leaderships, see term
	begun atomic.Int64 // the log end offset at which the leader epoch began
	told  atomic.Int32 // the leader epoch of the last order, to lead or to follow; NoLeaderEpoch before
	lag   atomic.Int64 // committed records that this follower has not got
	under atomic.Bool  // fewer replicas are in sync than min.insync.replicas asks for
	// adding is how many replicas a reassignment adds, as the leader heard it last.
	adding atomic.Int32
	// log is nil until there is one: the log of an internal topic is made with its first record.
	log atomic.Pointer[log.Log]
	// settings is what the topic's properties say now, shared with other partitions.
	settings atomic.Pointer[config.Topic]
	// refusal is why requests fail while this replica does not lead.
	refusal atomic.Pointer[error]

	commits  commitWaiters
	starts   commitWaiters // for the low watermark
	low      protocol.Offset
	watchers watchers
	due      wakeups // of the three above
}

func newPartition(tp protocol.TopicPartition, id protocol.TopicID, o *shared) *Partition {
	p := &Partition{tp: tp, id: id, options: o, lock: make(chan struct{}, 1)}
	p.following, p.low = nobody, protocol.NoOffset
	p.commits.due, p.starts.due, p.watchers.due = &p.due, &p.due, &p.due
	p.term.Store(int64(noTerm))
	p.told.Store(int32(protocol.NoLeaderEpoch))
	p.refuse(protocol.NotLeaderOrFollower)
	return p
}

// Name is the topic and the number of the partition.
func (p *Partition) Name() protocol.TopicPartition { return p.tp }

// TopicID is the id of the topic that the partition belongs to; zero in clusters older than Kafka 2.8.
func (p *Partition) TopicID() protocol.TopicID { return p.id }

// Log is the partition's log; nil for a partition of an internal topic that nothing was written to.
func (p *Partition) Log() *log.Log { return p.log.Load() }

// Settings is what the topic's properties say now; nil before this replica first led.
func (p *Partition) Settings() *config.Topic { return p.settings.Load() }

// term is an unbroken leadership: the epoch in which it began, and the present one. A leader that gets the next
// epoch, and misses none, has led without a break, since every other leader would have had an epoch of its own.
//
//	first epoch, 32 bits | present epoch, 32 bits
type term int64

const noTerm = term(-1)

func newTerm(first, present protocol.LeaderEpoch) term {
	return term(int64(first)<<32 | int64(present))
}

func (t term) present() protocol.LeaderEpoch { return protocol.LeaderEpoch(int32(t)) }

// covers reports whether an append in epoch is still under the same leadership.
func (t term) covers(epoch protocol.LeaderEpoch) bool {
	return t != noTerm && epoch >= protocol.LeaderEpoch(int64(t)>>32) && epoch <= t.present()
}

// Leader is the leader epoch, while this replica leads.
func (p *Partition) Leader() (protocol.LeaderEpoch, bool) {
	t := term(p.term.Load())
	return t.present(), t != noTerm
}

// CheckLeader returns nil while this replica leads, in the given epoch where the client names one:
// FENCED_LEADER_EPOCH where the client's is older, UNKNOWN_LEADER_EPOCH where it is newer (KIP-320).
func (p *Partition) CheckLeader(client protocol.LeaderEpoch) error {
	epoch, leads := p.Leader()
	if !leads {
		return *p.refusal.Load()
	}
	return compareEpochs(client, epoch)
}

// CheckReplica is CheckLeader for a client that may read from a follower, too (KIP-392).
func (p *Partition) CheckReplica(client protocol.LeaderEpoch) error {
	epoch := protocol.LeaderEpoch(p.told.Load())
	if _, leads := p.Leader(); leads {
		return p.CheckLeader(client)
	}
	// A replica that cannot do what it was told has another reason than being a follower.
	if refusal := *p.refusal.Load(); epoch == protocol.NoLeaderEpoch || protocol.CodeOf(refusal) != protocol.NotLeaderOrFollower {
		return refusal
	}
	return compareEpochs(client, epoch)
}

func compareEpochs(client, epoch protocol.LeaderEpoch) error {
	switch {
	case client == protocol.NoLeaderEpoch || client == epoch:
		return nil
	case client < epoch:
		return protocol.FencedLeaderEpoch
	}
	return protocol.UnknownLeaderEpoch
}

// serves reports whether this replica leads or follows.
func (p *Partition) serves() bool {
	return protocol.CodeOf(p.CheckReplica(protocol.NoLeaderEpoch)) == protocol.None
}

// UnderMinimum reports whether this replica leads and fewer are in sync than min.insync.replicas asks for.
func (p *Partition) UnderMinimum() bool { return p.under.Load() }

// Adding is how many of the replicas a reassignment under way adds, as far as this one has heard, which only a leader has
// to the end. They are not missed as long as they are not in sync.
func (p *Partition) Adding() int { return int(p.adding.Load()) }

// SwapLog makes a copy of the log in another directory the partition's log. finish runs under the
// partition's lock, so that nothing is appended while it makes both logs equal.
func (p *Partition) SwapLog(finish func() (*log.Log, error)) error {
	p.lock <- struct{}{}
	defer p.release()
	l, err := finish()
	if err != nil {
		return err
	}
	if p.leader != nil {
		// What a leader notes of its epoch is in memory only until the epoch's first record.
		if err := l.AssignEpoch(p.leader.Epoch, p.leader.EpochStart); err != nil {
			p.standDownLocked(err)
			return err
		}
	}
	l.ShareConfig(p.settings.Load())
	p.log.Store(l)
	return nil
}

// configure takes over the topic's new settings.
func (p *Partition) configure(settings *config.Topic) {
	p.settings.Store(settings)
	if l := p.log.Load(); l != nil {
		l.ShareConfig(settings)
	}
	p.lock <- struct{}{}
	defer p.release()
	if p.leader != nil {
		p.leader.SetMinimum(settings.MinInsyncReplicas, p.options.clock())
		p.ledLocked()
	}
}

// publish takes over where the watermark stands now. It needs the lock.
func (p *Partition) publish(watermark protocol.Offset) {
	moved := true
	if l := p.log.Load(); l != nil {
		moved = watermark > l.HighWatermark()
		l.SetHighWatermark(watermark)
	}
	p.commits.advance(watermark)
	if moved {
		p.watchers.notify(consumers)
	}
}

// release gives the lock back, and wakes who waits for what was done under it. A panic under it means that our idea of this
// partition is wrong: the partition is poisoned before anybody else can get at it, and the panic goes on to the request.
func (p *Partition) release() {
	if cause := recover(); cause != nil {
		p.options.Logger.Error("a partition is taken out of service after a bug", "partition", p.tp, "panic", cause, "stack", string(debug.Stack()))
		p.standDownLocked(protocol.Errorf(protocol.KafkaStorageError, "%s is out of service after an internal error", p.tp))
		<-p.lock
		p.due.run()
		panic(cause)
	}
	<-p.lock
	p.due.run()
}

// acquire takes the lock unless ctx ends first.
func (p *Partition) acquire(ctx context.Context) error {
	select {
	case p.lock <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
