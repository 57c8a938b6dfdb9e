package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// OffsetFetch reads the committed offsets of one group: of the given partitions, or of all where the request
// names none at all (a nil list, not an empty one). A group that does not exist has no offsets. With
// requireStable, partitions for which a transaction is open answer UNSTABLE_OFFSET_COMMIT.
func (m *Machine) OffsetFetch(request *kmsg.OffsetFetchRequestGroup, requireStable bool) kmsg.OffsetFetchResponseGroup {
	response := kmsg.OffsetFetchResponseGroup{Group: request.Group}
	var o offsets
	if g := m.groups[request.Group]; g != nil {
		o = g.offsets
	}
	topics := request.Topics
	if topics == nil {
		topics = o.topicRequests()
	}
	for _, topic := range topics {
		answer := kmsg.OffsetFetchResponseGroupTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, partition := range topic.Partitions {
			tp := topicPartition{Topic: topic.Topic, Partition: partition}
			answer.Partitions = append(answer.Partitions, o.answer(tp, topic.TopicID, requireStable))
		}
		response.Topics = append(response.Topics, answer)
	}
	return response
}

// topicRequests asks for everything.
func (o *offsets) topicRequests() []kmsg.OffsetFetchRequestGroupTopic {
	var all []kmsg.OffsetFetchRequestGroupTopic
	for _, topic := range o.topics() {
		all = append(all, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: o.partitions(topic)})
	}
	return all
}

// answer is the offset of one partition. One that was committed for an earlier topic of the same name is
// none.
//
// No offset is -1 without an error, as in every version of Kafka: consumers then go by auto.offset.reset.
func (o *offsets) answer(tp topicPartition, topicID [16]byte, requireStable bool) kmsg.OffsetFetchResponseGroupTopicPartition {
	metadata := ""
	answer := kmsg.OffsetFetchResponseGroupTopicPartition{
		Partition: tp.Partition, Offset: noCommittedOffset, LeaderEpoch: noLeaderEpoch, Metadata: &metadata,
	}
	if requireStable && len(o.unstable[tp]) > 0 {
		answer.ErrorCode = int16(protocol.UnstableOffsetCommit)
		return answer
	}
	c, ok := o.get(tp)
	none := [16]byte{}
	if !ok || c.topicID != none && topicID != none && c.topicID != topicID {
		return answer
	}
	answer.Offset, answer.LeaderEpoch, metadata = c.offset, c.leaderEpoch, c.metadata
	return answer
}
