package log

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// dirNameMax is the longest name of a directory; the topic's name gives way in the name of a deleted one.
const dirNameMax = 255

// MarkDeleted closes the log and renames its directory to "topic-partition.<32 hex digits>-delete", where
// nobody looks for a partition any more. The files go with RemoveFiles.
//
// The name must not be taken by another deletion of the same topic, which may be created and deleted again within
// file.delete.delay.ms: hence the random digits. A start takes no directory with this suffix for a
// partition, and removes its files later: what was marked stays deleted whenever the process stops.
func (l *Log) MarkDeleted() error {
	l.appending.lock()
	defer l.unlock()
	l.guarded.closed = true
	l.releaseFiles()
	var unique [16]byte
	_, _ = rand.Read(unique[:]) // does not fail
	suffix := fmt.Sprintf("-%d.%s%s", l.partition.Partition, hex.EncodeToString(unique[:]), deleteDirSuffix)
	topic := l.partition.Topic[:min(len(l.partition.Topic), dirNameMax-len(suffix))]
	from := l.Dir()
	to := filepath.Join(filepath.Dir(from), topic+suffix)
	if err := l.fs.Rename(from, to); err != nil {
		return protocol.Errorf(protocol.KafkaStorageError, "delete %s: %w", l.partition, err)
	}
	l.dir.Store(&to)
	return nil
}

// Rename moves the log to another directory of the same volume, as at the end of a move between directories:
// "topic-partition.<hex>-future" becomes "topic-partition". The log goes on; slices keep their files. Syncing
// the parent directory is the caller's.
func (l *Log) Rename(dir string) error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if err := l.fs.Rename(l.Dir(), dir); err != nil {
		return l.ioError("rename", err)
	}
	l.dir.Store(&dir)
	return nil
}

// RemoveFiles deletes the directory of a log that is closed, with all that is in it. Slices that are still
// out keep their files until they are released.
func (l *Log) RemoveFiles() error {
	if err := l.fs.RemoveAll(l.Dir()); err != nil {
		return protocol.Errorf(protocol.KafkaStorageError, "delete %s: %w", l.partition, err)
	}
	return nil
}

// LatestEpoch is the newest leader epoch that the log knows, or NoLeaderEpoch.
func (l *Log) LatestEpoch() protocol.LeaderEpoch { return l.epochs.Load().latest() }

// EpochAt is the leader epoch of the record at offset, or of the records that would be written there;
// NoLeaderEpoch where the log does not know.
func (l *Log) EpochAt(offset protocol.Offset) protocol.LeaderEpoch { return l.epochs.Load().at(offset) }

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch that is not above e, and the offset
// where its records end. NoLeaderEpoch and NoOffset where e is above all known ones or negative.
//
// Followers ask it to find where their log parts from the leader's (KIP-101, KIP-279): the answer's epoch may be
// below the one asked for, and then they ask again with what they have of it.
func (l *Log) EndOffsetForEpoch(e protocol.LeaderEpoch) (protocol.LeaderEpoch, protocol.Offset) {
	return l.epochs.Load().endOffset(e, l.EndOffset())
}

// AssignEpoch notes, in memory, that the records of epoch e begin at start, as a new leader does before its
// first answer. The file follows with the first append.
func (l *Log) AssignEpoch(e protocol.LeaderEpoch, start protocol.Offset) error {
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	l.assignEpoch(e, start)
	return nil
}
