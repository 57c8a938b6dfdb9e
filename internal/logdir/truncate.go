package logdir

import (
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// TruncateTo cuts a log so that it ends at offset, as a follower does to agree with its leader. Logs of a
// Set are cut by it, not by themselves: a recovery point above the new end must go from the checkpoint
// before anything is appended there, lest a start after a power cut takes it for synced; and a copy under
// way begins anew. The caller holds appends off.
func (s *Set) TruncateTo(tp protocol.TopicPartition, offset protocol.Offset) error {
	return s.truncate(tp, func(l *log.Log) error { return l.TruncateTo(offset) })
}

// TruncateFullyAndStartAt drops all records of a log, so that it begins at offset; see [Set.TruncateTo].
func (s *Set) TruncateFullyAndStartAt(tp protocol.TopicPartition, offset protocol.Offset) error {
	return s.truncate(tp, func(l *log.Log) error { return l.TruncateFullyAndStartAt(offset) })
}

// truncate does either.
//
//	1 cut            in the log, durable
//	2 checkpoint     the recovery point falls, durable
//	3 return         and only then appends come again
//
// A power cut between 1 and 2 leaves a recovery point above the end, which opening bounds. Between 2 and the next flush
// it is what it should be. Without 2, records appended later would lie below an old recovery point, and not be looked
// at after a power cut that tore them.
func (s *Set) truncate(tp protocol.TopicPartition, cut func(*log.Log) error) error {
	s.changing.lock()
	defer s.changing.unlock()
	if err := s.open(); err != nil {
		return err
	}
	s.mu.RLock()
	e, f := s.mu.logs[tp], s.mu.futures[tp]
	s.mu.RUnlock()
	switch {
	case e == nil:
		return protocol.Errorf(protocol.UnknownTopicOrPartition, "partition %s is not on this broker", tp)
	case e.log == nil:
		return e.err
	}
	synced := e.log.RecoveryPoint()
	if err := cut(e.log); err != nil {
		return s.report(e.dir, err)
	}
	if e.log.RecoveryPoint() < synced {
		if err := s.report(e.dir, s.checkpointDirectory(e.dir, recoveryPoints)); err != nil {
			return offline(tp, err)
		}
	}
	if f == nil {
		return nil
	}
	// What the copy has above the cut may differ from what comes there now.
	s.cancelMove(tp)
	return s.startMove(e, f.dir)
}
