package group

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// The keys and values of __consumer_offsets that are read and written here. package group's comment draws them;
// this is their history. Values were only ever extended, and a reader must take what any Kafka has left behind:
//
//	offset   0  offset, metadata, commit time
//	         1  + expire time: retention was fixed at the commit, until KIP-211
//	         2  - expire time: retention counts from when the group is empty
//	         3  + leader epoch (KIP-320)
//	         4  compact strings and tags, the topic's id among them
//	group    0  protocol, generation, leader, members
//	         1  + rebalance timeout of each member (KIP-62)
//	         2  + state time (KIP-211)
//	         3  + instance id of each member (KIP-345)
//	         4  compact strings and tags
//
// Keys of type 0 and 1 differ in nothing but the number. A commit writes type 1; a record of type 0 is one of a
// Kafka before 0.9.

// The versions of values that are written.
//
// They are the oldest that lose nothing, not the newest: a broker that takes the log over again, and tools that
// read the topic themselves, must understand them.
const (
	groupValueVersion          = 3
	offsetValueVersion         = 3
	offsetValueVersionExpiring = 1
	offsetValueVersionTopicID  = 4
	// valueVersionMax is the newest version of both values that can be read.
	valueVersionMax = 4
)

// keyType is the number that a key begins with.
type keyType int16

// The keys that are read here, and those that tell that a group of another kind exists.
const (
	keyOffsetLegacy keyType = 0
	keyOffset       keyType = 1
	keyGroup        keyType = 2
	keyForeignFirst keyType = 3
	keyConsumer     keyType = 3
	keyShare        keyType = 11
	keyStreams      keyType = 17
	keyForeignLast  keyType = 23
)

// keyHeader is the size of a key's type.
const keyHeader = 2

// What stands in a field that has no value.
const (
	noExpiry          int64 = -1
	noStateTime       int64 = -1
	noRetention       int64 = -1
	noCommittedOffset int64 = -1
	noLeaderEpoch     int32 = -1
	noGeneration      int32 = -1
)

// typeOf reads the type of a key.
func typeOf(key []byte) (keyType, error) {
	if len(key) < keyHeader {
		return 0, fmt.Errorf("key of %d bytes", len(key))
	}
	return keyType(binary.BigEndian.Uint16(key)), nil
}

// groupOf reads the group id, which all keys have in front.
func groupOf(key []byte) (string, error) {
	rest := key[keyHeader:]
	if len(rest) < 2 {
		return "", fmt.Errorf("key of type %d has %d bytes", binary.BigEndian.Uint16(key), len(key))
	}
	size := int(int16(binary.BigEndian.Uint16(rest)))
	if size < 0 || size > len(rest)-2 {
		return "", fmt.Errorf("key of type %d: group id of %d bytes in %d", binary.BigEndian.Uint16(key), size, len(rest))
	}
	return string(rest[2 : 2+size]), nil
}

// topicPartition is what an offset is committed for, within a group.
type topicPartition = protocol.TopicPartition

// offsetKeyOf reads a key of type 0 or 1.
func offsetKeyOf(key []byte) (group string, tp topicPartition, err error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(key); err != nil {
		return "", tp, fmt.Errorf("key of an offset: %w", err)
	}
	return k.Group, topicPartition{Topic: k.Topic, Partition: k.Partition}, nil
}

// committedOf reads the value of an offset's record. Fields that its version lacks are unknown (-1), not 0.
func committedOf(value []byte, at protocol.Offset) (committed, error) {
	if err := checkVersion(value); err != nil {
		return committed{}, err
	}
	v := kmsg.NewOffsetCommitValue()
	v.LeaderEpoch, v.ExpireTimestamp = noLeaderEpoch, noExpiry
	if err := v.ReadFrom(value); err != nil {
		return committed{}, fmt.Errorf("value of an offset, version %d: %w", v.Version, err)
	}
	c := committed{
		offset: v.Offset, leaderEpoch: v.LeaderEpoch, metadata: v.Metadata,
		commitTime: v.CommitTimestamp, expireTime: v.ExpireTimestamp, topicID: v.TopicID, at: at,
	}
	if v.Version < 3 {
		c.leaderEpoch = noLeaderEpoch
	}
	if v.Version != 1 {
		c.expireTime = noExpiry
	}
	return c, nil
}

// groupValueOf reads the value of a classic group's record.
func groupValueOf(value []byte) (*kmsg.GroupMetadataValue, error) {
	if err := checkVersion(value); err != nil {
		return nil, err
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, fmt.Errorf("value of a group, version %d: %w", v.Version, err)
	}
	return &v, nil
}

func checkVersion(value []byte) error {
	if len(value) < 2 {
		return fmt.Errorf("value of %d bytes", len(value))
	}
	if version := int16(binary.BigEndian.Uint16(value)); version < 0 || version > valueVersionMax {
		return fmt.Errorf("value of version %d, known are 0 to %d", version, valueVersionMax)
	}
	return nil
}

// offsetRecord is the record of a committed offset.
func offsetRecord(group string, tp topicPartition, c committed, topicIDs bool) shard.Record {
	v := kmsg.OffsetCommitValue{
		Version: offsetValueVersion, Offset: c.offset, LeaderEpoch: c.leaderEpoch, Metadata: c.metadata,
		CommitTimestamp: c.commitTime, ExpireTimestamp: c.expireTime, TopicID: c.topicID,
	}
	switch {
	case c.expireTime != noExpiry:
		v.Version = offsetValueVersionExpiring
	case topicIDs && c.topicID != [16]byte{}:
		v.Version = offsetValueVersionTopicID
	}
	return shard.Record{Key: offsetKeyBytes(group, tp), Value: v.AppendTo(nil)}
}

// offsetTombstone forgets an offset.
func offsetTombstone(group string, tp topicPartition) shard.Record {
	return shard.Record{Key: offsetKeyBytes(group, tp)}
}

func offsetKeyBytes(group string, tp topicPartition) []byte {
	k := kmsg.OffsetCommitKey{Version: int16(keyOffset), Group: group, Topic: tp.Topic, Partition: tp.Partition}
	return k.AppendTo(nil)
}

// groupKeyBytes is the key of a classic group.
func groupKeyBytes(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: int16(keyGroup), Group: group}
	return k.AppendTo(nil)
}

// groupTombstone forgets a classic group.
func groupTombstone(group string) shard.Record { return shard.Record{Key: groupKeyBytes(group)} }
