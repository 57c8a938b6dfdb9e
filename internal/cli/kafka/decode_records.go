package kafka

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What kafka-dump-log prints of records with --offsets-decoder. Unlike the console consumer's formatters it
// writes types and versions as text, spells out what members subscribe to and are assigned, and prints <DELETE>
// for a tombstone.

// typedKey is a key in the form of kafka-dump-log: its type is a text there.
func typedKey(kind int16, data []byte) *string {
	text := fmt.Sprintf(`{"type":"%d","data":%s}`, kind, data)
	return &text
}

// typedValue is a value in the form of kafka-dump-log; the absence of one deletes what the key names.
func typedValue(raw []byte, version int16, data []byte) *string {
	text := "<DELETE>"
	if raw != nil {
		text = fmt.Sprintf(`{"version":"%d","data":%s}`, version, data)
	}
	return &text
}

// versionOf is the version that a value of a coordinator begins with.
func versionOf(raw []byte) int16 {
	if len(raw) < 2 {
		return 0
	}
	return int16(binary.BigEndian.Uint16(raw))
}

// decodeOffsets makes text of a record of __consumer_offsets.
func decodeOffsets(key, value []byte) (k, v *string) {
	kind := versionOf(key)
	var keyData, valueData []byte
	var err error
	switch {
	case len(key) < 2:
		return complaint("the record has no key")
	case kind == legacyOffsetKey || kind == offsetKey:
		keyData, valueData, err = offsetRecord(key, value)
	case kind == groupMetadataKey:
		keyData, valueData, err = groupRecordWith(key, value, spelledMember)
	default:
		return complaint(fmt.Sprintf("Unknown record type %d, skipping.", kind))
	}
	if err != nil {
		return complaint("Error, skipping. " + err.Error())
	}
	return typedKey(kind, keyData), typedValue(value, versionOf(value), innerData(valueData))
}

// complaint stands in for a key that cannot be read.
func complaint(text string) (k, v *string) { return &text, nil }

// innerData takes the fields out of a versioned value.
func innerData(value []byte) []byte {
	var v struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	return v.Data
}

// spelledMember writes a member with what its subscription and assignment say, where they are a consumer's.
func spelledMember(v *kmsg.GroupMetadataValue, version int16, m *kmsg.GroupMetadataValueMember) json.RawMessage {
	if v.ProtocolType != "consumer" {
		return groupMember(version, m)
	}
	return memberJSON(version, m, spelledSubscription(m.Subscription), spelledAssignment(m.Assignment))
}

// spelledPartitions are topics with their partitions.
func spelledPartitions(topic string, partitions []int32) json.RawMessage {
	return orderedJSON("topic", topic, "partitions", append([]int32{}, partitions...))
}

func spelledSubscription(raw []byte) any {
	var s kmsg.ConsumerMemberMetadata
	if s.ReadFrom(raw) != nil {
		return raw
	}
	fields := []any{"topics", append([]string{}, s.Topics...), "userData", s.UserData}
	if s.Version >= 1 {
		owned := []json.RawMessage{}
		for _, p := range s.OwnedPartitions {
			owned = append(owned, spelledPartitions(p.Topic, p.Partitions))
		}
		fields = append(fields, "ownedPartitions", owned)
	}
	if s.Version >= 2 {
		fields = append(fields, "generationId", s.Generation)
	}
	if s.Version >= 3 {
		fields = append(fields, "rackId", s.Rack)
	}
	return json.RawMessage(orderedJSON(fields...))
}

func spelledAssignment(raw []byte) any {
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(raw) != nil {
		return raw
	}
	assigned := []json.RawMessage{}
	for _, t := range a.Topics {
		assigned = append(assigned, spelledPartitions(t.Topic, t.Partitions))
	}
	return json.RawMessage(orderedJSON("assignedPartitions", assigned, "userData", a.UserData))
}

// decodeTransactions makes text of a record of __transaction_state.
func decodeTransactions(key, value []byte) (k, v *string) {
	var id kmsg.TxnMetadataKey
	if err := id.ReadFrom(key); err != nil {
		return complaint("Error, skipping. " + err.Error())
	}
	keyText := typedKey(id.Version, orderedJSON("transactionalId", id.TransactionalID))
	if value == nil {
		return keyText, typedValue(nil, 0, nil)
	}
	var t kmsg.TxnMetadataValue
	if err := t.ReadFrom(value); err != nil {
		return complaint("Error, skipping. " + err.Error())
	}
	var topics []json.RawMessage
	for _, topic := range t.Topics {
		topics = append(topics, orderedJSON("topic", topic.Topic, "partitionIds", topic.Partitions))
	}
	data := orderedJSON("producerId", t.ProducerID, "producerEpoch", t.ProducerEpoch, "transactionTimeoutMs", t.TimeoutMillis,
		"transactionStatus", t.State.String(), "transactionPartitions", topics, "transactionLastUpdateTimestampMs", t.LastUpdateTimestamp,
		"transactionStartTimestampMs", t.StartTimestamp)
	return keyText, typedValue(value, t.Version, data)
}
