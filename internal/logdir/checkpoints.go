package logdir

import (
	"errors"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Checkpoints are written from what the logs say at that moment. None may promise more than is on the disk:
//
//	recovery points    rise only in Log.Flush, after the sync; one that falls, by truncation, is written
//	                   before the log takes another append
//	high watermarks    may be higher than the log end after a power cut; opening the log bounds them
//	log starts         likewise
//	cleaned offsets    rise after the compacted segments have replaced the old ones
//
// so that a checkpoint of any age is safe, and the rest is how much work an old one makes. A file is written
// only when a value in it has changed: an idle broker writes nothing.

// kind is one of the four checkpoints.
type kind int

const (
	recoveryPoints kind = iota
	logStarts
	highWatermarks
	cleanedTo
	kinds // how many there are
)

// kindFiles are the names of their files.
var kindFiles = [kinds]string{recoveryPointFile, logStartFile, highWatermarkFile, cleanerFile}

// value is what a checkpoint says of a log; NoOffset where it says nothing, as of the start of a log that
// begins with its first segment, or of one that was never compacted.
func (k kind) value(l *log.Log) protocol.Offset {
	switch k {
	case recoveryPoints:
		return l.RecoveryPoint()
	case logStarts:
		start := l.StartOffset()
		if segments := l.Segments(); len(segments) > 0 && segments[0].BaseOffset >= start {
			return protocol.NoOffset
		}
		return start
	case highWatermarks:
		return l.HighWatermark()
	default:
		return max(l.CleanedTo(), protocol.NoOffset)
	}
}

// carried is what the checkpoints of a directory said at Load of partitions that were not opened: it is
// written again, so that it is there when they are. Entries go when a partition is opened or removed.
type carried [kinds]Offsets

// forget drops a partition's lines.
func (c *carried) forget(tp protocol.TopicPartition) {
	for _, offsets := range c {
		delete(offsets, tp)
	}
}

// checkpoints is what a directory's files hold; guarded by the directory's gate.
type checkpoints struct {
	entries []*entry // the logs of the directory, as of the membership number
	seen    int64
	current [kinds]int64 // the membership number at the last write of each file, plus one
}

// written holds what the files say of one log; guarded by the gate of its directory.
type written [kinds]protocol.Offset

// Checkpoint writes what has changed in the four checkpoints of all directories. A directory whose disk fails
// goes offline; the error holds all that were met.
func (s *Set) Checkpoint() error {
	var errs []error
	for k := range kinds {
		errs = append(errs, s.checkpoint(k))
	}
	return errors.Join(errs...)
}

// checkpoint writes one kind in all directories.
func (s *Set) checkpoint(k kind) error {
	var errs []error
	for _, d := range s.dirs {
		if d.logs && d.loaded.Load() && d.err() == nil {
			errs = append(errs, s.report(d, s.checkpointDirectory(d, k)))
		}
	}
	return errors.Join(errs...)
}

// checkpointDirectory writes one kind in one directory, if anything has changed since the last time.
//
//	numbers   membership counts changes of which logs are here; seen is the count that entries was made at
//	file      current[k] is that count plus one when file k was last written; 0: never, so it is written
//
// Log offsets are read one by one without a lock. Each is true at its moment, which is enough: no line of a
// checkpoint speaks about another.
func (s *Set) checkpointDirectory(d *directory, k kind) error {
	d.writing.lock()
	defer d.writing.unlock()
	// The number is read before the entries: a change in between is seen again the next time.
	if now := d.membership.Load(); d.seen != now || d.entries == nil {
		d.entries, d.seen = s.entries(d), now
	}
	changed := d.current[k] != d.seen+1
	values := make([]protocol.Offset, len(d.entries))
	for i, e := range d.entries {
		values[i] = protocol.NoOffset
		if e.log != nil {
			values[i] = k.value(e.log)
		}
		changed = changed || values[i] != e.wrote[k]
	}
	if !changed {
		return nil
	}
	offsets := make(Offsets, len(values)+len(d.carried[k]))
	for tp, offset := range d.carried[k] {
		offsets[tp] = offset // of partitions that are offline, or that the store does not know
	}
	for i, e := range d.entries {
		if values[i] != protocol.NoOffset {
			offsets[e.partition] = values[i]
		}
	}
	if err := writeFile(s.files, d.file(kindFiles[k]), offsets.Format()); err != nil {
		return err // what was written before still counts, so that the next attempt writes again
	}
	for i, e := range d.entries {
		e.wrote[k] = values[i]
	}
	d.current[k] = d.seen + 1
	return nil
}

// readCheckpoints reads the four checkpoints of a directory; damaged ones are reported and count as absent.
func (s *Set) readCheckpoints(d *directory) error {
	for k, name := range kindFiles {
		offsets, damage, err := readCheckpoint(s.files, d.file(name))
		if damage != nil {
			s.logger.Warn("checkpoint is damaged, going on without it", "error", damage)
		}
		if err != nil {
			return err
		}
		d.carried[k] = offsets
	}
	return nil
}

// forget drops what is carried for a partition that was opened in d, or removed from it.
func (d *directory) forget(tp protocol.TopicPartition) {
	d.writing.lock()
	defer d.writing.unlock()
	d.carried.forget(tp)
}

// carry notes what the checkpoints shall say of a partition until it is open.
func (d *directory) carry(tp protocol.TopicPartition, offsets [kinds]protocol.Offset) {
	d.writing.lock()
	defer d.writing.unlock()
	for k, offset := range offsets {
		if offset != protocol.NoOffset {
			d.carried[k][tp] = offset
		}
	}
}

// recall is what the checkpoints of d said of a partition that is not open; NoOffset where nothing.
func (d *directory) recall(tp protocol.TopicPartition) (offsets [kinds]protocol.Offset) {
	d.writing.lock()
	defer d.writing.unlock()
	for k := range offsets {
		offsets[k] = protocol.NoOffset
		if offset, ok := d.carried[k][tp]; ok {
			offsets[k] = offset
		}
	}
	return offsets
}
