package protocol

import (
	"fmt"
	"strings"
)

// TopicNameMax is the longest name that Kafka allows, in bytes: a directory name also holds the partition
// and a suffix.
const TopicNameMax = 249

// The internal topics, which clients may read but not write.
const (
	GroupMetadataTopic    = "__consumer_offsets"
	TransactionStateTopic = "__transaction_state"
	ShareGroupStateTopic  = "__share_group_state"
	ClusterMetadataTopic  = "__cluster_metadata"
)

// ValidateTopicName reports, with Kafka's words and INVALID_TOPIC_EXCEPTION, why name cannot be a topic.
func ValidateTopicName(name string) error {
	switch {
	case name == "":
		return Errorf(InvalidTopic, "Topic name is invalid: the empty string is not allowed")
	case name == "." || name == "..":
		return Errorf(InvalidTopic, "Topic name is invalid: '%s' is not allowed", name)
	case len(name) > TopicNameMax:
		return Errorf(InvalidTopic, "Topic name is invalid: the length of '%s' is longer than the max allowed length %d", name, TopicNameMax)
	}
	for i := range len(name) {
		if !topicByte(name[i]) {
			return Errorf(InvalidTopic, "Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return nil
}

func topicByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// TopicNamesCollide reports whether two different names give the same metric name, since Kafka's metrics
// write '.' as '_'; it refuses to create the second.
func TopicNamesCollide(a, b string) bool {
	return a != b && strings.ReplaceAll(a, ".", "_") == strings.ReplaceAll(b, ".", "_")
}

// IsInternalTopic reports whether name is one of the topics that brokers write themselves.
func IsInternalTopic(name string) bool {
	return name == GroupMetadataTopic || name == TransactionStateTopic || name == ShareGroupStateTopic
}

// PartitionOfDir reads a partition's directory name, which ends in a dash and the partition's number.
func PartitionOfDir(dir string) (TopicPartition, error) {
	i := strings.LastIndexByte(dir, '-')
	var tp TopicPartition
	if i <= 0 {
		return tp, fmt.Errorf("directory %q is not named topic-partition", dir)
	}
	tp.Topic = dir[:i]
	digits := dir[i+1:]
	if digits == "" || len(digits) > 10 || ValidateTopicName(tp.Topic) != nil {
		return tp, fmt.Errorf("directory %q is not named topic-partition", dir)
	}
	var n int64
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return tp, fmt.Errorf("directory %q is not named topic-partition", dir)
		}
		n = n*10 + int64(c-'0')
	}
	if n > 1<<31-1 {
		return tp, fmt.Errorf("directory %q: partition %d is out of range", dir, n)
	}
	tp.Partition = int32(n)
	return tp, nil
}
