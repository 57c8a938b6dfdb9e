package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// segmentBytes is the usual size from which on a log segment gets no more frames.
const segmentBytes = 4 << 20

// frameBytes is what is gathered into one frame; a larger batch becomes several, each synced by itself.
const frameBytes = 16 << 20

// logStore is raft's log: entries that follow each other in append-only segments, which are numbered. What
// raft takes back at the end (a follower that had other entries than its leader) is said by a frame; what
// a snapshot made superfluous goes with whole segments.
//
//	segment 7               segment 8                   segment 9 (active)
//	┌ header, first 101 ┐   ┌ header, first 140 ┐       ┌ header, first 180 ┐
//	│ entries 101..120  │   │ entries 140..179  │       │ entries 180..190  │
//	│ entries 121..139  │   └───────────────────┘       │ cut 185           │
//	└───────────────────┘                               │ entries 185..200  │◀ end
//	    ▲ dropped once a snapshot has 139               └─── reserved ──────┘
//
// The index of where each entry stands is in memory (entries[i] is that of entry base+i); GetLog costs one read.
// mu is held across writes and syncs, as raft has one goroutine that writes; readers wait for that long.
//
//	a call failed at                        the caller is told   the store
//	a write, space or the like used up      it did not happen    goes on: it was taken back, durably
//	making a segment, for the same reason   it did not happen    unfinished: made anew before the next frame
//	either, for another reason              unknown              failed: nothing is written any more
//	a sync, or taking a write back          unknown              failed
type logStore struct {
	fs    vfs.FS
	dir   string
	salt  func() uint64
	limit int64 // segmentBytes, or less in tests
	// covered is the last entry that the newest snapshot holds.
	covered func() uint64

	mu       sync.RWMutex
	segments []*segment // oldest first; the last one is written to
	base     uint64     // index of the first entry, or of the next one if there is none
	entries  []place    // where each entry stands
	buffer   []byte     // of the frame that is being written
	failed   error      // what makes writing impossible for good: the disk is broken, or what it holds unknown
	// unfinished says that a segment could not be made, which may be on the disk all the same. Nothing is
	// written to the older ones before it is: it would follow the newer one's first entry.
	unfinished bool
	made       bool // the first segment is new, and its name not durable yet
}

var (
	_ raft.LogStore          = (*logStore)(nil)
	_ raft.MonotonicLogStore = (*logStore)(nil)
)

// segment is one file of the log.
type segment struct {
	file   vfs.File
	number uint64
	fileHeader
	end   int64  // where the next frame goes
	last  uint64 // the highest index that ever stood in it
	bytes []byte // its content while the log is opened, so that replaying reads it once
}

// place is where an entry stands.
type place struct {
	segment  *segment
	position int64
	length   int
}

// appendError is an entry that could not be stored.
type appendError struct {
	err error
	// undone says that nothing of it is left and the log goes on.
	undone bool
}

// Error tells what happened.
func (e *appendError) Error() string { return "storing metadata: " + e.err.Error() }

// Unwrap gives the cause to errors.Is.
func (e *appendError) Unwrap() error { return e.err }

// nextLocked is the index that the next entry has.
func (s *logStore) nextLocked() uint64 { return s.base + uint64(len(s.entries)) }

// active is the segment that is written to.
func (s *logStore) activeLocked() *segment { return s.segments[len(s.segments)-1] }

// IsMonotonic implements raft.MonotonicLogStore: entries follow each other without a gap.
func (s *logStore) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (s *logStore) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.entries) == 0 {
		return 0, nil
	}
	return s.base, nil
}

// LastIndex implements raft.LogStore.
func (s *logStore) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.entries) == 0 {
		return 0, nil
	}
	return s.nextLocked() - 1, nil
}

// GetLog implements raft.LogStore.
func (s *logStore) GetLog(index uint64, l *raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if index < s.base || index >= s.nextLocked() {
		return raft.ErrLogNotFound
	}
	at := s.entries[index-s.base]
	b := make([]byte, at.length)
	if kept := at.segment.bytes; at.position+int64(at.length) <= int64(len(kept)) {
		copy(b, kept[at.position:])
	} else if _, err := at.segment.file.ReadAt(b, at.position); err != nil {
		return fmt.Errorf("reading entry %d at position %d of %s: %w", index, at.position, at.segment.file.Name(), err)
	}
	r := entryReader{all: b}
	*l = r.entry()
	l.Index = index
	if r.bad {
		return &DamageError{File: at.segment.file.Name(), Position: at.position, Reason: errBadEntry.Error()}
	}
	return nil
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore: when it returns nil all entries are durable. The error is an
// *appendError.
//
// Where raft's first index is not the next one, it has taken entries back and comes with others: a cut is written
// first. A crash between the two leaves fewer entries, and never a mixture of both.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(logs) == 0 {
		return nil
	}
	if first := logs[0].Index; first != s.nextLocked() {
		if err := s.moveLocked(first); err != nil {
			return &appendError{err: err}
		}
	}
	for done := 0; done < len(logs); {
		n, err := s.storeFrameLocked(logs[done:])
		if err != nil {
			return &appendError{err: err, undone: done == 0 && s.failed == nil}
		}
		done += n
	}
	return nil
}

// moveLocked makes an index the next one: by a cut, or in an empty log by a new segment.
func (s *logStore) moveLocked(next uint64) error {
	switch {
	case len(s.entries) == 0:
		return s.restartLocked(next)
	case next >= s.base && next < s.nextLocked():
		return s.cutLocked(next)
	}
	return fmt.Errorf("entry %d does not follow those from %d to %d", next, s.base, s.nextLocked()-1)
}

// storeFrameLocked stores as many entries as fit one frame and tells how many.
func (s *logStore) storeFrameLocked(logs []*raft.Log) (stored int, err error) {
	b := append(s.buffer[:0], make([]byte, frameHeader)...)
	b = append(b, frameEntries)
	b = binary.AppendUvarint(b, logs[0].Index)
	size := 0
	for stored < len(logs) && (stored == 0 || size+len(logs[stored].Data) <= frameBytes) {
		size += len(logs[stored].Data)
		stored++
	}
	b = binary.AppendUvarint(b, uint64(stored))
	spans := make([]span, stored)
	for i, l := range logs[:stored] {
		from := len(b)
		b = appendEntry(b, l)
		spans[i] = span{from, len(b)}
	}
	s.keepBuffer(b)
	seg, position, err := s.writeLocked(b)
	if err != nil {
		return 0, err
	}
	s.indexLocked(seg, position, logs[0].Index, spans)
	return stored, nil
}

// keepBuffer keeps a buffer for the next frame, unless it is unusually large.
func (s *logStore) keepBuffer(b []byte) {
	s.buffer = b
	if cap(b) > 1<<20 {
		s.buffer = nil
	}
}

// indexLocked enters entries into the index. Their spans count from the frame's position.
func (s *logStore) indexLocked(seg *segment, position int64, first uint64, spans []span) {
	for _, sp := range spans {
		s.entries = append(s.entries, place{seg, position + int64(sp.from), sp.to - sp.from})
	}
	seg.last = max(seg.last, first+uint64(len(spans))-1)
}

// writeLocked writes a frame whose payload stands behind room for its header, and syncs it.
func (s *logStore) writeLocked(frame []byte) (seg *segment, position int64, err error) {
	if s.failed != nil {
		return nil, 0, s.failed
	}
	if s.activeLocked().end >= s.limit || s.unfinished {
		if err := s.rollLocked(s.nextLocked()); err != nil {
			return nil, 0, err
		}
	}
	seg = s.activeLocked()
	position = seg.end
	sealFrame(frame, seg.salt, position)
	if _, err := seg.file.WriteAt(frame, position); err != nil {
		err = fmt.Errorf("writing %s: %w", seg.file.Name(), err)
		s.undoLocked(seg, err)
		s.giveUpLocked(err)
		return nil, 0, err
	}
	if err := seg.file.Sync(); err != nil {
		// What is on the disk now cannot be known: a second sync may succeed without having written.
		s.failed = fmt.Errorf("syncing %s: %w", seg.file.Name(), err)
		return nil, 0, s.failed
	}
	seg.end += int64(len(frame))
	return seg, position, nil
}

// undoLocked takes back what a failed write may have left, for good: it must not come back after a crash,
// since its caller is told that it did not happen.
//
// The truncation also gives the reserved space back; only the speed of later writes depends on that.
func (s *logStore) undoLocked(seg *segment, cause error) {
	err := seg.file.Truncate(seg.end)
	if err == nil {
		err = seg.file.Sync()
	}
	if err != nil {
		s.failed = fmt.Errorf("%w; and taking it back: %w", cause, err)
	}
}

// giveUpLocked makes a failed write final, unless space or descriptors were used up, which passes: raft steps down
// after any error and tries again each second, for ever, while nobody would learn that the disk is broken.
func (s *logStore) giveUpLocked(err error) {
	if s.failed == nil && !vfs.IsExhausted(err) {
		s.failed = err
	}
}

// rollLocked starts a segment whose first entry has an index.
func (s *logStore) rollLocked(first uint64) error {
	if s.failed != nil {
		return s.failed
	}
	seg, err := s.createSegment(s.activeLocked().number+1, first)
	if err == nil {
		if err = s.fs.SyncDir(s.dir); err != nil {
			seg.file.Close()
		}
	}
	if s.unfinished = err != nil; s.unfinished {
		err = fmt.Errorf("starting a log segment: %w", err)
		s.giveUpLocked(err)
		return err
	}
	s.segments = append(s.segments, seg)
	return nil
}

// createSegment makes an empty segment, durable but for its name. One that could not be finished is begun
// anew by the next try, or found to be empty when the log is opened.
func (s *logStore) createSegment(number, first uint64) (*segment, error) {
	h := fileHeader{kind: kindLog, salt: s.salt(), index: first}
	f, err := createFile(s.fs, numberedName(s.dir, logPrefix, number), h)
	if err != nil {
		return nil, err
	}
	seg := &segment{file: f, number: number, fileHeader: h, end: headerSize, last: first - 1}
	s.reserve(seg)
	return seg, nil
}

// reserve takes the space of a segment ahead, as far as there is any, so that a full disk does not keep anybody
// from deleting a topic, or a broker from starting. Only a reserve is lost where that cannot be done.
func (s *logStore) reserve(seg *segment) {
	if seg.end < s.limit {
		_ = seg.file.Preallocate(seg.end, s.limit-seg.end)
	}
}

// DeleteRange implements raft.LogStore: entries go from the start, since a snapshot has them, or from the
// end, since a leader has others.
//
//	entries 101..200 in the log          what raft asks for         what is done
//	start of them                        101..150                   base is 151, whole segments go
//	all, covered                         up to 200, snapshot 200    a new segment begins at 201
//	end of them                          190..200                   a cut at 190
//	the middle                           120..130                   refused: raft never asks for it
func (s *logStore) DeleteRange(first, last uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.entries) == 0 || first > last || last < s.base || first >= s.nextLocked():
		return nil
	case first <= s.base && last < s.nextLocked()-1:
		s.entries = append([]place(nil), s.entries[last+1-s.base:]...)
		s.base = last + 1
		return s.dropLocked()
	case first <= s.base && last <= s.covered():
		return s.restartLocked(last + 1)
	case last >= s.nextLocked()-1:
		return s.cutLocked(max(first, s.base))
	}
	return fmt.Errorf("entries %d to %d are in the middle of those from %d to %d", first, last, s.base, s.nextLocked()-1)
}

// restartLocked makes a log that is empty, or covered by a snapshot, start again with an index.
//
// The new segment's name is durable before the older ones go, so the directory always says where the log begins.
func (s *logStore) restartLocked(next uint64) error {
	if active := s.activeLocked(); active.index != next || active.end > headerSize || s.unfinished {
		if err := s.rollLocked(next); err != nil {
			return err
		}
	}
	for _, seg := range s.segments {
		seg.last = 0
	}
	s.entries, s.base = nil, next
	return s.dropLocked()
}

// cutLocked takes the entries from an index on back.
func (s *logStore) cutLocked(from uint64) error {
	b := append(s.buffer[:0], make([]byte, frameHeader)...)
	b = append(b, frameCut)
	b = binary.AppendUvarint(b, from)
	s.keepBuffer(b)
	if _, _, err := s.writeLocked(b); err != nil {
		return err
	}
	s.entries = s.entries[:from-s.base]
	return nil
}

// dropLocked removes segments without an entry that counts. Should any stay, or come back after a crash,
// the snapshot tells when the log is opened that they are superfluous.
//
// The active segment always stays, also if nothing in it counts.
func (s *logStore) dropLocked() error {
	var errs []error
	for len(s.segments) > 1 && s.segments[0].last < s.base {
		file := s.segments[0].file
		s.segments = s.segments[1:]
		errs = append(errs, file.Close(), s.fs.Remove(file.Name()))
	}
	if len(errs) > 0 {
		errs = append(errs, s.fs.SyncDir(s.dir))
	}
	return errors.Join(errs...)
}

// broken says why nothing more can be written; nil if it can.
func (s *logStore) broken() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.failed
}

// release drops what was kept in memory for replaying.
func (s *logStore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segments {
		seg.bytes = nil
	}
}

// close closes all files.
func (s *logStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, seg := range s.segments {
		errs = append(errs, seg.file.Close())
	}
	s.segments = s.segments[:0]
	return errors.Join(errs...)
}
