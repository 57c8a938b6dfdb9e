package quorum

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// openLog opens the log behind a snapshot that holds all entries up to an index (0 if there is none), and
// makes its first segment if there is none, whose name is durable when the caller has synced the directory. A
// torn write at its end is cut; everything else that is not as it was written is a *DamageError.
//
//	on the disk                                         what is done
//	no segment                                          the first one is made, behind the snapshot
//	segments that the snapshot covers                   removed, oldest first
//	the newest with at most a torn header               removed: it was never begun
//	a bad frame at the end of the newest                cut and synced: nobody was told of it
//	a bad frame with a valid one behind it              damage
//	a bad frame in an older segment                     damage: newer ones were begun after it was whole
//	a number or an index that is missing                damage
func openLog(o Options, covered func() uint64) (*logStore, error) {
	snapshot := covered()
	s := &logStore{
		fs: o.FS, dir: o.Dir, salt: o.Random, limit: o.segmentBytes, covered: covered, base: snapshot + 1,
	}
	numbers, err := s.needed(snapshot)
	if err != nil {
		return nil, err
	}
	for i, number := range numbers {
		if err := s.openSegment(number, i == len(numbers)-1, o.Logger); err != nil {
			_ = s.close() // the first error is the one to tell
			return nil, err
		}
	}
	if len(s.segments) == 0 {
		seg, err := s.createSegment(1, s.base)
		if err != nil {
			return nil, err
		}
		s.segments, s.made = append(s.segments, seg), true
	}
	s.reserve(s.activeLocked())
	return s, nil
}

// needed lists the segments from the last one on that starts within the snapshot or right behind it, and
// removes those before it: a crash came between the snapshot and their removal.
//
//	snapshot 150    segments first 101, 140, 180     101 goes; 140 is needed, for 151 to 179
//	snapshot 179    the same                         101 and 140 go; 180 is right behind the snapshot
//	snapshot 90     the same                         damage: 91 to 100 are missing
//
// Numbers are read from headers only, without the frames. The newest may be torn and have none: then it is judged when
// it is opened.
func (s *logStore) needed(snapshot uint64) ([]uint64, error) {
	numbers, err := listNumbered(s.fs, s.dir, logPrefix)
	if err != nil {
		return nil, err
	}
	start := len(numbers)
	for i, number := range numbers {
		first, err := s.firstIndex(number)
		if err != nil && i == len(numbers)-1 {
			break // openSegment tells whether it is damaged or was never begun
		}
		if err != nil {
			return nil, err
		}
		if first <= snapshot+1 {
			start, s.base = i, first
		}
	}
	if start == len(numbers) && len(numbers) > 1 {
		return nil, &DamageError{
			File:   numberedName(s.dir, logPrefix, numbers[0]),
			Reason: fmt.Sprintf("entries from %d on are missing before it", snapshot+1),
		}
	}
	start = min(start, max(len(numbers)-1, 0))
	for _, number := range numbers[:start] {
		if err := s.fs.Remove(numberedName(s.dir, logPrefix, number)); err != nil {
			return nil, err
		}
	}
	return numbers[start:], nil
}

// firstIndex reads the index of the first entry from a segment's header.
func (s *logStore) firstIndex(number uint64) (uint64, error) {
	f, err := s.fs.OpenFile(numberedName(s.dir, logPrefix, number), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h, err := readHeader(f, kindLog)
	return h.index, err
}

// openSegment reads a segment and enters what it holds.
func (s *logStore) openSegment(number uint64, last bool, logger *slog.Logger) error {
	name := numberedName(s.dir, logPrefix, number)
	f, err := s.fs.OpenFile(name, os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	seg := &segment{file: f, number: number, end: headerSize}
	previous := len(s.segments)
	s.segments = append(s.segments, seg)
	if seg.bytes, err = readFile(f); err != nil {
		return err
	}
	seg.fileHeader, err = readHeader(f, kindLog)
	var damage *DamageError
	switch {
	case errors.As(err, &damage) && last && len(seg.bytes) <= headerSize:
		return s.discardNewest(seg, logger)
	case err != nil:
		return err
	case previous > 0 && s.segments[previous-1].number != number-1:
		return &DamageError{File: name, Reason: fmt.Sprintf("segment %d before it is missing", number-1)}
	case seg.index != s.nextLocked():
		return &DamageError{
			File:   name,
			Reason: fmt.Sprintf("it starts with entry %d, where %d is next", seg.index, s.nextLocked()),
		}
	}
	seg.last = seg.index - 1
	return s.replay(seg, last, logger)
}

// discardNewest removes a segment whose making was interrupted before anything was written to it.
func (s *logStore) discardNewest(seg *segment, logger *slog.Logger) error {
	logger.Info("removing a metadata log segment that was never begun", "file", seg.file.Name())
	s.segments = s.segments[:len(s.segments)-1]
	seg.file.Close()
	if err := s.fs.Remove(seg.file.Name()); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// replay goes through the frames of a segment.
//
// It reads the segment once, as a whole, and leaves it in memory: raft asks for each entry again when it carries out
// what the snapshot lacks. release drops that when the first session is open.
func (s *logStore) replay(seg *segment, last bool, logger *slog.Logger) error {
	for seg.end < int64(len(seg.bytes)) {
		payload, ok := frameAt(seg.bytes, seg.salt, seg.end)
		if !ok {
			return s.cutTorn(seg, last, logger)
		}
		frame, err := parseLogFrame(payload)
		if err == nil {
			err = s.replayFrame(seg, frame)
		}
		if err != nil {
			return &DamageError{File: seg.file.Name(), Position: seg.end, Reason: err.Error()}
		}
		seg.end += int64(frameHeader + len(payload))
	}
	return nil
}

// replayFrame does again what a frame says.
//
// A cut at or below base takes back into segments that are gone, since a snapshot has what counts of them: nothing
// that was read so far counts, and the next entries begin at the cut.
func (s *logStore) replayFrame(seg *segment, f logFrame) error {
	switch {
	case f.kind == frameEntries && f.index == s.nextLocked():
		for i := range f.spans {
			f.spans[i].from += frameHeader
			f.spans[i].to += frameHeader
		}
		s.indexLocked(seg, seg.end, f.index, f.spans)
	case f.kind == frameCut && f.index <= s.base:
		s.entries, s.base = nil, f.index
	case f.kind == frameCut && f.index <= s.nextLocked():
		s.entries = s.entries[:f.index-s.base]
	default:
		return fmt.Errorf("a frame of kind %d with entry %d, where %d is next", f.kind, f.index, s.nextLocked())
	}
	return nil
}

// cutTorn cuts a torn write off the end of the log. Only there can one be, and nothing valid is behind it:
// otherwise it is damage.
func (s *logStore) cutTorn(seg *segment, last bool, logger *slog.Logger) error {
	damage := &DamageError{File: seg.file.Name(), Position: seg.end}
	if !last {
		damage.Reason = "the frame is not valid, and newer log segments follow"
		return damage
	}
	if found, ok := frameBehind(seg.bytes, seg.salt, seg.end+1); ok {
		damage.Reason = fmt.Sprintf("the frame is not valid, and a valid one stands behind it at %d", found)
		return damage
	}
	logger.Info("cutting a torn write off the metadata log", "file", seg.file.Name(),
		"position", seg.end, "bytes", int64(len(seg.bytes))-seg.end)
	if err := seg.file.Truncate(seg.end); err != nil {
		return err
	}
	seg.bytes = seg.bytes[:seg.end]
	return seg.file.Sync()
}
