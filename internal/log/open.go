package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Open opens the log in a directory, making what is missing, and recovers it as far as Trust demands: a torn
// tail is cut, indexes and producer state are rebuilt. A *DamageError says that records are damaged that no
// crash explains; then nothing was cut.
func Open(o Options) (*Log, error) {
	o = o.withDefaults()
	l := newLog(&o)
	err := o.FS.MkdirAll(o.Dir, 0o755)
	if err == nil {
		err = l.load(&o)
	}
	if err != nil {
		l.CloseUnclean()
		return nil, fmt.Errorf("open log %s in %s: %w", o.Partition, o.Dir, err)
	}
	return l, nil
}

// newLog is an empty log in memory.
func newLog(o *Options) *Log {
	l := &Log{
		fs: o.FS, files: o.Files, partition: o.Partition, now: o.Now, logger: o.Logger,
		expiration: o.ProducerExpiration,
		loading:    newGate(), flushing: newGate(), appending: newGate(), compacting: newGate(),
	}
	dir := o.Dir // not &o.Dir, which would keep all of o
	l.dir.Store(&dir)
	l.cleaned.Store(int64(o.CleanedTo))
	l.SetConfig(o.Config)
	l.list.Store(&segments{})
	l.epochs.Store(&epochs{})
	l.guarded.producers.txns.unstable.Store(int64(protocol.NoOffset))
	l.guarded.flushedAt = o.Now()
	return l
}

// load finds out what the directory holds: it finishes what was left in the middle, recovers the segments as
// far as the trust demands, and then makes producer state and the offsets from them.
//
//	topic id      refuse another topic's directory before anything in it is touched
//	tidy          finish or undo what was being renamed; list what there is
//	epochs        read, or found again from the batches
//	recover       cut the torn end, rebuild indexes, find the log end offset
//	settle        start, recovery point, epochs, producers and watermark between the checkpoints and the files
//
// The checkpoints of the directory are written from time to time and the files with every append, so neither is
// right alone: each offset is taken from its checkpoint and then held within what the files have.
func (l *Log) load(o *Options) error {
	if err := l.checkTopicID(o.TopicID); err != nil {
		return err
	}
	found, err := l.tidy()
	if err != nil {
		return err
	}
	epochsLost := l.readEpochs()
	l.guarded.snapshots = found.snapshots
	if len(found.segments) == 0 {
		return l.createAt(max(0, o.StartOffset))
	}
	l.install(found.segments)
	if epochsLost {
		if err := l.restoreEpochs(o); err != nil {
			return err
		}
	}
	r, err := l.recover(o)
	if err != nil {
		return err
	}
	l.end.Store(int64(r.end))
	if r.end < o.StartOffset {
		// The files below the log start offset are gone, and those above it too.
		l.logger.Warn("log ends below its start offset, starting anew", "partition", l.partition, "end", r.end, "start", o.StartOffset)
		l.guarded.changed = true
		return l.restartAt(o.StartOffset)
	}
	return l.settle(o, &r)
}

// settle sets the offsets of a log whose segments are recovered, between those of the checkpoints and those
// of the files, and makes the producer state.
//
// The watermark of the checkpoint may be old. It is never assumed to be the end: what is between them may not be
// on the other replicas, and the leader that is elected next decides about it.
func (l *Log) settle(o *Options, r *recovery) error {
	start := max(o.StartOffset, (*l.list.Load())[0].base)
	l.start.Store(int64(start))
	l.recovery.Store(int64(min(max(o.RecoveryPoint, 0), r.end)))
	if o.Trust == Clean && !r.repaired {
		l.recovery.Store(int64(r.end))
		l.guarded.wholeTo = r.end
	}
	l.trimEpochs(start, r.end)
	r.settled = r.end
	if o.HighWatermark >= 0 {
		r.settled = min(max(o.HighWatermark, start), r.end)
	}
	if err := l.replay(r); err != nil {
		return err
	}
	l.watermark.Store(int64(min(max(o.HighWatermark, start), r.end)))
	l.guarded.producers.txns.release(l.HighWatermark())
	return nil
}

// createAt makes the first segment of an empty log.
func (l *Log) createAt(start protocol.Offset) error {
	s, err := l.createSegment(start)
	if err != nil {
		return err
	}
	l.guarded.changed, l.guarded.namesDirty = true, true
	l.install(segments{s})
	if err := l.dropSnapshotsAbove(-1); err != nil { // of segments that somebody has removed
		return err
	}
	for _, at := range [...]interface{ Store(int64) }{&l.start, &l.end, &l.watermark, &l.recovery} {
		at.Store(int64(start))
	}
	l.guarded.producers.reset(start, nil)
	l.trimEpochs(start, start)
	return nil
}

// trimEpochs drops what the epochs say about records that are not there, since their file is not synced with
// truncations and deletions.
func (l *Log) trimEpochs(start, end protocol.Offset) {
	list, cut := l.epochs.Load().truncateEnd(end)
	list, moved := list.truncateStart(start)
	if cut || moved {
		l.epochs.Store(&list)
		l.guarded.epochsDirty, l.guarded.changed = true, true
	}
}

// checkTopicID reads partition.metadata and compares it with the id that the cluster knows, which is the zero id
// where nobody has said it yet.
func (l *Log) checkTopicID(id protocol.TopicID) error {
	there, err := ReadTopicID(l.fs, l.Dir())
	if err != nil {
		return err
	}
	if !there.IsZero() {
		l.topicID.Store(&there)
	}
	return l.adoptTopicID(id)
}

// readEpochs reads leader-epoch-checkpoint. For one that is missing or damaged it reports true: recovery makes
// it from the batches.
func (l *Log) readEpochs() (lost bool) {
	path := filepath.Join(l.Dir(), epochsName)
	text, err := readSmall(l.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	list, parsed := parseEpochs(text)
	if err == nil && len(text) == 0 { // as Kafka makes it with the log, before there is anything to say
		l.logger.Debug("making leader epochs from the batches", "file", path)
		return true
	}
	if err = errors.Join(err, parsed); err != nil {
		l.logger.Warn("rebuilding leader epochs", "file", path, "error", err)
		return true
	}
	l.epochs.Store(&list)
	return false
}
