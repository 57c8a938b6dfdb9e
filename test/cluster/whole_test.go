package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// TestAgree compares what a broker shows with the tree, where the broker has not heard of the newest state.
func TestAgree(t *testing.T) {
	const topic = "orders"
	present := znode.State{Leader: 2, LeaderEpoch: 7, ISR: []protocol.BrokerID{2, 0, 1}}
	for name, change := range map[string]func(*znode.State){
		"":                        func(*znode.State) {},
		"has leader 0 in epoch 7": func(s *znode.State) { s.Leader = 0 },
		"has leader 2 in epoch 8": func(s *znode.State) { s.LeaderEpoch++ },
		"and [2 0]":               func(s *znode.State) { s.ISR = s.ISR[:2] },
	} {
		shown := kmsg.NewMetadataResponseTopicPartition()
		shown.Leader, shown.LeaderEpoch, shown.ISR = 2, 7, []int32{0, 1, 2}
		answer := &kmsg.MetadataResponse{Topics: []kmsg.MetadataResponseTopic{{Topic: new(topic), Partitions: []kmsg.MetadataResponseTopicPartition{shown}}}}
		state := present
		change(&state)
		err := agree(answer, topic, []znode.State{state})
		if (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("the tree is %+v: got %v, wanted %q", state, err, name)
		}
	}
}
