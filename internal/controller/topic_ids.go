package controller

import (
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// unnamedTopic is a topic without an id: one of Kafka before 2.8, or made by a tool of that time.
type unnamedTopic struct {
	at      int // where it stands among those that were read
	version int32
	topic   znode.Topic
}

// giveIDs gives topics the ids that they lack, as Kafka's controllers do since 2.8 (KIP-516). One that somebody
// changes at the same time gets its id when it is read again.
func (t *term) giveIDs(topics []metadata.PutTopic, unnamed []unnamedTopic) error {
	if len(unnamed) == 0 {
		return nil
	}
	ops := make([]coordination.Op, len(unnamed))
	for i := range unnamed {
		u := &unnamed[i]
		u.topic.ID = P.NewTopicID()
		ops[i] = coordination.Set(znode.TopicPath(topics[u.at].Name), znode.EncodeTopic(u.topic), u.version)
	}
	results, err := coordination.BatchFenced(t.ctx, t.session, t.guard, ops)
	for i, u := range unnamed {
		topic := &topics[u.at]
		if results[i].Err != nil {
			t.look.topic[topic.Name] = true
			continue
		}
		topic.ID = u.topic.ID
		t.controller.options.Logger.Info("controller: a topic gets an id", "topic", topic.Name, "topic-id", topic.ID)
	}
	return err
}
