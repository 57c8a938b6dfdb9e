package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// commitTellsUnknownGroup is the first version of OffsetCommit whose clients know GROUP_ID_NOT_FOUND here.
const (
	commitTellsUnknownGroup    = 9
	txnCommitTellsUnknownGroup = 6
)

// OffsetCommit commits offsets, all that are valid in one batch. Topics go by name; ids, where they are
// known, are kept with the offset. An error is that of all partitions.
func (m *Machine) OffsetCommit(now shard.Now, request *kmsg.OffsetCommitRequest) (*kmsg.OffsetCommitResponse, shard.Decision, error) {
	who := committer{memberID: request.MemberID, instanceID: request.InstanceID, generation: request.Generation}
	g := m.groups[request.Group]
	if code := checkCommit(g, who, request.Version >= commitTellsUnknownGroup); code != protocol.None {
		return nil, shard.Decision{}, code
	}
	m.commitKeepsAlive(now, g, request.MemberID)
	template := committed{commitTime: now.Latest, expireTime: noExpiry}
	if request.RetentionTimeMillis != noRetention {
		template.expireTime = now.Latest + request.RetentionTimeMillis
	}
	response := &kmsg.OffsetCommitResponse{}
	decision := shard.Decision{Refused: shard.Unharmed}
	for _, topic := range request.Topics {
		answer := kmsg.OffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, p := range topic.Partitions {
			code := m.commit(&decision, request.Group, topic.Topic, topic.TopicID, template, offsetRequest{p.Partition, p.Offset, p.LeaderEpoch, p.Metadata})
			answer.Partitions = append(answer.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
		}
		response.Topics = append(response.Topics, answer)
	}
	return response, decision, nil
}

// TxnOffsetCommit commits offsets in a transaction: they count when its marker says so. That the producer may
// do so has been checked.
func (m *Machine) TxnOffsetCommit(now shard.Now, request *kmsg.TxnOffsetCommitRequest) (*kmsg.TxnOffsetCommitResponse, shard.Decision, error) {
	who := committer{memberID: request.MemberID, instanceID: request.InstanceID, generation: request.Generation, transactional: true}
	if code := checkCommit(m.groups[request.Group], who, request.Version >= txnCommitTellsUnknownGroup); code != protocol.None {
		return nil, shard.Decision{}, code
	}
	template := committed{commitTime: now.Latest, expireTime: noExpiry}
	response := &kmsg.TxnOffsetCommitResponse{}
	decision := shard.Decision{
		Refused:  shard.Unharmed,
		Producer: &shard.Producer{ID: protocol.ProducerID(request.ProducerID), Epoch: protocol.ProducerEpoch(request.ProducerEpoch)},
	}
	for _, topic := range request.Topics {
		answer := kmsg.TxnOffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		for _, p := range topic.Partitions {
			code := m.commit(&decision, request.Group, topic.Topic, topic.TopicID, template, offsetRequest{p.Partition, p.Offset, p.LeaderEpoch, p.Metadata})
			answer.Partitions = append(answer.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
		}
		response.Topics = append(response.Topics, answer)
	}
	return response, decision, nil
}

// checkCommit says why nothing can be committed. A group that is not there is made, if the client does not
// claim to be a member.
//
// A generation says that the client thinks it is a member of a group that is not there: it must not bring it to
// life, or a consumer that was away for too long would commit into a group of its own.
func checkCommit(g *group, who committer, tellsUnknown bool) protocol.Code {
	switch {
	case g != nil:
		return g.kind().checkCommit(who)
	case who.generation < 0:
		return protocol.None
	case tellsUnknown:
		return protocol.GroupIDNotFound
	}
	return protocol.IllegalGeneration
}

// commitKeepsAlive counts a commit as a heartbeat.
func (m *Machine) commitKeepsAlive(now shard.Now, g *group, memberID string) {
	m.startCheck(now)
	if g == nil || g.classic == nil || g.classic.state != stable && g.classic.state != preparingRebalance {
		return
	}
	if mb := g.classic.byID[memberID]; mb != nil {
		m.keepAlive(now, g.classic, mb, mb.sessionTimeout)
	}
}

// offsetRequest is one partition of a commit.
type offsetRequest struct {
	partition   int32
	offset      int64
	leaderEpoch int32
	metadata    *string
}

// commit adds the record of one offset to a decision, or says why not.
func (m *Machine) commit(d *shard.Decision, group, topic string, topicID [16]byte, c committed, r offsetRequest) protocol.Code {
	if len(topic) > protocol.TopicNameMax {
		return protocol.UnknownTopicOrPartition
	}
	if r.metadata != nil {
		if javaLength(*r.metadata) > m.config().MaxMetadata || len(*r.metadata) > textMax {
			return protocol.OffsetMetadataTooLarge
		}
		c.metadata = *r.metadata
	}
	c.offset, c.leaderEpoch, c.topicID = r.offset, r.leaderEpoch, topicID
	d.Records = append(d.Records, offsetRecord(group, topicPartition{Topic: topic, Partition: r.partition}, c, m.config().TopicIDs))
	return protocol.None
}
