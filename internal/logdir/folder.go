package logdir

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// State is what the name of a partition's folder says of it.
//
//	orders-3                                             Current
//	orders-3.5f0c2a6b1d8e4f97a3b0c1d2e3f40516-future     Future
//	orders-3.5f0c2a6b1d8e4f97a3b0c1d2e3f40516-delete     Deleted
//	orders-3.5f0c2a6b1d8e4f97a3b0c1d2e3f40516-stray      Stray
//
//	           Move             Swap
//	(none) ─────────▶ Future ─────────▶ Current ──── Delete, Swap ───▶ Deleted ──▶ (removed)
//	                     │                 └── MarkStray ──▶ Stray ──▶ RemoveStray
//	                     └── cancelMove ──▶ Deleted
//
// Topic names may have dots and dashes themselves, so names are taken apart from the right.
type State int

// The states of a folder, and what its name ends in.
const (
	Current State = iota // topic-partition
	Future               // -future: a copy that will replace the current one of another directory
	Stray                // -stray: nobody knew its topic; kept aside
	Deleted              // -delete: waits for its files to be removed
)

// String is the state as log lines and errors have it.
func (s State) String() string { return [...]string{"current", "future", "stray", "deleted"}[s] }

// folderSuffixes are the endings of folder names, by State.
var folderSuffixes = [...]string{Current: "", Future: "-future", Stray: "-stray", Deleted: "-delete"}

// folderNameMax is the longest file name that all file systems take, in bytes.
const folderNameMax = 255

// parseFolder takes the name of a partition's folder apart: topic-partition, or
// topic-partition.unique-suffix. Kafka shortens the topic in the names of deleted and stray folders where
// they would get too long, so that the topic of those may be only the beginning of one.
func parseFolder(name string) (tp protocol.TopicPartition, state State, unique string, ok bool) {
	// A folder that ends in a suffix but lacks the unique part is no current one either: the number of a
	// partition is not "delete".
	for state, suffix := range folderSuffixes[1:] {
		rest, found := strings.CutSuffix(name, suffix)
		if !found {
			continue
		}
		dot := strings.LastIndexByte(rest, '.')
		if dot < 0 {
			break
		}
		tp, err := protocol.PartitionOfDir(rest[:dot])
		return tp, State(state + 1), rest[dot+1:], err == nil && rest[dot+1:] != ""
	}
	tp, err := protocol.PartitionOfDir(name)
	return tp, Current, "", err == nil
}

// folderName is the name of a folder of tp. For deleted and stray ones the topic is shortened to what fits;
// a future one must be found again by its name, so that it fails where the topic is too long.
func folderName(tp protocol.TopicPartition, state State, unique string) (string, error) {
	if state == Current {
		return tp.String(), nil
	}
	tail := fmt.Sprintf("-%d.%s%s", tp.Partition, unique, folderSuffixes[state])
	if room := folderNameMax - len(tail); room < len(tp.Topic) {
		if state == Future {
			return "", protocol.Errorf(protocol.InvalidTopic, "partition %s cannot be moved: its topic's name has more than %d characters", tp, room)
		}
		tp.Topic = tp.Topic[:room]
	}
	return tp.Topic + tail, nil
}

// newUnique draws 32 hex digits, as Kafka does: the part of a folder's name that tells
// it from others of the same partition, which may be deleted, created and deleted again within a minute.
func newUnique() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails since Go 1.24
	return hex.EncodeToString(b[:])
}
