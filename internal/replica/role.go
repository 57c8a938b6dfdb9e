package replica

import (
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/planted"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// nobody is whom a replica follows that follows nobody.
var nobody = partition.Follower{Leader: protocol.NoBroker, Epoch: protocol.NoLeaderEpoch}

// lead begins a leader epoch, or takes over a new in-sync set within the one that runs.
func (p *Partition) lead(state *metadata.Partition, settings *config.Topic) error {
	p.lock <- struct{}{}
	defer p.release()
	now := p.options.clock()
	if p.leader != nil && state.LeaderEpoch < p.leader.Epoch {
		return protocol.Errorf(protocol.FencedLeaderEpoch, "%s is led in epoch %d, not %d", p.tp, p.leader.Epoch, state.LeaderEpoch)
	}
	p.settings.Store(settings)
	p.adding.Store(int32(len(state.Adding)))
	if p.leader != nil && p.leader.Epoch == state.LeaderEpoch {
		if l := p.log.Load(); l != nil {
			l.ShareConfig(settings)
		}
		p.leader.SetMinimum(settings.MinInsyncReplicas, now)
		p.leader.Told(state, now)
		p.ledLocked()
		return nil
	}
	at, err := p.prepare(state.LeaderEpoch, settings)
	if err != nil {
		p.standDownLocked(err)
		return err
	}
	first := state.LeaderEpoch
	if p.leader != nil && p.leader.Epoch+1 == state.LeaderEpoch {
		first = protocol.LeaderEpoch(p.term.Load() >> 32) // nobody else led in between
	} else {
		p.resignLocked(protocol.NotLeaderOrFollower)
	}
	p.following = nobody
	p.leader = partition.Lead(state, partition.Settings{
		Self: p.options.Self, BrokerEpoch: p.options.BrokerEpoch(),
		MinInSync: settings.MinInsyncReplicas, MaxLag: p.options.Config().Duration("replica.lag.time.max.ms"),
	}, at, now)
	p.begun.Store(int64(at.End))
	p.told.Store(int32(state.LeaderEpoch))
	p.term.Store(int64(newTerm(first, state.LeaderEpoch)))
	p.ledLocked()
	p.watchers.notify(everybody) // followers that fetch in the old epoch have to learn of the new one
	return nil
}

// prepare makes the log ready to be led in epoch, and says where it stands.
func (p *Partition) prepare(epoch protocol.LeaderEpoch, settings *config.Topic) (partition.Position, error) {
	l, err := p.openLog(settings)
	if err != nil || l == nil {
		return partition.Position{}, err
	}
	if err := p.newerThan(epoch, l); err != nil {
		return partition.Position{}, err
	}
	if held := l.LatestEpoch(); held == epoch {
		return partition.Position{}, fmt.Errorf(
			"leader epoch %d is in the log of %s already: two leaders could write the same epoch", epoch, p.tp)
	}
	l.ShareConfig(settings)
	end := l.EndOffset()
	// Before the first answer: a follower that asks where an older epoch ended must not be told the log end.
	if err := l.AssignEpoch(epoch, end); err != nil {
		return partition.Position{}, err
	}
	return partition.Position{End: end, Watermark: l.HighWatermark()}, nil
}

// newerThan refuses an epoch that is below one of the log's. Epochs rise, so the store has gone back, and whoever
// leads may lack what was committed since: to follow could cut it.
func (p *Partition) newerThan(epoch protocol.LeaderEpoch, l *log.Log) error {
	if held := l.LatestEpoch(); held > epoch {
		return fmt.Errorf("leader epoch %d of %s is below %d, which its log holds: the metadata store is older than the log. "+
			"Was it restored from an old backup? Restore a newer one; this replica neither leads nor follows until then", epoch, p.tp, held)
	}
	return nil
}

// follow ends a leadership and begins to follow the leader of state, if it has one.
func (p *Partition) follow(state *metadata.Partition, settings *config.Topic) error {
	p.lock <- struct{}{}
	defer p.release()
	if told := protocol.LeaderEpoch(p.told.Load()); state.LeaderEpoch < told {
		return protocol.Errorf(protocol.FencedLeaderEpoch, "%s is in leader epoch %d, not %d", p.tp, told, state.LeaderEpoch)
	}
	p.settings.Store(settings)
	l, err := p.openLog(settings)
	if err != nil {
		p.standDownLocked(err)
		return err
	}
	if l != nil {
		if err := p.newerThan(state.LeaderEpoch, l); err != nil {
			p.standDownLocked(err)
			return err
		}
		l.ShareConfig(settings)
	}
	p.resignLocked(protocol.NotLeaderOrFollower)
	p.caughtUp = slices.Contains(state.ISR, p.options.Self)
	p.following = partition.Follow(state, settings.UncleanLeaderElection)
	p.compareAnew(l)
	if planted.In(planted.WatermarkCut) && l != nil {
		if err := p.options.Dirs.TruncateTo(p.tp, l.HighWatermark()); err != nil {
			return err
		}
	}
	p.told.Store(int32(state.LeaderEpoch))
	return nil
}

// resign ends the leadership: from now on requests are refused with reason.
func (p *Partition) resign(reason error) {
	p.lock <- struct{}{}
	defer p.release()
	p.standDownLocked(reason)
}

// standDownLocked makes this replica neither leader nor follower. It needs the lock.
func (p *Partition) standDownLocked(reason error) {
	p.following = nobody
	p.resignLocked(reason)
}

// resignLocked needs the lock. Those who wait for a commit fail before anything else can happen to the
// log, since a later leader may cut what they wait for.
func (p *Partition) resignLocked(reason error) {
	p.refuse(reason)
	p.lag.Store(0)
	p.term.Store(int64(noTerm))
	p.leader = nil
	p.under.Store(false)
	p.commits.fail(protocol.NotLeaderOrFollower)
	p.starts.fail(protocol.NotLeaderOrFollower)
	p.low = protocol.NoOffset
	p.watchers.notify(everybody)
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

// refuse remembers why requests fail.
func (p *Partition) refuse(reason error) {
	reason = storageError(reason)
	p.refusal.Store(&reason)
}
