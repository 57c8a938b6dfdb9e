package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// The four checkpoints of a directory. Each holds one offset for each of its partitions, as of when it was
// written; what losing one costs is said with it.
const (
	// recoveryPointFile: below it the log is synced. Lost: after a power cut everything is scanned.
	recoveryPointFile = "recovery-point-offset-checkpoint"
	// logStartFile: where DeleteRecords cut inside a segment. Lost: deleted records are readable again.
	logStartFile = "log-start-offset-checkpoint"
	// highWatermarkFile: up to where consumers may read. Lost: a new leader has to find it again.
	highWatermarkFile = "replication-offset-checkpoint"
	// cleanerFile: up to where the log is compacted. Lost: it is compacted from its start again.
	cleanerFile = "cleaner-offset-checkpoint"
)

// checkpointMax bounds the size of a checkpoint that is read, in bytes: a million partitions with the
// longest names.
const checkpointMax = 300 << 20

// Offsets is what a checkpoint holds: one offset a partition.
type Offsets map[protocol.TopicPartition]protocol.Offset

// ParseCheckpoint reads the text of a checkpoint, Kafka's version 0:
//
//	0                    version
//	2                    number of lines that follow
//	topic 0 4711         topic, partition, offset
//	topic 1 0
//
// An empty text has no offsets: Kafka makes the files before it writes them. Anything else is an error that
// names the line, since half a checkpoint is worse than none.
func ParseCheckpoint(text string) (Offsets, error) {
	if text == "" {
		return Offsets{}, nil
	}
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] != "" {
		return nil, fmt.Errorf("line %d is cut off", len(lines))
	}
	lines = lines[:len(lines)-1]
	if len(lines) < 2 || lines[0] != "0" {
		return nil, errors.New("line 1 is not version 0, followed by a count")
	}
	count, err := strconv.Atoi(lines[1])
	if err != nil || count != len(lines)-2 {
		return nil, fmt.Errorf("line 2 promises %q lines, and there are %d", lines[1], len(lines)-2)
	}
	offsets := make(Offsets, count)
	for i, line := range lines[2:] {
		tp, offset, ok := parseCheckpointLine(line)
		if !ok {
			return nil, fmt.Errorf("line %d, %q, is not topic, partition and offset", i+3, line)
		}
		if _, ok := offsets[tp]; ok {
			return nil, fmt.Errorf("line %d names %s again", i+3, tp)
		}
		offsets[tp] = offset
	}
	return offsets, nil
}

// parseCheckpointLine reads topic, partition and offset. The topic's name must be a valid one, as it becomes
// part of a path.
func parseCheckpointLine(line string) (tp protocol.TopicPartition, offset protocol.Offset, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return tp, 0, false
	}
	partition, err1 := strconv.ParseInt(fields[1], 10, 32)
	position, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil || partition < 0 || position < 0 || protocol.ValidateTopicName(fields[0]) != nil {
		return tp, 0, false
	}
	return protocol.TopicPartition{Topic: fields[0], Partition: int32(partition)}, protocol.Offset(position), true
}

// Format is the text of a checkpoint, in the order of the partitions. Kafka's order is that of a hash map, and
// it takes any.
func (o Offsets) Format() []byte {
	partitions := slices.SortedFunc(maps.Keys(o), comparePartitions)
	text := fmt.Appendf(make([]byte, 0, 16+32*len(o)), "0\n%d\n", len(o))
	for _, tp := range partitions {
		text = append(text, tp.Topic...)
		text = append(text, ' ')
		text = strconv.AppendInt(text, int64(tp.Partition), 10)
		text = append(text, ' ')
		text = strconv.AppendInt(text, int64(o[tp]), 10)
		text = append(text, '\n')
	}
	return text
}

// comparePartitions orders by topic, then by number.
func comparePartitions(a, b protocol.TopicPartition) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

// readCheckpoint reads a checkpoint; a missing one is empty. A damaged one is empty too, with an error that
// says how: the caller reports it and goes on without, as every offset in it can be found again or has a
// safe value. Other errors are the disk's, and mean that the directory has failed.
//
// It is a damaged file, and not a reason to stop: a broker that refuses to start over a hint would be worse than one
// that scans. How much each costs is said at the names.
func readCheckpoint(files vfs.FS, path string) (offsets Offsets, damage, err error) {
	text, err := readFile(files, path, checkpointMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Offsets{}, nil, nil
	case errors.Is(err, errTooLarge):
		return Offsets{}, err, nil
	case err != nil:
		return nil, nil, err
	}
	offsets, damage = ParseCheckpoint(string(text))
	if damage != nil {
		return Offsets{}, fmt.Errorf("%s: %w", path, damage), nil
	}
	return offsets, nil, nil
}
