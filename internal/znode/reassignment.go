package znode

import (
	"encoding/json"
	"strconv"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ReassignPartitionsPath holds the reassignments that an old tool has asked for by creating it. The
// controller takes out what has been carried out, and removes it with the last one:
//
//	{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}
const ReassignPartitionsPath = "/admin/reassign_partitions"

// PreferredElectionPath holds the partitions whose preferred replicas an old tool wants to lead. The
// controller removes it when it has tried:
//
//	{"version":1,"partitions":[{"topic":"orders","partition":0}]}
const PreferredElectionPath = "/admin/preferred_replica_election"

// IsrChangesPath is the parent of sequential znodes by which leaders of Kafka older than 2.7 tell the
// controller that they have written states themselves:
//
//	/isr_change_notification/isr_change_0000000000
//	{"version":1,"partitions":[{"topic":"orders","partition":0}]}
const IsrChangesPath = "/isr_change_notification"

// Reassignment is one partition of [ReassignPartitionsPath].
type Reassignment struct {
	P.TopicPartition
	// Replicas is the assignment that is wanted.
	Replicas []P.BrokerID
}

// partitionsJSON is what the three znodes hold.
type partitionsJSON struct {
	Partitions []struct {
		Topic     string       `json:"topic"`
		Partition int32        `json:"partition"`
		Replicas  []P.BrokerID `json:"replicas"`
	} `json:"partitions"`
}

// DecodeReassignments reads [ReassignPartitionsPath].
func DecodeReassignments(data []byte) ([]Reassignment, error) {
	var v partitionsJSON
	if err := decode(ReassignPartitionsPath, data, &v); err != nil {
		return nil, err
	}
	all := make([]Reassignment, len(v.Partitions))
	for i, p := range v.Partitions {
		all[i] = Reassignment{P.TopicPartition{Topic: p.Topic, Partition: p.Partition}, p.Replicas}
	}
	return all, nil
}

// EncodeReassignments writes [ReassignPartitionsPath].
func EncodeReassignments(all []Reassignment) []byte {
	dst := []byte(`{"version":1,"partitions":[`)
	for i, r := range all {
		dst = appendPartition(dst, i, r.TopicPartition)
		dst = append(appendIDs(append(dst, `,"replicas":`...), r.Replicas), '}')
	}
	return append(dst, `]}`...)
}

// DecodePartitions reads [PreferredElectionPath] and the children of [IsrChangesPath].
func DecodePartitions(path string, data []byte) ([]P.TopicPartition, error) {
	var v partitionsJSON
	if err := decode(path, data, &v); err != nil {
		return nil, err
	}
	all := make([]P.TopicPartition, len(v.Partitions))
	for i, p := range v.Partitions {
		all[i] = P.TopicPartition{Topic: p.Topic, Partition: p.Partition}
	}
	return all, nil
}

// EncodePartitions writes what [DecodePartitions] reads.
func EncodePartitions(all []P.TopicPartition) []byte {
	dst := []byte(`{"version":1,"partitions":[`)
	for i, tp := range all {
		dst = append(appendPartition(dst, i, tp), '}')
	}
	return append(dst, `]}`...)
}

func appendPartition(dst []byte, i int, tp P.TopicPartition) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = appendText(append(dst, `{"topic":`...), tp.Topic)
	return strconv.AppendInt(append(dst, `,"partition":`...), int64(tp.Partition), 10)
}

// LogDirEventsPath is the parent of sequential znodes by which brokers tell that a log directory of theirs
// has failed. The controller then asks the broker which partitions it cannot serve any more:
//
//	/log_dir_event_notification/log_dir_event_0000000000
//	{"version":1,"broker":1,"event":1}
const LogDirEventsPath = "/log_dir_event_notification"

// LogDirEventPrefix is what the names of those znodes begin with.
const LogDirEventPrefix = LogDirEventsPath + "/log_dir_event_"

// EncodeLogDirEvent writes the failure of a log directory.
func EncodeLogDirEvent(broker P.BrokerID) []byte {
	return append(strconv.AppendInt([]byte(`{"version":1,"broker":`), int64(broker), 10), `,"event":1}`...)
}

// DecodeLogDirEvent reads which broker has a log directory that failed.
func DecodeLogDirEvent(data []byte) (P.BrokerID, error) {
	v := struct {
		Broker *P.BrokerID `json:"broker"`
	}{}
	if err := decode(LogDirEventsPath, data, &v); err != nil {
		return P.NoBroker, err
	}
	if v.Broker == nil {
		return P.NoBroker, decode(LogDirEventsPath, nil, &json.RawMessage{})
	}
	return *v.Broker, nil
}
