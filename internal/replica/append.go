package replica

import (
	"context"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// Acks is what a producer asks to wait for; the numbers go over the wire.
type Acks int16

// The three settings of a producer's acks.
const (
	AcksAll    Acks = -1
	AcksNone   Acks = 0
	AcksLeader Acks = 1
)

// Append appends one validated batch as the leader and returns where it stands and the epoch that it was
// appended in, for [Partition.Wait]. With flush.messages it returns once the records are synced. Its errors carry Kafka's
// code; after any of them nothing was appended, but where the leadership or the disk is lost during that sync.
func (p *Partition) Append(ctx context.Context, v record.Validated, acks Acks) (log.Appended, protocol.LeaderEpoch, error) {
	return p.append(ctx, v, acks, protocol.NoLeaderEpoch)
}

// AppendIn is Append with acks=all, refused unless this replica has led without a break since epoch: a coordinator
// names the epoch in which it loaded its state, and nobody else may have written since. Where the batch is in the log
// although its sync failed the error is NOT_LEADER_OR_FOLLOWER: the state is to be loaded again.
func (p *Partition) AppendIn(ctx context.Context, v record.Validated, epoch protocol.LeaderEpoch) (log.Appended, error) {
	appended, _, err := p.append(ctx, v, AcksAll, epoch)
	if err != nil && appended.SyncDue {
		err = protocol.Errorf(protocol.NotLeaderOrFollower, "a batch of %s is in the log, but not synced: %v", p.tp, err)
	}
	return appended, err
}

// append is Append, in an unbroken leadership since want where that is named. With an error it tells where the batch is
// only if it is in the log, not synced.
func (p *Partition) append(ctx context.Context, v record.Validated, acks Acks, want protocol.LeaderEpoch) (log.Appended, protocol.LeaderEpoch, error) {
	if err := p.acquire(ctx); err != nil {
		return log.Appended{}, protocol.NoLeaderEpoch, err
	}
	defer p.release()
	// The handler has asked CheckLeader already, but without the lock.
	if p.leader == nil {
		return log.Appended{}, protocol.NoLeaderEpoch, *p.refusal.Load()
	}
	epoch := p.leader.Epoch
	if want != protocol.NoLeaderEpoch && !term(p.term.Load()).covers(want) {
		return log.Appended{}, epoch, protocol.NotLeaderOrFollower
	}
	settings := p.settings.Load()
	if err := p.leader.Admit(acks == AcksAll); err != nil {
		return log.Appended{}, epoch, err
	}
	l := p.log.Load()
	if l == nil {
		var err error
		if l, err = p.createLog(settings); err != nil {
			return log.Appended{}, epoch, err
		}
	}
	appended, err := l.AppendLeader(v, epoch)
	if err != nil {
		return log.Appended{}, epoch, err
	}
	if appended.SyncDue {
		if err := p.sync(appended.Last+1, epoch); err != nil {
			return appended, epoch, err
		}
	}
	// A repeated batch moves nothing that the machine knows: its first copy may not be committed yet, and the caller waits for
	// that one. Where the sync of that copy failed it is news. Of several that were synced together the last may come first,
	// and a new epoch has begun at the log's own end.
	if appended.Last >= p.leader.End() || !appended.Duplicate && !appended.SyncDue {
		p.appended(appended.Last + 1)
	}
	return appended, epoch, nil
}

// sync makes what was appended in epoch durable, and gives the lock up meanwhile: others append, and all of them share the
// next sync. Followers fetch during it, while for the machine, and so for the watermark, the log still ends before.
//
//	producer 1   append ── sync ─────────┐ appended
//	producer 2        append ── waits    └ sync ─────────┐ appended
//	producer 3          append ── waits                  └ nothing left to do: appended
//
// It fails with why this replica does not lead any more where that is so afterwards, though it may lead again.
func (p *Partition) sync(end protocol.Offset, epoch protocol.LeaderEpoch) error {
	p.watchers.notify(followers)
	for {
		l := p.log.Load()
		err := p.unlocked(func() error { return l.Sync(end) })
		switch {
		case p.leader == nil:
			return *p.refusal.Load()
		case !term(p.term.Load()).covers(epoch):
			return protocol.NotLeaderOrFollower
		case p.log.Load() == l:
			return err
		}
		// The log has moved to another directory, with these records: they are to be durable there.
	}
}

// unlocked does something without the lock, which the caller has before and after.
func (p *Partition) unlocked(do func() error) error {
	p.release()
	defer func() { p.lock <- struct{}{} }()
	return do()
}

// appended takes the new log end over. It needs the lock.
func (p *Partition) appended(end protocol.Offset) {
	if p.leader.Alone() { // the time does not matter, and costs as much as the rest
		p.publish(p.leader.Appended(end, 0))
		return
	}
	p.publish(p.leader.Appended(end, p.options.clock()))
	p.watchers.notify(followers)
}
