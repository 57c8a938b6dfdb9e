package replica

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Partition is one replica on this broker. All methods may be called concurrently.
type Partition struct {
	tp      protocol.TopicPartition
	id      protocol.TopicID
	options *Options

	// lock is the one lock of a partition, see the package comment. It guards leader.
	lock chan struct{}
	// leader is nil while this replica does not lead.
	leader *partition.Leader

	// epoch is the leader epoch while this replica leads, and NoLeaderEpoch otherwise. Readers look at
	// it without the lock.
	epoch atomic.Int32
	// log is nil until there is one: the log of an internal topic is made with its first record.
	log atomic.Pointer[log.Log]
	// settings is what the topic's properties say now, shared with other partitions.
	settings atomic.Pointer[config.Topic]
	// refusal is why requests fail while this replica does not lead.
	refusal atomic.Pointer[error]

	commits  commitWaiters
	watchers watchers
}

func newPartition(tp protocol.TopicPartition, id protocol.TopicID, o *Options) *Partition {
	p := &Partition{tp: tp, id: id, options: o, lock: make(chan struct{}, 1)}
	p.epoch.Store(int32(protocol.NoLeaderEpoch))
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

// Leader is the leader epoch, while this replica leads.
func (p *Partition) Leader() (protocol.LeaderEpoch, bool) {
	epoch := protocol.LeaderEpoch(p.epoch.Load())
	return epoch, epoch != protocol.NoLeaderEpoch
}

// CheckLeader returns nil while this replica leads, in the given epoch where the client names one:
// FENCED_LEADER_EPOCH where the client's is older, UNKNOWN_LEADER_EPOCH where it is newer (KIP-320).
func (p *Partition) CheckLeader(client protocol.LeaderEpoch) error {
	epoch, leads := p.Leader()
	switch {
	case !leads:
		return *p.refusal.Load()
	case client == protocol.NoLeaderEpoch || client == epoch:
		return nil
	case client < epoch:
		return protocol.FencedLeaderEpoch
	}
	return protocol.UnknownLeaderEpoch
}

// lead begins a leader epoch, or takes over a new in-sync set within the one that runs.
func (p *Partition) lead(state *metadata.Partition, settings *config.Topic) error {
	p.lock <- struct{}{}
	defer p.release()
	if p.leader != nil && state.LeaderEpoch < p.leader.Epoch {
		return protocol.Errorf(protocol.FencedLeaderEpoch, "%s is led in epoch %d, not %d", p.tp, p.leader.Epoch, state.LeaderEpoch)
	}
	p.settings.Store(settings)
	if p.leader != nil && p.leader.Epoch == state.LeaderEpoch {
		if l := p.log.Load(); l != nil {
			l.ShareConfig(settings)
		}
		p.leader.SetInSync(state.ISR)
		p.advance()
		return nil
	}
	l, err := p.openLog(settings)
	if err != nil {
		p.resignLocked(err)
		return err
	}
	var end, watermark protocol.Offset
	if l != nil {
		if held := l.LatestEpoch(); held >= state.LeaderEpoch {
			err := fmt.Errorf("leader epoch %d is not above %d, which the log of %s holds already: two leaders could write the same epoch", state.LeaderEpoch, held, p.tp)
			p.resignLocked(err)
			return err
		}
		l.ShareConfig(settings)
		end, watermark = l.EndOffset(), l.HighWatermark()
		if err := l.AssignEpoch(state.LeaderEpoch, end); err != nil {
			p.resignLocked(err)
			return err
		}
	}
	if p.leader != nil {
		p.resignLocked(protocol.NotLeaderOrFollower)
	}
	p.leader = partition.Lead(p.options.Self, state.LeaderEpoch, state.ISR, end, watermark)
	p.epoch.Store(int32(state.LeaderEpoch))
	p.advance()
	return nil
}

// openLog finds the log of a partition, or makes it, except for internal topics.
func (p *Partition) openLog(settings *config.Topic) (*log.Log, error) {
	if l := p.log.Load(); l != nil {
		return l, nil
	}
	l := p.options.Dirs.Get(p.tp)
	if l == nil && protocol.IsInternalTopic(p.tp.Topic) {
		return nil, p.options.Dirs.Err(p.tp)
	}
	if l == nil {
		return p.createLog(settings)
	}
	p.log.Store(l)
	return l, nil
}

func (p *Partition) createLog(settings *config.Topic) (*log.Log, error) {
	l, err := p.options.Dirs.Create(p.tp, p.id, *settings)
	if err != nil {
		return nil, protocol.Errorf(protocol.KafkaStorageError, "the log of %s cannot be made: %w", p.tp, err)
	}
	l.ShareConfig(settings)
	p.log.Store(l)
	return l, nil
}

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
			p.resignLocked(err)
			return err
		}
		l.ShareConfig(p.settings.Load())
	}
	p.log.Store(l)
	return nil
}

// resign ends the leadership: from now on requests are refused with reason.
func (p *Partition) resign(reason error) {
	p.lock <- struct{}{}
	defer p.release()
	p.resignLocked(reason)
}

// resignLocked needs the lock. Those who wait for a commit fail before anything else can happen to the
// log, since a later leader may cut what they wait for.
func (p *Partition) resignLocked(reason error) {
	p.refuse(reason)
	p.epoch.Store(int32(protocol.NoLeaderEpoch))
	p.leader = nil
	p.commits.fail(protocol.NotLeaderOrFollower)
	p.watchers.notify()
}

// refuse remembers why requests fail.
func (p *Partition) refuse(reason error) {
	reason = storageError(reason)
	p.refusal.Store(&reason)
}

// configure takes over the topic's new settings.
func (p *Partition) configure(settings *config.Topic) {
	p.settings.Store(settings)
	if l := p.log.Load(); l != nil {
		l.ShareConfig(settings)
	}
	p.lock <- struct{}{}
	defer p.release()
	p.advance()
}

// advance moves the watermark as far as it may go and wakes those who wait for it. It needs the lock.
func (p *Partition) advance() {
	if p.leader == nil {
		return
	}
	watermark := p.leader.Advance(p.settings.Load().MinInsyncReplicas)
	p.publish(watermark)
}

func (p *Partition) publish(watermark protocol.Offset) {
	if l := p.log.Load(); l != nil {
		l.SetHighWatermark(watermark)
	}
	p.commits.advance(watermark)
	p.watchers.notify()
}

// release gives the lock back. A panic under it means that our idea of this partition is wrong: the
// partition is poisoned before anybody else can get at it, and the panic goes on to the request.
func (p *Partition) release() {
	if cause := recover(); cause != nil {
		p.options.Logger.Error("a partition is taken out of service after a bug", "partition", p.tp, "panic", cause, "stack", string(debug.Stack()))
		p.resignLocked(protocol.Errorf(protocol.KafkaStorageError, "%s is out of service after an internal error", p.tp))
		<-p.lock
		panic(cause)
	}
	<-p.lock
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
