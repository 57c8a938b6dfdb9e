package log

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// epochRepair holds the leader epochs of scanned batches against each other and against the epochs file. A
// batch's epoch is outside its CRC, so a flipped bit in it goes unseen; but epochs never fall, so one batch
// that stands out between its neighbours is wrong.
type epochRepair struct {
	log *Log
	// lookOver asks for the batches below the recovery point too: nobody else checks what was on disk when
	// the power failed.
	lookOver bool

	known epochs // as the file had it
	list  epochs // with what the batches add
	prev  protocol.LeaderEpoch
	last  seenBatch // its epoch is not settled before the next batch is seen
	fixes []epochFix
}

// seenBatch is a batch that was scanned.
type seenBatch struct {
	segment  *segment
	position int64
	base     protocol.Offset
	epoch    protocol.LeaderEpoch
}

// epochFix is an epoch to be written over a batch's wrong one.
type epochFix struct {
	seenBatch
	right protocol.LeaderEpoch
}

// see takes the next batch in and settles the one before.
func (r *epochRepair) see(s *segment, position int64, h *record.Header) {
	if h.Magic < magicBatch {
		return
	}
	r.settle(h.LeaderEpoch, true)
	r.last = seenBatch{segment: s, position: position, base: h.BaseOffset, epoch: h.LeaderEpoch}
}

// settle decides about the last batch, now that the epoch of the one behind it is known.
func (r *epochRepair) settle(next protocol.LeaderEpoch, hasNext bool) {
	b := &r.last
	if b.segment == nil {
		r.prev = protocol.NoLeaderEpoch
		return
	}
	told := r.known.covering(b.base)
	low := b.epoch < r.prev && (!hasNext || next >= r.prev || told >= r.prev)
	high := hasNext && next < b.epoch && next >= r.prev
	if b.epoch != told && (low || high) {
		right := told
		if right < r.prev || hasNext && right > next {
			right = r.prev // the file does not know
		}
		if right < 0 {
			right = next
		}
		r.fixes = append(r.fixes, epochFix{*b, right})
		b.epoch = right
	}
	r.prev = b.epoch
	if b.epoch >= 0 && b.epoch != r.list.covering(b.base) {
		r.list, _ = r.list.assign(b.epoch, b.base)
	}
}

// apply settles the last batch, writes the right epochs over the wrong ones, and keeps what was learned.
func (r *epochRepair) apply() error {
	r.settle(0, false)
	l := r.log
	for _, fix := range r.fixes {
		l.logger.Warn("a batch has a wrong leader epoch, writing the right one", "partition", l.partition,
			"file", l.path(fix.segment.base, logSuffix), "offset", fix.base, "found", fix.epoch, "right", fix.right)
		if err := l.writeBatchEpoch(fix); err != nil {
			return err
		}
	}
	if !slices.Equal(r.list, *l.epochs.Load()) {
		l.epochs.Store(&r.list)
		l.guarded.epochsDirty = true
	}
	return nil
}

// writeBatchEpoch puts the right epoch into a batch in its file.
func (l *Log) writeBatchEpoch(fix epochFix) error {
	f, err := l.open(fix.segment)
	if err != nil {
		return err
	}
	defer f.release()
	header := make(record.Batch, record.HeaderSize)
	if err := readFull(f, header, fix.position); err != nil {
		return err
	}
	header.SetLeaderEpoch(fix.right)
	_, err = f.WriteAt(header, fix.position)
	return err
}
