package kafka

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// coordinatorFormatter prints the records of __consumer_offsets as JSON, one behind the other: either
// committed offsets, or groups of the classic protocol. Records of other types are passed over.
//
//	{"key":{"type":1,"data":{"group":"g","topic":"t","partition":0}},
//	 "value":{"version":3,"data":{"offset":7,"leaderEpoch":-1,"metadata":"","commitTimestamp":1700000000000}}}
//
// without any line break between records. Fields stand in the order of the schema and are those of the value's
// own version: tools compare the text.
type coordinatorFormatter struct{ offsets bool }

// The types of keys of __consumer_offsets that are printed.
const (
	legacyOffsetKey  = 0
	offsetKey        = 1
	groupMetadataKey = 2
)

func (f coordinatorFormatter) write(w *bufio.Writer, r *kgo.Record) error {
	if len(r.Key) < 2 {
		return nil
	}
	kind := int16(binary.BigEndian.Uint16(r.Key))
	var key, value []byte
	var err error
	switch {
	case f.offsets && (kind == legacyOffsetKey || kind == offsetKey):
		key, value, err = offsetRecord(r.Key, r.Value)
	case !f.offsets && kind == groupMetadataKey:
		key, value, err = groupRecord(r.Key, r.Value)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("Could not read record at offset %d due to: %w", r.Offset, err)
	}
	_, err = fmt.Fprintf(w, `{"key":{"type":%d,"data":%s},"value":%s}`, kind, key, value)
	return err
}

// orderedJSON writes fields in the order of Kafka's schema.
func orderedJSON(fields ...any) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i < len(fields); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		value, _ := json.Marshal(fields[i+1])
		fmt.Fprintf(&b, "%q:%s", fields[i], value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// versioned is a value of a version with its fields, and null where there is no value.
func versioned(version int16, data []byte) []byte {
	return fmt.Appendf(nil, `{"version":%d,"data":%s}`, version, data)
}

func offsetRecord(rawKey, rawValue []byte) (key, value []byte, err error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(rawKey); err != nil {
		return nil, nil, err
	}
	key = orderedJSON("group", k.Group, "topic", k.Topic, "partition", k.Partition)
	if rawValue == nil {
		return key, []byte("null"), nil
	}
	var v kmsg.OffsetCommitValue
	if err := v.ReadFrom(rawValue); err != nil {
		return nil, nil, err
	}
	fields := []any{"offset", v.Offset}
	if v.Version >= 3 {
		fields = append(fields, "leaderEpoch", v.LeaderEpoch)
	}
	fields = append(fields, "metadata", v.Metadata, "commitTimestamp", v.CommitTimestamp)
	if v.Version == 1 {
		fields = append(fields, "expireTimestamp", v.ExpireTimestamp)
	}
	if v.Version >= 4 {
		fields = append(fields, "topicId", admin.TopicID(v.TopicID))
	}
	return key, versioned(v.Version, orderedJSON(fields...)), nil
}

func groupRecord(rawKey, rawValue []byte) (key, value []byte, err error) {
	return groupRecordWith(rawKey, rawValue, func(_ *kmsg.GroupMetadataValue, version int16, m *kmsg.GroupMetadataValueMember) json.RawMessage {
		return groupMember(version, m)
	})
}

// memberWriter writes a member of a group.
type memberWriter func(group *kmsg.GroupMetadataValue, version int16, m *kmsg.GroupMetadataValueMember) json.RawMessage

// groupRecordWith writes a group with its members in some form.
func groupRecordWith(rawKey, rawValue []byte, member memberWriter) (key, value []byte, err error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(rawKey); err != nil {
		return nil, nil, err
	}
	key = orderedJSON("group", k.Group)
	if rawValue == nil {
		return key, []byte("null"), nil
	}
	var v kmsg.GroupMetadataValue
	if err := v.ReadFrom(rawValue); err != nil {
		return nil, nil, err
	}
	fields := []any{"protocolType", v.ProtocolType, "generation", v.Generation, "protocol", v.Protocol, "leader", v.Leader}
	if v.Version >= 2 {
		fields = append(fields, "currentStateTimestamp", v.CurrentStateTimestamp)
	}
	members := make([]json.RawMessage, 0, len(v.Members))
	for i := range v.Members {
		members = append(members, member(&v, v.Version, &v.Members[i]))
	}
	return key, versioned(v.Version, orderedJSON(append(fields, "members", members)...)), nil
}

func groupMember(version int16, m *kmsg.GroupMetadataValueMember) json.RawMessage {
	return memberJSON(version, m, m.Subscription, m.Assignment)
}

// memberJSON writes a member with its subscription and assignment as bytes, or as what they say.
func memberJSON(version int16, m *kmsg.GroupMetadataValueMember, subscription, assignment any) json.RawMessage {
	fields := []any{"memberId", m.MemberID}
	if version >= 3 {
		fields = append(fields, "groupInstanceId", m.InstanceID)
	}
	fields = append(fields, "clientId", m.ClientID, "clientHost", m.ClientHost)
	if version >= 1 {
		fields = append(fields, "rebalanceTimeout", m.RebalanceTimeoutMillis)
	}
	return orderedJSON(append(fields, "sessionTimeout", m.SessionTimeoutMillis, "subscription", subscription, "assignment", assignment)...)
}
