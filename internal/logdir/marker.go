package logdir

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// markerFile is Kafka's name for it; both brokers believe each other's.
//
//	{"version":0,"brokerEpoch":12}       no newline
//
//	Close, all logs synced and checkpoints written ──▶ there ──▶ Load, all opened ──▶ removed, durably
//	                                                     └──▶ a start that is stopped before that: still there
//
// It must be gone before the first append, and is not removed earlier than necessary: a start that fails halfway
// leaves the directory as clean as it was.
const markerFile = ".kafka_cleanshutdown"

// readMarker reads .kafka_cleanshutdown, whose being there says that the directory was closed cleanly. Its
// content is {"version":0,"brokerEpoch":12}; Kafka before 3.7 left it empty, and with ZooKeeper the epoch is
// -1. A content that is neither does not take the message away, only the epoch.
func readMarker(files vfs.FS, dir string) (clean bool, epoch protocol.BrokerEpoch, err error) {
	text, err := readFile(files, filepath.Join(dir, markerFile), 4<<10)
	if missing(err) {
		return false, protocol.NoBrokerEpoch, nil
	}
	if err != nil {
		return false, protocol.NoBrokerEpoch, err
	}
	content := struct {
		Version     *int                  `json:"version"`
		BrokerEpoch *protocol.BrokerEpoch `json:"brokerEpoch"`
	}{}
	if json.Unmarshal(text, &content) != nil || content.Version == nil || content.BrokerEpoch == nil {
		return true, protocol.NoBrokerEpoch, nil
	}
	return true, *content.BrokerEpoch, nil
}

// writeMarker says durably that dir is clean. Everything else must be durable before.
func writeMarker(files vfs.FS, dir string, epoch protocol.BrokerEpoch) error {
	text := fmt.Appendf(nil, `{"version":0,"brokerEpoch":%d}`, epoch)
	return writeFile(files, filepath.Join(dir, markerFile), text)
}

// removeMarker takes the statement back, durably: were it to come back after a power cut, logs would go
// unchecked that have been written since.
func removeMarker(files vfs.FS, dir string) error {
	if err := files.Remove(filepath.Join(dir, markerFile)); err != nil && !missing(err) {
		return err
	}
	return files.SyncDir(dir)
}
