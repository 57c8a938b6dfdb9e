package quorum

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// openLog opens the log behind a snapshot that holds all entries up to an index (0: there is none), and
// makes its first segment if there is none. A torn write at its end is cut; everything else that is not as
// it was written is a *DamageError.
func openLog(
	fs vfs.FS, dir string, snapshot uint64, salt func() uint64, logger *slog.Logger,
) (*logStore, error) {
	s := &logStore{fs: fs, dir: dir, salt: salt, base: snapshot + 1}
	firsts, err := s.needed(snapshot)
	if err != nil {
		return nil, err
	}
	if len(firsts) > 0 {
		s.base = firsts[0]
	}
	for i, first := range firsts {
		if err := s.openSegment(first, i == len(firsts)-1, logger); err != nil {
			s.close()
			return nil, err
		}
	}
	if len(s.segments) == 0 {
		if err := s.rollLocked(s.base); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// needed lists the segments that hold what the snapshot does not, and removes those before them: a crash
// came between the snapshot and their removal.
func (s *logStore) needed(snapshot uint64) ([]uint64, error) {
	firsts, err := listIndexed(s.fs, s.dir, logPrefix)
	if err != nil {
		return nil, err
	}
	if len(firsts) > 0 && firsts[0] > snapshot+1 {
		return nil, &DamageError{
			File:   indexedName(s.dir, logPrefix, firsts[0]),
			Reason: fmt.Sprintf("the entries from %d to %d before it are missing", snapshot+1, firsts[0]-1),
		}
	}
	for len(firsts) > 1 && firsts[1] <= snapshot+1 {
		if err := s.fs.Remove(indexedName(s.dir, logPrefix, firsts[0])); err != nil {
			return nil, err
		}
		firsts = firsts[1:]
	}
	return firsts, nil
}

// openSegment reads a segment and enters what it holds.
func (s *logStore) openSegment(first uint64, last bool, logger *slog.Logger) error {
	name := indexedName(s.dir, logPrefix, first)
	f, err := s.fs.OpenFile(name, os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	seg := &segment{file: f, end: headerSize, last: first - 1}
	s.segments = append(s.segments, seg)
	if seg.bytes, err = readFile(f); err != nil {
		return err
	}
	seg.fileHeader, err = parseHeader(seg.bytes, kindLog)
	switch {
	case errors.Is(err, errBadHeader) && last && len(seg.bytes) <= headerSize:
		return s.discardNewest(seg, logger)
	case errors.Is(err, errBadHeader):
		return &DamageError{File: name, Reason: err.Error()}
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case seg.index != first:
		return &DamageError{File: name, Reason: fmt.Sprintf("it says that it starts with entry %d", seg.index)}
	case first != s.nextLocked():
		return &DamageError{
			File:   name,
			Reason: fmt.Sprintf("it starts with entry %d, but the one before it ends with %d", first, s.nextLocked()-1),
		}
	}
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
