package log

import (
	"math"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// epochRepair holds the leader epochs of scanned batches against each other and against the epochs file. A
// batch's epoch is outside its CRC, so a flipped bit in it goes unseen; but epochs never fall, so one batch
// that stands out between its neighbours is wrong.
//
//	epochs of batches     the file says     verdict
//	3 3 7 3 3             3 from 0          7 is too high for what follows: written over with 3
//	3 3 1 3 3             3 from 0          1 is too low for what precedes: written over with 3
//	3 3 7                 3 from 0          believed: the last batch may begin an epoch, the file is not synced
//	3 3 7 7               3 from 0          believed, for the same reason
//
// To believe a wrong epoch would put it into leader-epoch-checkpoint, and from there into every answer to
// OffsetForLeaderEpoch: a follower would truncate, or not truncate, at the wrong place.
type epochRepair struct {
	log *Log
	// powerCut asks for the batches below the recovery point too: nobody else checks what was on the disk
	// when the power failed.
	powerCut bool

	known epochs // as the file had it
	kept  epochs // as the file has it
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

// see takes the next batch in and settles the one before. A message of formats 0 and 1 ends the epochs, as it did when it
// was appended (see [Log.endEpochs]): the file need not say so yet.
func (r *epochRepair) see(s *segment, position int64, h *record.Header) {
	if h.Magic < magicBatch {
		r.settle(0, false)
		r.last, r.prev, r.list = seenBatch{}, protocol.NoLeaderEpoch, r.list.behind(h.LastOffset)
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

// keep writes down what is settled so far, before index files are written: a start after this one looks for epochs
// behind their last entries only. The last batch, which is not settled yet, is never before one of those.
func (r *epochRepair) keep() error {
	list := r.list
	if l := r.log; !slices.Equal(list, *l.epochs.Load()) {
		l.epochs.Store(&list)
		l.guarded.epochsDirty = true
	}
	if err := r.log.settleEpochs(); err != nil {
		return err
	}
	r.kept = list
	return nil
}

// rediscovers reports whether a later start finds what could not be kept: it goes through the last segment, if that has no
// indexes, and after a kill through no other. A log with an epoch in another one stays offline until there is room.
func (r *epochRepair) rediscovers(s *segment, last bool) bool {
	return last && !slices.ContainsFunc(r.list, func(e epochEntry) bool { return e.start < s.base && !slices.Contains(r.kept, e) })
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

// restoreEpochs finds the leader epochs again; those that begin behind the recovery point, where a scan will look, are
// found by it. What it looks over below may begin within a segment that is large (see [lookOverMax]).
func (l *Log) restoreEpochs(o *Options) error {
	below, limit := *l.list.Load(), protocol.Offset(math.MaxInt64)
	if o.Trust == Scan {
		limit = max(0, o.RecoveryPoint)
		below = below[:below.floor(limit-1)+1]
	}
	found, err := l.findEpochs(below, limit)
	if err == nil && len(found) > 0 {
		l.epochs.Store(&found)
		l.guarded.epochsDirty, l.guarded.changed = true, true
	}
	return err
}

// findEpochs makes the leader epochs of segments from their batches below limit, where leader-epoch-checkpoint is lost:
// epochs never fall, so only segments in which one begins are gone through.
//
//	segments   0: epoch 3 ... | 4711: epoch 3 ... | 9000: epoch 5 ... | 12000: epoch 6
//	walked     no             | yes               | yes               | yes, as it is the last
//
// A segment whose first epoch is that of the next one's first batch has no other in it: it costs one read. So does one that
// begins with a message of formats 0 and 1, as the next one does. Those have no epoch, and end all before.
func (l *Log) findEpochs(list segments, limit protocol.Offset) (epochs, error) {
	var found epochs
	for i, s := range list {
		f, err := l.open(s)
		if err != nil {
			return nil, err
		}
		first, base, err := l.firstEpoch(s, f)
		switch {
		case err != nil || base >= limit:
		case first < 0 && base >= 0:
			var follow bool
			if follow, err = l.beginsWithMessage(list[i+1:]); err == nil && !follow {
				found, err = l.walkEpochs(s, f, nil, limit)
			} else {
				found = nil
			}
		case first >= 0:
			found, _ = found.assign(first, base)
			next := protocol.NoLeaderEpoch
			if i+1 < len(list) {
				next, err = l.epochBehind(list[i+1:])
			}
			if err == nil && next != first {
				found, err = l.walkEpochs(s, f, found, limit)
			}
		}
		f.release()
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// beginsWithMessage reports whether the first of these segments begins with a message of formats 0 and 1.
func (l *Log) beginsWithMessage(list segments) (bool, error) {
	if len(list) == 0 {
		return false, nil
	}
	f, err := l.open(list[0])
	if err != nil {
		return false, err
	}
	defer f.release()
	epoch, base, err := l.firstEpoch(list[0], f)
	return epoch < 0 && base >= 0, err
}

// firstEpoch is the epoch of the first batch of a segment and where it begins; NoLeaderEpoch where it has none, and NoOffset
// where there is nothing.
func (l *Log) firstEpoch(s *segment, f *openFile) (protocol.LeaderEpoch, protocol.Offset, error) {
	buf := l.files.buffer()
	defer l.files.giveBack(buf)
	w := walk(f, 0, s.size.Load(), buf[:])
	h, err := w.next()
	if ended(err) || isBadBatch(err) { // for the scan to judge
		return protocol.NoLeaderEpoch, protocol.NoOffset, nil
	}
	return h.LeaderEpoch, h.BaseOffset, err
}

// epochBehind is the epoch of the first batch in a list of segments, or NoLeaderEpoch.
func (l *Log) epochBehind(list segments) (protocol.LeaderEpoch, error) {
	for _, s := range list {
		f, err := l.open(s)
		if err != nil {
			return 0, err
		}
		epoch, _, err := l.firstEpoch(s, f)
		f.release()
		if err != nil || epoch >= 0 {
			return epoch, err
		}
	}
	return protocol.NoLeaderEpoch, nil
}

// walkEpochs adds the epochs that begin within a segment, below limit.
func (l *Log) walkEpochs(s *segment, f *openFile, found epochs, limit protocol.Offset) (epochs, error) {
	size := s.size.Load()
	w := walk(f, 0, size, scanBytes(size))
	for {
		h, err := w.next()
		if ended(err) || isBadBatch(err) || err == nil && h.BaseOffset >= limit {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Magic < magicBatch {
			found = nil
		} else if h.LeaderEpoch > found.latest() {
			found, _ = found.assign(h.LeaderEpoch, h.BaseOffset)
		}
	}
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
