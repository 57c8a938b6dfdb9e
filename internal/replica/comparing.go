package replica

import (
	"bytes"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// A follower whose log ends with messages of formats 0 and 1, which a Kafka of years ago has written, has no leader epoch
// to name: nobody can tell by epochs whether its last records are the leader's. It fetches again from its high watermark,
// keeps what is the same byte by byte, and cuts where it differs:
//
//	follower   | 40 | 41 | 42 | 43 | 44 |        high watermark 41
//	leader     | 40 | 41 | 42 | 4x | 44 | 45 |   41 and 42 are the same, 43 is not: cut to 43
//	                ▲
//	                from here on it compares     and tells the leader no more than what has been compared
//
// Below its watermark everything is committed, and therefore the same. Kafka cuts to the watermark at once, and for a
// moment lacks what it has acknowledged: if the leader dies in it, that is lost.
//
// comparison is guarded by the partition's lock.
type comparison struct {
	// active says that there is something to be compared, and upTo up to where that has been done.
	active bool
	upTo   protocol.Offset
	// bounded says that the leader has said where its log begins and ends: what is behind its end has been cut.
	bounded bool
}

// compareAnew begins to compare, where the log ends with records that have no epoch. It needs the lock.
func (p *Partition) compareAnew(l *log.Log) {
	p.comparison = comparison{}
	if l == nil || l.HighWatermark() >= l.EndOffset() || l.EpochAt(l.EndOffset()-1) != protocol.NoLeaderEpoch {
		return
	}
	p.comparison = comparison{active: true, upTo: l.HighWatermark()}
}

// offset is from where the follower fetches next.
func (c *comparison) offset(l *log.Log) protocol.Offset {
	if c.active {
		return c.upTo
	}
	return l.EndOffset()
}

// compare holds what the leader sent against what is here. It needs the lock.
func (p *Partition) compare(l *log.Log, got *fetched) partition.Step {
	c := &p.comparison
	if !c.bounded {
		return partition.Step{Kind: partition.AskBounds}
	}
	differs, err := c.hold(l, got.batches)
	switch {
	case err != nil:
		return p.failed(err)
	case differs:
		return p.cut(p.following.Differs(c.upTo, held(l)))
	case c.upTo >= l.EndOffset():
		c.active = false
	}
	return partition.Step{Kind: partition.Append}
}

// hold compares batches with the log, and moves upTo behind those that are the same. What the answer has no room for is for
// the next one.
func (c *comparison) hold(l *log.Log, theirs []byte) (differs bool, err error) {
	slice, err := l.Read(c.upTo, max(len(theirs), 1), l.EndOffset(), true)
	if err != nil {
		return false, err
	}
	if slice.Length == 0 { // nothing is left, but offsets that compaction has emptied
		c.upTo = l.EndOffset()
		return false, nil
	}
	ours := make([]byte, slice.Length)
	err = slice.ReadInto(ours)
	slice.Release()
	if err != nil {
		return false, err
	}
	for e, err := range record.Entries(ours) {
		if err != nil {
			return false, err
		}
		their, err := record.ParseHeader(theirs)
		if err != nil || their.Size > len(theirs) { // cut short, or the end
			return false, nil
		}
		if !bytes.Equal(e.Bytes, theirs[:their.Size]) {
			return true, nil
		}
		c.upTo, theirs = e.NextOffset(), theirs[their.Size:]
	}
	return false, nil
}

// boundedBy goes on after the leader has said where its log begins and ends; false where the log reaches beyond that. What
// the leader's log does not have any more was committed.
func (c *comparison) boundedBy(start, end protocol.Offset, l *log.Log) bool {
	if l.EndOffset() > end || l.EndOffset() < start {
		return false
	}
	c.bounded, c.upTo = true, max(c.upTo, start)
	return true
}
