package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// OffsetDelete forgets single offsets, but not of topics that members subscribe to. An error is that of the
// request.
func (m *Machine) OffsetDelete(request *kmsg.OffsetDeleteRequest) (*kmsg.OffsetDeleteResponse, shard.Decision, error) {
	g := m.groups[request.Group]
	if g == nil {
		return nil, shard.Decision{}, protocol.GroupIDNotFound
	}
	if code := g.kind().checkDeleteOffsets(); code != protocol.None {
		return nil, shard.Decision{}, code
	}
	response := &kmsg.OffsetDeleteResponse{}
	decision := shard.Decision{Split: true, Refused: shard.Unharmed}
	for _, topic := range request.Topics {
		answer := kmsg.OffsetDeleteResponseTopic{Topic: topic.Topic}
		code := protocol.None
		if g.kind().subscribedTo(topic.Topic) {
			code = protocol.GroupSubscribedToTopic
		}
		for _, p := range topic.Partitions {
			answer.Partitions = append(answer.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
			tp := topicPartition{Topic: topic.Topic, Partition: p.Partition}
			if code == protocol.None && g.offsets.has(tp) {
				decision.Records = append(decision.Records, offsetTombstone(g.id, tp))
			}
		}
		response.Topics = append(response.Topics, answer)
	}
	return response, decision, nil
}

// has reports whether there is an offset, committed or in an open transaction.
func (o *offsets) has(tp topicPartition) bool {
	_, ok := o.get(tp)
	return ok || len(o.unstable[tp]) > 0
}

// ForgetTopics forgets the offsets of topics that are gone. The id is that of the topic for which an offset
// was committed, zero where it is not known.
//
// It runs when a topic is deleted: otherwise a new topic of the same name would be read from the old one's
// offsets.
func (m *Machine) ForgetTopics(gone func(topic string, id protocol.TopicID) bool) shard.Decision {
	decision := shard.Decision{Split: true, Refused: shard.Unharmed}
	for _, id := range m.ids() {
		g := m.groups[id]
		for _, tp := range g.offsets.all() {
			c, _ := g.offsets.get(tp)
			if gone(tp.Topic, c.topicID) {
				decision.Records = append(decision.Records, offsetTombstone(id, tp))
			}
		}
	}
	return decision
}
