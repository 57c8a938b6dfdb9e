package replica

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// position is from where a follower fetches next.
type position struct {
	// offset is its log end offset, start its log start offset, last the epoch of its last record.
	offset, start protocol.Offset
	last          protocol.LeaderEpoch
	// comparing says that offset is before the log end, since what follows has not been compared with the leader's yet.
	comparing bool
}

// fetched is what a leader answered about one partition.
type fetched struct {
	code protocol.Code
	// diverging is where the follower's last epoch ends in the leader's log, where the two differ.
	diverging *partition.EpochEnd
	// watermark and start are the leader's high watermark and log start offset.
	watermark, start protocol.Offset
	// batches begin at the offset that was asked for; the last one may be cut short.
	batches []byte
}

// position is where this replica fetches in the given epoch; false where it does not follow in it.
func (p *Partition) position(epoch protocol.LeaderEpoch) (position, bool) {
	p.lock <- struct{}{}
	defer p.release()
	if p.following.Epoch != epoch {
		return position{}, false
	}
	l := p.log.Load()
	if l == nil {
		return position{last: protocol.NoLeaderEpoch}, true
	}
	if p.comparison.active {
		return position{offset: p.comparison.upTo, start: l.StartOffset(), last: protocol.NoLeaderEpoch, comparing: true}, true
	}
	return position{offset: l.EndOffset(), start: l.StartOffset(), last: l.LatestEpoch()}, true
}

// replicate does what the leader's answer to a fetch from at asks for, and says what to do next: Append where all
// is done, AskBounds or Later, or Halt where this replica cannot go on in this epoch.
func (p *Partition) replicate(epoch protocol.LeaderEpoch, at position, got *fetched) partition.Step {
	p.lock <- struct{}{}
	defer p.release()
	if p.following.Epoch != epoch {
		return partition.Step{Kind: partition.Later} // the fetcher is about to hear of it
	}
	step := p.following.Answered(got.code)
	if step.Kind != partition.Append {
		return step
	}
	l := p.log.Load()
	if l == nil && len(got.batches) == 0 && got.start <= 0 {
		return step // nothing was ever written, and nothing needs a log yet
	}
	if l == nil {
		var err error
		if l, err = p.createLog(p.settings.Load()); err != nil {
			return p.failed(err)
		}
	}
	if at.comparing != p.comparison.active || at.offset != p.comparison.offset(l) {
		return step // the log has changed since the fetch: by a move between directories, or a cut
	}
	if at.comparing {
		return p.compare(l, got)
	}
	if got.diverging != nil {
		// Before anything else that the answer says: the watermark may lie above what is about to be cut.
		own := partition.EpochEnd{}
		own.Epoch, own.End = l.EndOffsetForEpoch(got.diverging.Epoch)
		return p.cut(p.following.Diverged(*got.diverging, own, held(l)))
	}
	return p.takeRecords(l, got)
}

// held is where a log stands.
func held(l *log.Log) partition.Held {
	return partition.Held{Start: l.StartOffset(), Watermark: l.HighWatermark(), End: l.EndOffset(), LastEpoch: l.LatestEpoch()}
}

// takeRecords appends what the leader sent, and takes over its watermark and log start. It needs the lock.
func (p *Partition) takeRecords(l *log.Log, got *fetched) partition.Step {
	batches, err := p.wholeBatches(got.batches)
	if err != nil {
		return partition.Step{Kind: partition.Later, Err: err}
	}
	if len(batches) > 0 {
		if p.throttled() {
			p.options.fetching.add(len(got.batches))
		}
		if err := p.appendFetched(l, batches); err != nil {
			return p.failed(err)
		}
	}
	before := l.HighWatermark()
	l.SetHighWatermark(p.following.Watermark(got.watermark, held(l)))
	p.lag.Store(max(int64(got.watermark-l.EndOffset()), 0))
	p.caughtUp = l.EndOffset() >= got.watermark
	if got.start > l.StartOffset() && got.start <= l.HighWatermark() {
		if err := l.AdvanceStart(got.start); err != nil {
			return p.failed(err)
		}
	}
	if l.HighWatermark() != before {
		p.watchers.notify(consumers)
	}
	return partition.Step{Kind: partition.Append}
}

// wholeBatches drops a batch at the end that is cut short, and refuses batches of an epoch that the leader cannot
// have written yet.
func (p *Partition) wholeBatches(batches []byte) ([]byte, error) {
	size := 0
	for e, err := range record.Entries(batches) {
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.LeaderEpoch > p.following.Epoch {
			return nil, fmt.Errorf("the leader of epoch %d has a batch at offset %d in epoch %d", p.following.Epoch, e.BaseOffset, e.LeaderEpoch)
		}
		size += e.Size
	}
	return batches[:size], nil
}

// appendFetched appends whole batches. An empty log that was begun within a batch, since the leader's log starts
// there, begins with that batch.
func (p *Partition) appendFetched(l *log.Log, batches []byte) error {
	first, err := record.ParseHeader(batches)
	if err != nil {
		return err
	}
	if base := first.BaseOffset; base < l.EndOffset() && l.StartOffset() == l.EndOffset() && first.LastOffset >= l.EndOffset() {
		start := l.EndOffset()
		if err := p.options.Dirs.TruncateFullyAndStartAt(p.tp, base); err != nil {
			return err
		}
		if _, err := l.AppendFollower(batches); err != nil {
			return err
		}
		l.SetHighWatermark(start) // all before it was committed
		return l.AdvanceStart(start)
	}
	_, err = l.AppendFollower(batches)
	return err
}

// cut carries a truncation out. It needs the lock.
func (p *Partition) cut(step partition.Step) partition.Step {
	var err error
	l := p.log.Load()
	before := held(l)
	switch step.Kind {
	case partition.Truncate:
		p.options.Logger.Info("a follower cuts its log to agree with the leader's", "partition", p.tp, "leader", p.following.Leader,
			"leader-epoch", p.following.Epoch, "from", l.EndOffset(), "to", step.Offset, "high-watermark", l.HighWatermark())
		err = p.options.Dirs.TruncateTo(p.tp, step.Offset)
	case partition.Restart:
		p.options.Logger.Info("a follower begins its log anew where the leader's begins", "partition", p.tp, "leader", p.following.Leader,
			"leader-epoch", p.following.Epoch, "from", l.EndOffset(), "to", step.Offset)
		err = p.options.Dirs.TruncateFullyAndStartAt(p.tp, step.Offset)
	case partition.Halt:
		return p.halt(step.Err)
	default:
		return step
	}
	if err != nil {
		return p.failed(err)
	}
	p.compareAnew(l)
	if after := held(l); after == before {
		return partition.Step{Kind: partition.Later, Err: fmt.Errorf("a cut to %d left the log as it was", step.Offset)}
	}
	return partition.Step{Kind: partition.Append}
}

// failed is what to do after err: where the log can still be used, try again, since a full disk passes and bytes
// that were damaged on their way come whole the next time; otherwise halt. It needs the lock.
func (p *Partition) failed(err error) partition.Step {
	p.options.Dirs.Report(p.tp, err)
	if l := p.log.Load(); p.options.Dirs.Err(p.tp) != nil || l != nil && l.Err() != nil {
		return p.halt(err)
	}
	return partition.Step{Kind: partition.Later, Err: err}
}

// halt ends the following in this epoch. It needs the lock.
func (p *Partition) halt(err error) partition.Step {
	p.options.Logger.Error("a follower stops until the controller speaks", "partition", p.tp, "leader", p.following.Leader,
		"leader-epoch", p.following.Epoch, "error", err)
	p.standDownLocked(err)
	return partition.Step{Kind: partition.Halt, Err: err}
}

// outOfRange goes on after the leader has said where its log begins and ends.
func (p *Partition) outOfRange(epoch protocol.LeaderEpoch, start, end protocol.Offset) partition.Step {
	p.lock <- struct{}{}
	defer p.release()
	if p.following.Epoch != epoch {
		return partition.Step{Kind: partition.Later}
	}
	l := p.log.Load()
	if l == nil {
		var err error
		if l, err = p.createLog(p.settings.Load()); err != nil {
			return p.failed(err)
		}
	}
	if p.comparison.active && p.comparison.boundedBy(start, end, l) {
		return partition.Step{Kind: partition.Append}
	}
	return p.cut(p.following.OutOfRange(start, end, held(l)))
}
