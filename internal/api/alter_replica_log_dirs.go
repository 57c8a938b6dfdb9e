package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// alterReplicaLogDirs starts to move partitions to other directories of this broker (versions 0 to 2). It
// answers when the moves have begun; DescribeLogDirs shows how far the copies are.
//
// Every broker answers for itself: the request goes to the broker whose directories they are, and is never sent
// on.
func (a *API) alterReplicaLogDirs(_ context.Context, r *Request, q *kmsg.AlterReplicaLogDirsRequest) *kmsg.AlterReplicaLogDirsResponse {
	response := respondTo(r, kmsg.NewPtrAlterReplicaLogDirsResponse())
	places := map[string]int{}
	for _, dir := range q.Dirs {
		for _, t := range dir.Topics {
			at, ok := places[t.Topic]
			if !ok {
				at = len(response.Topics)
				places[t.Topic] = at
				topic := kmsg.NewAlterReplicaLogDirsResponseTopic()
				topic.Topic = t.Topic
				response.Topics = append(response.Topics, topic)
			}
			for _, number := range t.Partitions {
				p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				p.Partition = number
				err := a.Dirs.Move(protocol.TopicPartition{Topic: t.Topic, Partition: number}, dir.Dir)
				p.ErrorCode = int16(protocol.CodeOf(err))
				response.Topics[at].Partitions = append(response.Topics[at].Partitions, p)
			}
		}
	}
	return response
}
