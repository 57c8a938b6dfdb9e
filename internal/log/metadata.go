package log

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// smallFileMax bounds what is read of the small text files of a partition: bigger ones are not what they
// claim to be. An epoch line has at most 31 bytes, so this holds some 100,000 leaders.
const smallFileMax = 4 << 20

// ReadTopicID reads the topic id from partition.metadata in a partition's directory. It is the zero id where
// there is no such file, as before Kafka 2.8, or where a crash has left it empty.
//
//	version: 0
//	topic_id: AAAAAAAAAAAAAAAAAAAAAQ        16 bytes in URL-safe base64 without padding; no newline behind it
//
// It ties a directory to one life of a topic (KIP-516). Without it a broker that was away while a topic was deleted
// and created anew would serve the old records as the new topic's.
func ReadTopicID(files vfs.FS, dir string) (protocol.TopicID, error) {
	path := filepath.Join(dir, metadataName)
	text, err := readSmall(files, path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(strings.Trim(string(text), "\x00")) == 0 {
		return protocol.TopicID{}, nil
	}
	if err != nil {
		return protocol.TopicID{}, err
	}
	id, err := parseMetadata(string(text))
	if err != nil {
		return id, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

// TopicID is the id of the topic that the log belongs to. It is the zero id until somebody has said it: brokers
// before Kafka 2.8 wrote none.
func (l *Log) TopicID() protocol.TopicID {
	if id := l.topicID.Load(); id != nil {
		return *id
	}
	return protocol.TopicID{}
}

// AssignTopicID gives an id to a log that has none, as the first order of a controller for an old directory does
// (KIP-516), and checks that of any other: where it differs, the log is an earlier topic's of the same name, and
// the error is INCONSISTENT_TOPIC_ID. The zero id says nothing and changes nothing.
func (l *Log) AssignTopicID(id protocol.TopicID) error {
	if id.IsZero() || l.TopicID() == id {
		return nil
	}
	if err := l.lock(); err != nil {
		return err
	}
	defer l.unlock()
	if err := l.adoptTopicID(id); err != nil {
		if protocol.CodeOf(err) == protocol.InconsistentTopicID {
			return err
		}
		return l.ioError("write "+metadataName, err)
	}
	return nil
}

// adoptTopicID compares the log's id with one that it is told, and writes that where it has none. The file is
// synced by the first sync of records.
func (l *Log) adoptTopicID(id protocol.TopicID) error {
	there := l.TopicID()
	if id.IsZero() || there == id {
		return nil
	}
	if !there.IsZero() {
		return protocol.Errorf(protocol.InconsistentTopicID, "%s holds topic id %s, expected %s", l.Dir(), there, id)
	}
	if err := replaceSmall(l.fs, filepath.Join(l.Dir(), metadataName), formatMetadata(id), false); err != nil {
		return err
	}
	l.topicID.Store(&id)
	l.guarded.namesDirty = true
	return nil
}

// parseMetadata reads the text of partition.metadata.
func parseMetadata(text string) (protocol.TopicID, error) {
	version, rest, _ := strings.Cut(text, "\n")
	if version != "version: 0" {
		return protocol.TopicID{}, fmt.Errorf("first line %q is not %q", version, "version: 0")
	}
	id, ok := strings.CutPrefix(strings.TrimSuffix(rest, "\n"), "topic_id: ")
	if !ok {
		return protocol.TopicID{}, fmt.Errorf("second line %q has no topic_id", rest)
	}
	return protocol.ParseTopicID(id)
}

// formatMetadata is the text of partition.metadata.
func formatMetadata(id protocol.TopicID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %s", id)
}

// readSmall reads a whole small file.
func readSmall(files vfs.FS, path string) ([]byte, error) {
	f, err := files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > smallFileMax {
		return nil, fmt.Errorf("%s: %d bytes are too many", path, size)
	}
	b := make([]byte, size)
	if err := readFull(f, b, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// replaceSmall gives path new content in one step: a reader, or a recovery in the same boot, sees the old or
// the new one. With durable it also survives a power cut once the directory is synced.
//
//	stopped after           there is                     a start finds
//	writing path.tmp        old file, whole or torn tmp  the old content; the next call truncates the tmp
//	the rename              new file                     the new content; after a power cut it may be empty or
//	                                                     old, unless durable
//
// It does not sync the directory: callers gather several names for one sync.
func replaceSmall(files vfs.FS, path string, content []byte, durable bool) error {
	temporary := path + temporarySuffix
	f, err := files.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil && durable {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", temporary, err)
	}
	return files.Rename(temporary, path)
}
