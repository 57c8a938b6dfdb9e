package log

import (
	"context"
	"errors"
	"io/fs"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Verify checks the CRCs of the batches above the recovery point that opening trusted (SameBoot checks only
// the tail), in the background: it takes no lock, and stops early with ctx. A *DamageError also breaks the
// log, so that nothing is appended behind the damage; whoever serves it must take it offline.
//
// What it reads may be truncated, deleted or compacted under it. Then the segment's file is pinned, or its size has
// fallen, and neither is taken for damage. It need not be finished before the next stop: until it is, logdir
// leaves the recovery point where it was, and the next start finds the same to check.
func (l *Log) Verify(ctx context.Context) error {
	from, to := l.unverified()
	for from < to {
		list := *l.list.Load()
		i := list.floor(from)
		err := l.verifySegment(ctx, list[i], from, to)
		if _, ok := errors.AsType[*DamageError](err); ok {
			l.fail(err)
		}
		// A segment that is not there has been deleted or compacted meanwhile.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		from = to
		if i+1 < len(list) {
			from = list[i+1].base
		}
		l.verified(from)
	}
	return nil
}

// unverified is the range that is still to be checked.
func (l *Log) unverified() (from, to protocol.Offset) {
	l.appending.lock()
	defer l.unlock()
	return max(l.guarded.verifyFrom, l.StartOffset()), min(l.guarded.verifyTo, l.EndOffset())
}

// verified notes how far the check has come.
func (l *Log) verified(upTo protocol.Offset) {
	l.appending.lock()
	defer l.unlock()
	l.guarded.verifyFrom = max(l.guarded.verifyFrom, upTo)
}

// verifySegment checks one segment from an offset on.
func (l *Log) verifySegment(ctx context.Context, s *segment, from, to protocol.Offset) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	size := s.size.Load()
	start, err := l.position(s, f, from, size)
	if err != nil {
		return err
	}
	w := walk(f, start, size, scanBytes(size-start))
	for w.expected < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := w.nextChecked(s.base)
		if ended(err) || err != nil && s.size.Load() < size { // truncated meanwhile
			return nil
		}
		if err != nil {
			return l.damaged(s, &w, err)
		}
	}
	return nil
}

// Rest gives back what the log holds in memory and on the disk for being used: index entries go to their
// files, the index and the file of the active segment are let go until the next use, and space reserved
// behind it is freed. Call it on logs that nobody has used for a while. It does nothing while an append is
// going on.
//
// The state is afterwards as if the log had just been opened cleanly: indexWritten is -1, and prepareTail reads the
// index again for the next append.
func (l *Log) Rest() {
	if !l.appending.tryLock() {
		return
	}
	defer l.unlock()
	if l.guarded.closed || l.failure.Load() != nil {
		return
	}
	s, t := l.active(), &l.guarded.tail
	if s.index.Load() != nil && t.indexWritten >= 0 {
		l.writeIndexes(s)
		if len(t.times) > 0 || int(t.indexWritten) < len(s.index.Load().all()) {
			return // the disk is full
		}
		s.index.Store(nil)
		t.indexWritten, t.times = -1, nil
	}
	l.guarded.busy = 0
	if t.garbage || t.reserved > s.size.Load() {
		if err := l.restFile(s); err != nil {
			l.fail(err)
			return
		}
	}
	s.recent.Store(nil)
	l.files.drop(s)
}

// restFile frees what is reserved behind the active segment.
func (l *Log) restFile(s *segment) error {
	f, err := l.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	return l.giveBack(f, s)
}
