package view

import (
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// epochDuringDelete is the leader epoch in StopReplica where the topic is being deleted, which does not
// raise it.
const epochDuringDelete P.LeaderEpoch = -2

// StopReplica carries out StopReplica: replicas of this broker stop, and where the controller says so their
// logs go. Versions 0 to 4; from 3 on each partition comes with its leader epoch, and one that is lower than
// that of the newest order is refused with FENCED_LEADER_EPOCH. A replica that is not known is no error, and
// what its log left on the disk goes as well.
//
// Deletion comes twice from Kafka's controllers, first to stop, then to erase, both with the epoch -2, so that
// no epoch can be compared there.
func (v *View) StopReplica(q *peer.StopReplica) *kmsg.StopReplicaResponse {
	v.changing.Lock()
	defer v.changing.Unlock()
	response := q.ResponseKind().(*kmsg.StopReplicaResponse)
	code := v.admit(P.BrokerID(q.ControllerID), P.ControllerEpoch(q.ControllerEpoch), P.BrokerEpoch(q.BrokerEpoch))
	if code != P.None {
		response.ErrorCode = int16(code)
		return response
	}
	var changes []metadata.ReplicaChange
	for _, s := range stopsOf(q) {
		p := kmsg.StopReplicaResponsePartition{Topic: s.Topic, Partition: s.Partition}
		known, there := v.hosted[s.TopicPartition]
		switch {
		case P.ValidateTopicName(s.Topic) != nil || s.Partition < 0:
			p.ErrorCode = int16(P.InvalidRequest)
		case there && s.epoch != epochDuringDelete && s.epoch != P.NoLeaderEpoch && s.epoch < known.epoch:
			p.ErrorCode = int16(P.FencedLeaderEpoch)
		case there || s.erase:
			role := metadata.Stop
			if s.erase {
				role = metadata.Delete
			}
			changes = append(changes, metadata.ReplicaChange{TopicPartition: s.TopicPartition, TopicID: known.topicID, Role: role})
		}
		response.Partitions = append(response.Partitions, p)
	}
	failed := v.erase(changes)
	for i := range response.Partitions {
		p := &response.Partitions[i]
		if err := failed[P.TopicPartition{Topic: p.Topic, Partition: p.Partition}]; err != nil && p.ErrorCode == 0 {
			p.ErrorCode = int16(P.CodeOf(err))
		}
	}
	return response
}

// erase carries orders out, and forgets the replicas whose logs are gone by that.
func (v *View) erase(replicas []metadata.ReplicaChange, changes ...metadata.Change) map[P.TopicPartition]error {
	failed := v.change(replicas, changes...)
	for _, r := range replicas {
		if r.Role == metadata.Delete && failed[r.TopicPartition] == nil {
			delete(v.hosted, r.TopicPartition)
		}
	}
	return failed
}

// stop is one partition of StopReplica.
type stop struct {
	P.TopicPartition
	epoch P.LeaderEpoch
	erase bool
}

// stopsOf takes the partitions out of a request: version 0 lists them flat, 1 and 2 by topic, 3 and later
// with an epoch and a flag each.
func stopsOf(q *peer.StopReplica) []stop {
	var stops []stop
	add := func(topic string, partition int32, epoch P.LeaderEpoch, erase bool) {
		stops = append(stops, stop{P.TopicPartition{Topic: topic, Partition: partition}, epoch, erase})
	}
	for _, topic := range q.Topics {
		switch {
		case q.Version == 0:
			add(topic.Topic, topic.Partition, P.NoLeaderEpoch, q.DeletePartitions)
		case q.Version < 3:
			for _, p := range topic.Partitions {
				add(topic.Topic, p, P.NoLeaderEpoch, q.DeletePartitions)
			}
		default:
			for _, p := range topic.PartitionStates {
				add(topic.Topic, p.Partition, P.LeaderEpoch(p.LeaderEpoch), p.Delete)
			}
		}
	}
	return stops
}
