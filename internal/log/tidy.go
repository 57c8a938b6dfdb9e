package log

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// found is what a partition's directory holds once it is tidy.
type found struct {
	segments  segments
	snapshots []protocol.Offset
}

// fileOf is one of a segment's files in a listing.
//
//	name                                   base   kind         state
//	00000000000000004711.log               4711   .log
//	00000000000000004711.timeindex.swap    4711   .timeindex   .swap
//	00000000000000004711.snapshot.deleted  4711   .snapshot    .deleted
type fileOf struct {
	name        string
	base        protocol.Offset
	kind, state string
	entry       os.DirEntry
}

// tidy removes and completes what a stop in the middle of something left, as Kafka does, and lists the rest:
// ".deleted" files go; ".cleaned" ones go, with the ".swap" files at or behind them, since those belong to
// the same unfinished rename; what is still ".swap" is finished and replaces the segments that it covers.
//
// It comes to the same result if it is stopped and begun again: each step only removes, or renames towards the name
// that a file has in the end. The table of states is at swap.
func (l *Log) tidy() (found, error) {
	files, err := l.listFiles()
	if err != nil {
		return found{}, err
	}
	firstCleaned := protocol.Offset(math.MaxInt64)
	for _, f := range files {
		if f.state == cleanedSuffix {
			firstCleaned = min(firstCleaned, f.base)
		}
	}
	swapped := false
	for _, f := range files {
		unfinished := f.state == swapSuffix && f.base >= firstCleaned
		if f.state == deletedSuffix || f.state == cleanedSuffix || unfinished {
			if err := l.removeFile(f.name); err != nil {
				return found{}, err
			}
		}
		swapped = swapped || f.state == swapSuffix && !unfinished
	}
	if swapped {
		if err := l.finishSwap(); err != nil {
			return found{}, err
		}
		if files, err = l.listFiles(); err != nil {
			return found{}, err
		}
	}
	return l.collect(files)
}

// listFiles lists the files of segments, and removes snapshots that were not finished; all others are left
// alone.
func (l *Log) listFiles() ([]fileOf, error) {
	entries, err := l.fs.ReadDir(l.Dir())
	if err != nil {
		return nil, err
	}
	files := make([]fileOf, 0, len(entries))
	for _, e := range entries {
		if rest, ok := strings.CutSuffix(e.Name(), temporarySuffix); ok {
			if _, kind, _, ok := parseFileName(rest); ok && kind == snapshotSuffix {
				if err := l.removeFile(e.Name()); err != nil {
					return nil, err
				}
			}
			continue
		}
		if base, kind, state, ok := parseFileName(e.Name()); ok && !e.IsDir() {
			files = append(files, fileOf{e.Name(), base, kind, state, e})
		}
	}
	return files, nil
}

// removeFile removes a file of the partition's directory, if it is there.
func (l *Log) removeFile(name string) error {
	err := l.fs.Remove(filepath.Join(l.Dir(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// finishSwap completes the work of a log cleaner that was stopped while it renamed: the segments that the
// ".swap" ones were made from go, if they have not yet, and the suffix is taken off.
//
// The range is taken from what the ".swap" log files hold. Where cleaning has taken the last records of the range
// out, originals behind the last kept batch stay, and are compacted again: they hold nothing that contradicts it.
func (l *Log) finishSwap() error {
	files, err := l.listFiles()
	if err != nil {
		return err
	}
	low, high := protocol.Offset(math.MaxInt64), protocol.Offset(-1)
	for _, f := range files {
		if f.state == swapSuffix && f.kind == logSuffix {
			next, err := l.nextOffsetIn(f)
			if err != nil {
				return err
			}
			low, high = min(low, f.base), max(high, next)
		}
	}
	for _, f := range files {
		if f.state == "" && f.base >= low && f.base < high {
			if err := l.removeFile(f.name); err != nil {
				return err
			}
		}
	}
	for _, f := range files {
		if f.state == swapSuffix {
			path := filepath.Join(l.Dir(), f.name)
			if err := l.fs.Rename(path, path[:len(path)-len(swapSuffix)]); err != nil {
				return err
			}
		}
	}
	l.logger.Info("finished an interrupted log cleaning", "partition", l.partition, "from", low, "to", high)
	return nil
}

// nextOffsetIn walks a file for the offset behind its last batch.
// It walks all headers of a file, which happens only after a stop in the middle of a swap.
func (l *Log) nextOffsetIn(f fileOf) (protocol.Offset, error) {
	file, err := l.fs.OpenFile(filepath.Join(l.Dir(), f.name), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return 0, err
	}
	w := walk(file, 0, size, scanBytes(size))
	for {
		_, err := w.next()
		if errors.Is(err, io.EOF) {
			return max(f.base, w.expected), nil
		}
		if err != nil {
			return 0, &DamageError{Partition: l.partition, File: file.Name(), Position: w.pos, Offset: max(f.base, w.expected), Cause: err}
		}
	}
}

// collect sorts what a tidy directory holds into segments and snapshots, and removes the side files of
// segments that are not there. Only log files and transaction indexes are measured.
//
// Listing a directory tells no sizes, and asking costs a system call a file, of which a broker may have a hundred
// thousand: so offset and time indexes are not asked for.
func (l *Log) collect(files []fileOf) (found, error) {
	var out found
	bySegment := map[protocol.Offset]*segment{}
	for _, f := range files {
		if f.state != "" || f.kind != logSuffix {
			continue
		}
		info, err := f.entry.Info()
		if err != nil {
			return out, err
		}
		s := newSegment(f.base, info.Size(), info.ModTime())
		out.segments = append(out.segments, s)
		bySegment[f.base] = s
	}
	for _, f := range files {
		if f.state != "" || f.kind == logSuffix {
			continue
		}
		if f.kind == snapshotSuffix {
			out.snapshots = append(out.snapshots, f.base)
			continue
		}
		if err := l.collectIndex(f, bySegment[f.base]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// collectIndex looks at an index of segment s, or removes it where s is nil.
func (l *Log) collectIndex(f fileOf, s *segment) error {
	if s == nil {
		l.logger.Warn("removing the index of a segment that is not there", "partition", l.partition, "file", f.name)
		return l.removeFile(f.name)
	}
	if f.kind != txnIndexSuffix {
		return nil
	}
	info, err := f.entry.Info()
	if err != nil {
		return err
	}
	s.aborted.Store(int32(info.Size() / abortedSize))
	return nil
}
