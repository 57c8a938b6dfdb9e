package view

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaderAndISR carries out LeaderAndIsr: the controller says of partitions that this broker has a replica
// of who leads, in which epoch. Versions 0 to 7.
//
// An order is carried out only if its leader epoch is higher than that of the one before, and refused with
// STALE_CONTROLLER_EPOCH otherwise, as Kafka does, also where it is the same: whoever repeats an order
// learns that it has been heard. An order that failed may be repeated.
//
//	1  new partitions are marked            4  flexible
//	2  broker epoch, grouped by topic       5  topic ids (KIP-516), full or incremental
//	3  adding and removing replicas         6  recovery after an unclean election (KIP-704)
//	                                        7  KRaft controllers
func (v *View) LeaderAndISR(q *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	v.changing.Lock()
	defer v.changing.Unlock()
	response := q.ResponseKind().(*kmsg.LeaderAndISRResponse)
	code := v.admit(P.BrokerID(q.ControllerID), P.ControllerEpoch(q.ControllerEpoch), P.BrokerEpoch(q.BrokerEpoch))
	if code != P.None {
		response.ErrorCode = int16(code)
		return response
	}
	orders := ordersOf(q)
	answers := make([]P.Code, len(orders))
	var accepted []metadata.ReplicaChange
	var fresh []string // topics that this broker has no replica of yet
	seen := map[string]bool{}
	for i, o := range orders {
		if answers[i] = v.judge(o); answers[i] != P.None {
			v.heard(o)
			continue
		}
		accepted = append(accepted, o.change(v.options.Self))
		if _, known := v.known(o); !known && !seen[o.Topic] {
			seen[o.Topic] = true
			fresh = append(fresh, o.Topic)
		}
	}
	changes, err := v.readConfigs(fresh)
	if err != nil {
		v.options.Logger.Error("cannot read the configurations of new topics: not serving them", "error", err)
		response.ErrorCode = int16(P.UnknownServerError)
		return response
	}
	failed := v.change(accepted, changes...)
	for i, o := range orders {
		if answers[i] != P.None {
			continue
		}
		if err := failed[o.TopicPartition]; err != nil {
			answers[i] = P.CodeOf(err)
			continue
		}
		v.hosted[o.TopicPartition] = hosted{topicID: o.topicID, epoch: o.state.LeaderEpoch, life: v.life}
	}
	return v.answer(response, orders, answers)
}

// order is one partition of LeaderAndIsr.
type order struct {
	P.TopicPartition
	topicID P.TopicID
	state   *metadata.Partition
	fresh   bool
}

// ordersOf takes the partitions out of a request, which groups them by topic from version 2 on.
func ordersOf(q *kmsg.LeaderAndISRRequest) []order {
	var orders []order
	add := func(topic string, id P.TopicID, p *kmsg.LeaderAndISRRequestTopicPartition) {
		orders = append(orders, order{
			TopicPartition: P.TopicPartition{Topic: topic, Partition: p.Partition}, topicID: id, fresh: p.IsNew,
			state: &metadata.Partition{
				Leader: P.BrokerID(p.Leader), LeaderEpoch: P.LeaderEpoch(p.LeaderEpoch), Epoch: P.PartitionEpoch(p.ZKVersion),
				ControllerEpoch: P.ControllerEpoch(p.ControllerEpoch), Replicas: ids(p.Replicas), ISR: ids(p.ISR),
				Adding: ids(p.AddingReplicas), Removing: ids(p.RemovingReplicas), Recovering: p.LeaderRecoveryState == 1,
				Eligible: peer.Eligible(&p.UnknownTags), UncleanEpoch: peer.UncleanEpoch(&p.UnknownTags),
			},
		})
	}
	for i := range q.PartitionStates {
		add(q.PartitionStates[i].Topic, P.TopicID{}, &q.PartitionStates[i])
	}
	for _, topic := range q.TopicStates {
		for i := range topic.PartitionStates {
			add(topic.Topic, topic.TopicID, &topic.PartitionStates[i])
		}
	}
	return orders
}

// known is what was said before of the replica that an order is about; false where nothing was. What an earlier life of this
// broker was told of an earlier topic of the name is over: while it was dead to the controller its replica may have been
// moved away, and the topic deleted and made again without a word to it. Whoever applies the order sets that log aside.
func (v *View) known(o order) (hosted, bool) {
	h, there := v.hosted[o.TopicPartition]
	if there && h.another(o.topicID) && h.life != v.life {
		return hosted{}, false
	}
	return h, there
}

// heard notes that a replica has its place in this life of the broker, too: the controller has said again what is known.
func (v *View) heard(o order) {
	if h, there := v.hosted[o.TopicPartition]; there && h.topicID == o.topicID && h.epoch == o.state.LeaderEpoch {
		h.life = v.life
		v.hosted[o.TopicPartition] = h
	}
}

// another reports whether a topic id is certainly that of another topic.
func (h hosted) another(id P.TopicID) bool {
	return h.topicID != id && !h.topicID.IsZero() && !id.IsZero()
}

// judge says whether an order is to be carried out.
//
// A controller of Kafka tells all partitions again after a failover, most of them unchanged;
// STALE_CONTROLLER_EPOCH for those is what it expects.
func (v *View) judge(o order) P.Code {
	known, there := v.known(o)
	switch {
	case P.ValidateTopicName(o.Topic) != nil || o.Partition < 0 || o.Partition >= metadata.MaxPartitions:
		return P.InvalidRequest // a name becomes a path
	case there && known.another(o.topicID):
		v.options.Logger.Error("refusing an order about a topic of another id than the one here",
			"partition", o.String(), "topic-id", o.topicID, "here", known.topicID)
		return P.InconsistentTopicID
	case there && o.state.LeaderEpoch == known.epoch && v.options.Offline(o.TopicPartition):
		return P.KafkaStorageError // a controller that tells again wants to know that
	case there && o.state.LeaderEpoch <= known.epoch:
		return P.StaleControllerEpoch
	case !slices.Contains(o.state.Replicas, v.options.Self):
		v.options.Logger.Warn("refusing an order about a partition without a replica here", "partition", o.String())
		return P.UnknownTopicOrPartition
	}
	return P.None
}

// change is what the replica has to do.
func (o order) change(self P.BrokerID) metadata.ReplicaChange {
	role := metadata.Follow
	if o.state.Leader == self {
		role = metadata.Lead
	}
	return metadata.ReplicaChange{TopicPartition: o.TopicPartition, TopicID: o.topicID, Role: role, State: o.state, New: o.fresh}
}

// answer puts the codes into the response, in the order of the request; from version 5 on by topic id.
func (v *View) answer(response *kmsg.LeaderAndISRResponse, orders []order, codes []P.Code) *kmsg.LeaderAndISRResponse {
	for i, o := range orders {
		p := kmsg.LeaderAndISRResponseTopicPartition{Topic: o.Topic, Partition: o.Partition, ErrorCode: int16(codes[i])}
		if o.state.Leader == P.NoBroker && response.Version >= 5 {
			if epoch, end, ok := v.options.End(o.TopicPartition); ok {
				peer.SetEnd(&p.UnknownTags, epoch, end)
			}
		}
		if response.Version < 5 {
			response.Partitions = append(response.Partitions, p)
			continue
		}
		if n := len(response.Topics); n == 0 || response.Topics[n-1].TopicID != o.topicID {
			response.Topics = append(response.Topics, kmsg.LeaderAndISRResponseTopic{TopicID: o.topicID})
		}
		topic := &response.Topics[len(response.Topics)-1]
		topic.Partitions = append(topic.Partitions, p)
	}
	return response
}
