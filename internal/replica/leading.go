package replica

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Followed takes over a follower's position, which moves the high watermark and may let the follower join the
// in-sync set. epoch is the leader epoch in which the caller found that the follower's log agrees with this one
// up to the position.
func (p *Partition) Followed(ctx context.Context, q partition.Fetch, epoch protocol.LeaderEpoch) error {
	if err := p.acquire(ctx); err != nil {
		return err
	}
	defer p.release()
	if p.leader == nil {
		return *p.refusal.Load()
	}
	if err := compareEpochs(epoch, p.leader.Epoch); err != nil {
		return err
	}
	now := p.options.clock()
	watermark, err := p.leader.Fetched(q, now)
	if err != nil {
		return err
	}
	p.publish(watermark)
	p.lowered()
	if p.leader.MayExpand(q.Replica, now) {
		p.proposeLocked(now)
	}
	return nil
}

// ledLocked carries out what the machine has come to after something else than an append or a fetch. It needs
// the lock.
func (p *Partition) ledLocked() {
	p.under.Store(p.leader.UnderMinimum())
	p.publish(p.leader.Watermark())
	p.lowered()
	p.proposeLocked(p.options.clock())
}

// lowered takes over where the low watermark stands now. It needs the lock.
func (p *Partition) lowered() {
	if low := p.leader.LowWatermark(p.Bounds().Start); low != p.low {
		p.low = low
		p.starts.advance(low)
	}
}

// DeleteBefore moves the log start offset up, as DeleteRecords does, and returns the leader epoch for
// [Partition.WaitDeleted].
func (p *Partition) DeleteBefore(ctx context.Context, before protocol.Offset) (protocol.LeaderEpoch, error) {
	if err := p.acquire(ctx); err != nil {
		return protocol.NoLeaderEpoch, err
	}
	defer p.release()
	if p.leader == nil {
		return protocol.NoLeaderEpoch, *p.refusal.Load()
	}
	if l := p.log.Load(); l != nil {
		if err := l.AdvanceStart(before); err != nil {
			return protocol.NoLeaderEpoch, err
		}
	}
	p.lowered()
	p.watchers.notify(followers)
	return p.leader.Epoch, nil
}

// WaitDeleted waits until all in-sync replicas have moved their log start offsets to before: then the records are
// gone whoever leads next. When ctx ends first, the leader has moved, and the others follow.
func (p *Partition) WaitDeleted(ctx context.Context, epoch protocol.LeaderEpoch, before protocol.Offset) error {
	return p.wait(ctx, &p.starts, epoch, before)
}

// proposeLocked asks the controller for what the machine wants. It needs the lock.
func (p *Partition) proposeLocked(now time.Duration) {
	if proposal := p.leader.Propose(p.options.heard.last, now); proposal != nil {
		p.options.proposals.add(sentProposal{partition: p, proposal: proposal})
	}
}

// waits reports whether an answer to a proposal is still waited for.
func (p *Partition) waits(proposal *partition.Proposal) bool {
	p.lock <- struct{}{}
	defer p.release()
	return p.leader != nil && p.leader.Waits(proposal)
}

// answered takes the controller's answer to a proposal, and reports whether to send it again.
func (p *Partition) answered(proposal *partition.Proposal, answer partition.Answer) (again bool) {
	p.lock <- struct{}{}
	defer p.release()
	if p.leader == nil {
		return false
	}
	before := p.leader.InSync()
	again = p.leader.Answered(proposal, answer, p.options.clock())
	after := p.leader.InSync()
	switch {
	case len(before) > len(after):
		p.options.shrinks.Add(1)
	case len(before) < len(after):
		p.options.expands.Add(1)
	case answer.Code != protocol.None && !again:
		p.options.refused.Add(1)
	}
	if len(before) != len(after) {
		p.options.Logger.Info("the in-sync set has changed", "partition", p.tp, "from", before, "to", after,
			"leader-epoch", p.leader.Epoch, "partition-epoch", p.leader.PartitionEpoch(), "why", proposal.Why)
	}
	p.ledLocked()
	return again
}

// checkFollowers lets members of the in-sync set leave that lag, and what waits for others to join go on in the end.
func (p *Partition) checkFollowers() {
	if _, leads := p.Leader(); !leads {
		return
	}
	p.lock <- struct{}{}
	defer p.release()
	if p.leader != nil && !p.leader.Alone() {
		p.leader.Passed(p.options.clock())
		p.ledLocked()
	}
}

// learn takes over a newer state of the running leader epoch that UpdateMetadata shows.
func (p *Partition) learn(state *metadata.Partition) {
	if epoch, leads := p.Leader(); !leads || epoch != state.LeaderEpoch {
		return
	}
	p.lock <- struct{}{}
	defer p.release()
	if p.leader != nil {
		p.leader.Learn(state, p.options.clock())
		p.ledLocked()
	}
}

// gone says that a broker has left the cluster.
func (p *Partition) gone(broker protocol.BrokerID) {
	if _, leads := p.Leader(); !leads {
		return
	}
	p.lock <- struct{}{}
	defer p.release()
	if p.leader != nil && !p.leader.Alone() {
		p.leader.Gone(broker, p.options.clock())
		p.ledLocked()
	}
}

// Readable reports whether all that earlier leaders may have promised is committed; until then the end of what
// consumers may read is not known. True where this replica does not lead.
func (p *Partition) Readable() bool {
	if _, leads := p.Leader(); !leads {
		return true
	}
	return p.Bounds().HighWatermark >= protocol.Offset(p.begun.Load())
}

// Readers appends the in-sync followers from which consumers may read at offset to readers; none where this
// replica does not lead.
func (p *Partition) Readers(ctx context.Context, readers []partition.Reader, offset protocol.Offset) []partition.Reader {
	if err := p.acquire(ctx); err != nil {
		return readers
	}
	defer p.release()
	if p.leader == nil || p.leader.Alone() {
		return readers
	}
	return p.leader.Readers(readers, offset)
}

// Replication is what a leader knows of its followers.
type Replication struct {
	// InSync is the in-sync set; the caller must not change it.
	InSync []protocol.BrokerID
	// Lags says how many records each asked follower is behind.
	Lags []int64
}

// Replication tells of the given followers; false where this replica does not lead.
func (p *Partition) Replication(of []protocol.BrokerID) (Replication, bool) {
	p.lock <- struct{}{}
	defer p.release()
	if p.leader == nil {
		return Replication{}, false
	}
	r := Replication{InSync: p.leader.InSync()}
	for _, id := range of {
		r.Lags = append(r.Lags, p.leader.Lag(id))
	}
	return r, true
}
