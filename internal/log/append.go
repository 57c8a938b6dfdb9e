package log

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// Appended is what became of an append.
type Appended struct {
	// First and Last are the offsets of the batch, or of the earlier batch that this one repeats.
	First, Last protocol.Offset
	// AppendTime is the time that the records have now, in ms, with LogAppendTime; else -1.
	AppendTime int64
	// StartOffset is the log start offset, which producers are told.
	StartOffset protocol.Offset
	// Duplicate is true where the log already had the batch and nothing was written. The earlier batch may
	// still be on its way to the replicas: wait for it as for a fresh one.
	Duplicate bool
	// SyncDue is true where flush.messages asks for [Log.Sync] before the batch is acknowledged.
	SyncDue bool
}

// AppendLeader appends one validated batch at the log end, in the name of the leader of epoch: it patches
// base offset and leader epoch into the batch in place. It fails with OUT_OF_ORDER_SEQUENCE_NUMBER,
// INVALID_PRODUCER_EPOCH or INVALID_TXN_STATE where producer state refuses the batch, RECORD_LIST_TOO_LARGE
// where no segment could hold it, and KAFKA_STORAGE_ERROR where the disk fails or is full. It syncs nothing: that is left
// to the caller, who may hold locks that nobody should wait for during a sync.
//
// Nothing changes before all that can refuse the batch has been asked.
//
//	number    base offset and epoch go into the caller's bytes, also where the batch is refused next
//	admit     duplicate, out of order, fenced, too large            nothing has changed so far
//	makeRoom  a roll, if the active segment is full or old
//	epoch     where it begins, in memory; for its file see beginEpoch
//	write     the bytes, behind the published size
//	index     offset and time index, recent                         readers may see entries beyond the size
//	remember  producer state, transaction index
//	publish   log end offset, then the size                         readers see the batch from here on
//
// A kill before publish may leave a whole batch that nobody was told of. Recovery takes it in, as Kafka does: the
// log then has more than was acknowledged, never less, and an idempotent producer's retry is a duplicate.
func (l *Log) AppendLeader(v record.Validated, epoch protocol.LeaderEpoch) (Appended, error) {
	if err := l.lock(); err != nil {
		return Appended{}, err
	}
	defer l.unlock()
	first := l.EndOffset()
	v.Batch.SetBaseOffset(first)
	v.Batch.SetLeaderEpoch(epoch)
	facts, err := factsOfBatch(v.Batch)
	if err != nil {
		return Appended{}, err
	}
	m, duplicate, err := l.admit(&facts, len(v.Batch), epoch)
	if err != nil {
		return Appended{}, err
	}
	if duplicate {
		return l.duplicate(m), nil
	}
	if err := l.appendOne(v.Batch, &facts, epoch); err != nil {
		return Appended{}, err
	}
	return Appended{
		First: first, Last: facts.last, AppendTime: v.AppendTime, StartOffset: l.StartOffset(), SyncDue: l.mustFlush(),
	}, nil
}

// admit says whether the leader may append a batch, or has done so before.
func (l *Log) admit(f *batchFacts, size int, epoch protocol.LeaderEpoch) (m batchMeta, duplicate bool, err error) {
	if f.producer >= 0 {
		m, duplicate, err = l.guarded.producers.check(f)
		if protocol.CodeOf(err) == protocol.OutOfOrderSequenceNumber {
			m, duplicate, err = l.checkAgain(f, err)
		}
		if err != nil || duplicate {
			return m, duplicate, err
		}
	}
	if latest := l.epochs.Load().latest(); epoch < latest {
		return m, false, protocol.Errorf(protocol.NotLeaderOrFollower,
			"append to %s in leader epoch %d, the log is in %d", l.partition, epoch, latest)
	}
	if most := l.config.Load().SegmentBytes; size > int(most) {
		return m, false, protocol.Errorf(protocol.RecordListTooLarge,
			"batch of %d bytes for %s is larger than segment.bytes, %d", size, l.partition, most)
	}
	return m, false, nil
}

// appendOne writes the leader's batch and takes it into indexes and producer state, before readers see it.
func (l *Log) appendOne(b record.Batch, f *batchFacts, epoch protocol.LeaderEpoch) error {
	if err := l.makeRoom(int64(len(b)), f.first, f.last, f.timestamp); err != nil {
		return err
	}
	l.beginEpoch(epoch, f.first)
	if err := l.write(b, f.last); err != nil {
		return err
	}
	l.index(f, int64(len(b)))
	if err := l.remember(f); err != nil {
		return err
	}
	l.publish(int64(len(b)), f.last+1)
	l.guarded.unflushed += int64(f.last-f.first) + 1
	return nil
}

// duplicate is the answer for a batch that is in the log already.
func (l *Log) duplicate(m batchMeta) Appended {
	return Appended{
		First: m.firstOffset(), Last: m.lastOffset, AppendTime: m.timestamp,
		StartOffset: l.StartOffset(), Duplicate: true, SyncDue: l.mustFlush(),
	}
}

// AppendFollower appends batches as the leader has them, offsets and epochs kept, and messages of formats 0 and 1, which
// have no epoch. Each must be whole, with a right CRC (CORRUPT_MESSAGE), at or behind the log end, and in an epoch that is
// not below the one before it; nothing is written where one is not.
func (l *Log) AppendFollower(batches []byte) (Appended, error) {
	done, flush, err := l.appendFollower(batches)
	if err != nil || !flush {
		return done, err
	}
	return done, l.Sync(done.Last + 1)
}

// appendFollower is AppendFollower without the flush, under the append lock.
//
// Sets are published batch by batch, and an error between two of them leaves the earlier ones in the log: done
// says how far it came. The leader's epochs and offsets rise, so the fetcher goes on from the log end.
func (l *Log) appendFollower(batches []byte) (_ Appended, flush bool, err error) {
	if err := l.lock(); err != nil {
		return Appended{}, false, err
	}
	defer l.unlock()
	if err := l.checkReplicated(batches); err != nil {
		return Appended{}, false, err
	}
	done := Appended{First: protocol.NoOffset, Last: protocol.NoOffset, AppendTime: record.NoTimestamp, StartOffset: l.StartOffset()}
	for len(batches) > 0 {
		set := l.nextSet(batches)
		if err := l.appendSet(batches[:set.size], set); err != nil {
			l.forgetEpochs()
			return done, false, err
		}
		if done.First < 0 {
			done.First = set.first
		}
		done.Last = set.last
		batches = batches[set.size:]
	}
	return done, l.mustFlush(), nil
}

// appendSet writes replicated batches that fit into one segment, in one write.
//
// All epochs are noted before the write and all facts afterwards, so that readers find no batch whose epoch is not known.
func (l *Log) appendSet(batches []byte, set batchSet) error {
	if err := l.makeRoom(int64(set.size), set.first, set.last, set.maxTime); err != nil {
		return err
	}
	for e := range record.Entries(batches) {
		if e.Magic < magicBatch {
			l.endEpochs()
		}
		l.beginEpoch(e.LeaderEpoch, e.BaseOffset)
	}
	if err := l.write(batches, set.last); err != nil {
		return err
	}
	for e := range record.Entries(batches) {
		facts, err := factsOfEntry(&e)
		if err != nil {
			return err
		}
		l.index(&facts, int64(e.Size))
		if err := l.remember(&facts); err != nil {
			return err
		}
		l.publish(int64(e.Size), facts.last+1)
	}
	l.guarded.unflushed += int64(set.last-set.first) + 1
	return nil
}

// batchSet is what is known of replicated batches before they are written together.
type batchSet struct {
	size        int
	first, last protocol.Offset
	maxTime     int64
}

// nextSet takes as many batches as a segment may hold, and at least one. A wrapper of formats 0 and 1 does not say where it
// begins: at the log end, or behind it where the leader has compacted.
func (l *Log) nextSet(batches []byte) batchSet {
	set := batchSet{maxTime: record.NoTimestamp}
	most := int(l.config.Load().SegmentBytes)
	for e := range record.Entries(batches) {
		if set.size == 0 {
			if set.first = e.BaseOffset; e.Count < 0 {
				set.first = l.EndOffset()
			}
		} else if set.size+e.Size > most || int64(e.LastOffset-set.first) > maxRelativeOffset {
			break
		}
		set.size += e.Size
		set.last, set.maxTime = e.LastOffset, max(set.maxTime, e.MaxTimestamp)
	}
	return set
}

// checkReplicated checks replicated batches before anything is written.
//
//	bytes that are no whole batch         the answer was cut or damaged
//	a wrong CRC                           CORRUPT_MESSAGE: a damaged record must not spread
//	an offset below the log end           the log has moved since it was asked for, or parts from the leader's
//	an epoch that falls                   the batches contradict each other, or leader-epoch-checkpoint; where messages of
//	                                      formats 0 and 1 follow on batches, their topic once went back to those
func (l *Log) checkReplicated(batches []byte) error {
	next, epoch := l.EndOffset(), l.epochs.Load().latest()
	for e, err := range record.Entries(batches) {
		switch {
		case err != nil:
			return fmt.Errorf("replicate %s: %w", l.partition, err)
		case !e.ValidCRC():
			return protocol.Errorf(protocol.CorruptMessage, "replicate %s: batch at offset %d has a wrong CRC", l.partition, e.BaseOffset)
		// A gap is no fault: the leader has compacted away what was there.
		case e.BaseOffset < next:
			return fmt.Errorf("replicate %s: batch at offset %d, expected %d or more", l.partition, e.BaseOffset, next)
		case e.LeaderEpoch < epoch && e.Magic == magicBatch:
			return fmt.Errorf("replicate %s: batch at offset %d in leader epoch %d, after epoch %d", l.partition, e.BaseOffset, e.LeaderEpoch, epoch)
		}
		if _, err := factsOfEntry(&e); err != nil {
			return fmt.Errorf("replicate %s: %w", l.partition, err)
		}
		next, epoch = e.NextOffset(), e.LeaderEpoch
	}
	return nil
}

// factsOfEntry takes what producer state needs from a whole batch or, which is nothing, from a message of formats 0 and 1.
func factsOfEntry(e *record.Entry) (batchFacts, error) {
	if e.Magic < magicBatch {
		return factsOf(&e.Header), nil
	}
	return factsOfBatch(e.Bytes)
}

// factsOfBatch takes what producer state needs from a whole batch, the marker of a control batch included.
func factsOfBatch(b record.Batch) (batchFacts, error) {
	f := batchFacts{
		producer: b.ProducerID(), epoch: b.ProducerEpoch(),
		firstSequence: b.BaseSequence(), lastSequence: b.LastSequence(),
		first: b.BaseOffset(), last: b.LastOffset(), timestamp: b.MaxTimestamp(),
		transactional: b.Transactional(), control: b.Control(),
	}
	var err error
	if f.control && f.producer >= 0 {
		f.marker, f.hasMarker, err = readMarker(b)
	}
	return f, err
}

// write puts whole batches behind the published ones. What a failed write left there is cut first, though readers never
// see it: whole batches of it, behind those that are written now, would look to recovery like the log's own.
func (l *Log) write(b []byte, last protocol.Offset) error {
	s := l.active()
	invariant.That(s.relative(last) <= maxRelativeOffset, "append that does not fit into its segment's offsets")
	f, err := l.open(s)
	if err != nil {
		return l.ioError("append to", err)
	}
	defer f.release()
	l.guarded.changed = true
	if l.guarded.tail.garbage {
		if err := l.giveBack(f, s); err != nil {
			return l.ioError("append to", err)
		}
	}
	l.reserve(f, s, int64(len(b)))
	if _, err := f.WriteAt(b, s.size.Load()); err != nil {
		l.guarded.tail.garbage = true
		return l.ioError("append to", err)
	}
	return nil
}

// index adds what lookups need of a batch that stands behind the published ones.
//
// It comes before publish, so a reader may find an entry, or a remembered end, at a position that is not below the
// size that it has loaded. Lookups therefore take the smaller of the two. The other order would have a reader see
// bytes without their entry, which is harmless too, but a walk from farther back.
func (l *Log) index(f *batchFacts, size int64) {
	s, t := l.active(), &l.guarded.tail
	position := s.size.Load()
	if position == 0 {
		s.firstTime = f.timestamp
	}
	if f.timestamp > s.maxTime.Load() {
		s.maxTimeOffset = f.last
		s.maxTime.Store(f.timestamp)
	}
	// The entry names the last offset of the batch, as Kafka's does, so that it can be written from a header alone;
	// the first offset goes along in memory only.
	if t.sinceIndex > int64(l.config.Load().IndexIntervalBytes) {
		s.index.Store(s.index.Load().with(newIndexEntry(s.relative(f.last), position), s.relative(f.first)))
		t.addTime(s)
		t.sinceIndex = 0
	}
	t.sinceIndex += size
	t.sinceWrite += size
	s.recent.Load().add(s.relative(f.last+1), position+size)
}

// addTime adds the largest timestamp so far to the time index, if it is larger than the last entry.
func (t *tail) addTime(s *segment) {
	if at := s.maxTime.Load(); at > t.lastTime.timestamp {
		t.lastTime = timeEntry{timestamp: at, relative: int32(s.relative(s.maxTimeOffset))}
		t.times = append(t.times, t.lastTime)
	}
}

// remember takes a written batch into producer state, and an aborted transaction into the transaction
// index. If that fails the batch is in the log and the index is not: the log breaks, and recovery rebuilds.
func (l *Log) remember(f *batchFacts) error {
	p := &l.guarded.producers
	p.end = f.last + 1
	done, wasAborted := p.apply(f)
	if !wasAborted {
		return nil
	}
	if err := l.appendAborted(l.active(), done); err != nil {
		l.fail(fmt.Errorf("transaction index: %w", err))
		return l.Err()
	}
	return nil
}

// publish shows a written batch to readers: first the log end offset, then the bytes. Readers look in the
// opposite order; the other way round, one that comes between the two would take the bytes for being below
// the end that it sees, and give out a batch beyond its limit.
func (l *Log) publish(size int64, next protocol.Offset) {
	s := l.active()
	l.end.Store(int64(next))
	s.size.Store(s.size.Load() + size)
	if l.guarded.tail.sinceWrite >= indexWriteBytes && s.size.Load() >= smallSegment {
		l.writeIndexes(s)
	}
}

// mustFlush reports whether flush.messages asks for a sync now.
func (l *Log) mustFlush() bool { return l.guarded.unflushed >= l.config.Load().FlushMessages }

// beginEpoch notes that epoch begins at start, unless it is the latest already. The epochs file is not written for it:
// after a failover thousands of partitions have their first record at once, and the batches say the same.
//
//	written before   index entries behind the epoch's start, a newer segment, a sync, a clean stop
//	recovery reads   all batches behind the last index entry, or the recovery point: what the file lacks is there
func (l *Log) beginEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) {
	if epoch >= 0 && epoch != l.epochs.Load().latest() {
		l.assignEpoch(epoch, start)
	}
}

// endEpochs forgets all epochs before a message of formats 0 and 1, as Kafka does: it has none, and what is noted would say
// that it is of the latest one.
func (l *Log) endEpochs() {
	if len(*l.epochs.Load()) > 0 {
		l.epochs.Store(&epochs{})
		l.guarded.epochsDirty = true
	}
}

// forgetEpochs takes back what [Log.beginEpoch] has noted for records that a follower got and then could not write. The
// next ones may be of an earlier epoch, and would be refused for ever. A leader's epoch stays: it begins at the log end,
// with or without records (see [Log.AssignEpoch]).
func (l *Log) forgetEpochs() {
	if list, changed := l.epochs.Load().truncateEnd(l.EndOffset()); changed {
		l.epochs.Store(&list)
		l.guarded.epochsDirty = true
	}
}

// settleEpochs brings the epochs file up to date, if it is not.
func (l *Log) settleEpochs() error {
	if !l.guarded.epochsDirty {
		return nil
	}
	return l.writeEpochs()
}

// assignEpoch notes an epoch in memory; see beginEpoch for when its file is written.
func (l *Log) assignEpoch(epoch protocol.LeaderEpoch, start protocol.Offset) {
	if list, changed := l.epochs.Load().assign(epoch, start); changed {
		l.epochs.Store(&list)
		l.guarded.epochsDirty = true
	}
}
