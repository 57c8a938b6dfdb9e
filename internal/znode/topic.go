package znode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Topic is the content of /brokers/topics/T: a topic exists once this znode does. Versions 1 and 2 lack
// the id, and version 1 the reassignment; a 3.9 broker always writes version 3, without an id where the
// inter-broker protocol is older than 2.8:
//
//	{"partitions":{"0":[2,3,1],"1":[3,1,2]},"topic_id":"BA2QJN3rS-6739pBKUovXw",
//	 "adding_replicas":{},"removing_replicas":{},"version":3}
type Topic struct {
	// ID is zero where the topic has none.
	ID P.TopicID
	// Replicas is the assignment, indexed by the partition's number; nil where the znode leaves one out.
	Replicas [][]P.BrokerID
	// Adding and Removing are those of the partitions that are being reassigned.
	Adding, Removing map[int32][]P.BrokerID
}

// TopicPath is the znode of one topic.
func TopicPath(topic string) string { return TopicsPath + "/" + topic }

// Assign gives one partition, which has replicas already, other ones.
func (t *Topic) Assign(partition int32, replicas, adding, removing []P.BrokerID) {
	t.Replicas[partition] = replicas
	for _, moves := range []struct {
		of  *map[int32][]P.BrokerID
		ids []P.BrokerID
	}{{&t.Adding, adding}, {&t.Removing, removing}} {
		if *moves.of == nil {
			*moves.of = map[int32][]P.BrokerID{}
		}
		if delete(*moves.of, partition); len(moves.ids) > 0 {
			(*moves.of)[partition] = moves.ids
		}
	}
}

// EncodeTopic writes the znode.
func EncodeTopic(t Topic) []byte {
	dst := make([]byte, 0, 96+16*len(t.Replicas))
	dst = append(dst, `{"partitions":{`...)
	for i, replicas := range t.Replicas {
		if replicas != nil {
			dst = appendReplicas(dst, int32(i), replicas)
		}
	}
	dst = append(dst, '}')
	if !t.ID.IsZero() {
		dst = appendText(append(dst, `,"topic_id":`...), t.ID.String())
	}
	dst = appendMoves(append(dst, `,"adding_replicas":{`...), t.Adding)
	dst = appendMoves(append(dst, `},"removing_replicas":{`...), t.Removing)
	return append(dst, `},"version":3}`...)
}

func appendMoves(dst []byte, moves map[int32][]P.BrokerID) []byte {
	for _, p := range slices.Sorted(maps.Keys(moves)) {
		dst = appendReplicas(dst, p, moves[p])
	}
	return dst
}

func appendReplicas(dst []byte, partition int32, replicas []P.BrokerID) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(append(dst, '"'), int64(partition), 10)
	return appendIDs(append(dst, `":`...), replicas)
}

// maxGap bounds how many partitions a topic's znode may leave out, so that one large number in a damaged
// one does not allocate for all the numbers below it. Kafka leaves out none.
const maxGap = 1000

// DecodeTopic reads the znode.
func DecodeTopic(topic string, data []byte) (Topic, error) {
	var v struct {
		Partitions map[int32][]P.BrokerID `json:"partitions"`
		ID         string                 `json:"topic_id"`
		Adding     map[int32][]P.BrokerID `json:"adding_replicas"`
		Removing   map[int32][]P.BrokerID `json:"removing_replicas"`
	}
	if err := decode(TopicPath(topic), data, &v); err != nil {
		return Topic{}, err
	}
	t := Topic{Adding: v.Adding, Removing: v.Removing}
	if v.ID != "" {
		id, err := P.ParseTopicID(v.ID)
		if err != nil {
			return Topic{}, fmt.Errorf("%s: %w", TopicPath(topic), err)
		}
		t.ID = id
	}
	last := int32(-1)
	for p := range v.Partitions {
		if p < 0 || p >= metadata.MaxPartitions {
			return Topic{}, fmt.Errorf("%s: partition %d is out of range", TopicPath(topic), p)
		}
		last = max(last, p)
	}
	if int(last) > len(v.Partitions)+maxGap {
		return Topic{}, fmt.Errorf("%s: partition %d stands among %d", TopicPath(topic), last, len(v.Partitions))
	}
	t.Replicas = make([][]P.BrokerID, last+1)
	for p, replicas := range v.Partitions {
		t.Replicas[p] = replicas
	}
	return t, nil
}
