package view

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leaderDuringDelete is the leader in UpdateMetadata of a partition whose topic is being deleted.
const leaderDuringDelete = -2

// UpdateMetadata takes over what the controller shows clients: all living brokers, and those partitions
// whose state has changed. Versions 0 to 8.
//
//	1  security protocols, endpoints     5  broker epoch, by topic; offline replicas from 4
//	2  racks                             6  flexible
//	3  names of listeners                7  topic ids
//
// The brokers of a request are all that live; its partitions are only those that have changed, unless a tag of
// ours says that they are all there are.
func (v *View) UpdateMetadata(q *kmsg.UpdateMetadataRequest) *kmsg.UpdateMetadataResponse {
	v.changing.Lock()
	defer v.changing.Unlock()
	response := q.ResponseKind().(*kmsg.UpdateMetadataResponse)
	code := v.admit(P.BrokerID(q.ControllerID), P.ControllerEpoch(q.ControllerEpoch), P.BrokerEpoch(q.BrokerEpoch))
	if code != P.None {
		response.ErrorCode = int16(code)
		return response
	}
	changes := []metadata.Change{metadata.SetController{ID: P.BrokerID(q.ControllerID), Epoch: P.ControllerEpoch(q.ControllerEpoch)}}
	changes, ok := v.partitions(v.absent(v.living(changes, q), q), q)
	if !ok {
		response.ErrorCode = int16(P.InvalidRequest)
		return response
	}
	v.erase(v.movedAway(q), changes...)
	select {
	case <-v.ready:
	default:
		close(v.ready)
	}
	return response
}

// living adds the changes that make the brokers of the request the living ones.
func (v *View) living(changes []metadata.Change, q *kmsg.UpdateMetadataRequest) []metadata.Change {
	there := map[P.BrokerID]bool{}
	for i := range q.LiveBrokers {
		b := &metadata.Broker{ID: P.BrokerID(q.LiveBrokers[i].ID), Rack: q.LiveBrokers[i].Rack, Epoch: P.NoBrokerEpoch}
		if b.ID == v.options.Self {
			b.Epoch = v.BrokerEpoch()
		}
		if q.Version == 0 {
			b.Endpoints = []metadata.Endpoint{{Listener: metadata.Plaintext.String(), Host: q.LiveBrokers[i].Host, Port: q.LiveBrokers[i].Port}}
		}
		for _, e := range q.LiveBrokers[i].Endpoints {
			endpoint := metadata.Endpoint{Listener: e.ListenerName, Host: e.Host, Port: e.Port, Protocol: metadata.SecurityProtocol(e.SecurityProtocol)}
			if q.Version < 3 { // listeners had no names, there was one for each protocol
				endpoint.Listener = endpoint.Protocol.String()
			}
			b.Endpoints = append(b.Endpoints, endpoint)
		}
		there[b.ID] = true
		changes = append(changes, metadata.PutBroker{Broker: b})
	}
	for _, b := range v.Image().Brokers() {
		if !there[b.ID] {
			changes = append(changes, metadata.DropBroker{ID: b.ID})
		}
	}
	return changes
}

// movedAway are orders about replicas that this broker lost without a word. While it is not registered it is dead to the
// controller, which does not wait for it to end a move, and tells it what it has when it is back, not what it has no
// more. Left alone such a replica would lead or follow for ever in an epoch that is over.
//
//	session ends ── replicas 1,2 become 2,3 ── registers again ── LeaderAndIsr: nothing of it
//	                                                            └ UpdateMetadata: 2,3 in a later epoch
//
// Its log goes, as by StopReplica, which may still come to one that there were orders about since. That of an earlier topic
// of the name stays where it is, out of service. A partition without a leader may need every log there is, and one that is
// not shown may have a damaged znode: both stay as they are.
func (v *View) movedAway(q *kmsg.UpdateMetadataRequest) []metadata.ReplicaChange {
	var moved []metadata.ReplicaChange
	for _, topic := range q.TopicStates {
		for i := range topic.PartitionStates {
			p := &topic.PartitionStates[i]
			tp := P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}
			known, there := v.hosted[tp]
			if !there || known.life == v.life || P.BrokerID(p.Leader) <= P.NoBroker {
				continue
			}
			change := metadata.ReplicaChange{TopicPartition: tp, TopicID: known.topicID}
			switch here := slices.Contains(p.Replicas, int32(v.options.Self)); {
			case known.another(topic.TopicID):
				change.Role = metadata.Stop
			case known.topicID == topic.TopicID && P.LeaderEpoch(p.LeaderEpoch) > known.epoch && !here:
				change.Role = metadata.Delete
			default:
				continue
			}
			v.options.Logger.Info("a replica was moved to other brokers while this one was not registered", "partition", tp.String(),
				"order", change.Role, "replicas", p.Replicas, "leader", p.Leader, "leader-epoch", p.LeaderEpoch, "epoch-here", known.epoch)
			moved = append(moved, change)
		}
	}
	return moved
}

// absent adds the changes that take away what a request with everything in it does not have.
func (v *View) absent(changes []metadata.Change, q *kmsg.UpdateMetadataRequest) []metadata.Change {
	full := false
	q.UnknownTags.Each(func(tag uint32, _ []byte) { full = full || tag == peer.FullMetadataTag })
	if !full {
		return changes
	}
	there := map[P.TopicPartition]bool{}
	for _, topic := range q.TopicStates {
		for i := range topic.PartitionStates {
			there[P.TopicPartition{Topic: topic.Topic, Partition: topic.PartitionStates[i].Partition}] = true
		}
	}
	image := v.Image()
	for _, name := range image.Topics() {
		for i := range image.Topic(name).Partitions {
			if tp := (P.TopicPartition{Topic: name, Partition: int32(i)}); !there[tp] {
				changes = append(changes, metadata.DropPartition{TopicPartition: tp})
			}
		}
	}
	return changes
}

// partitions adds the changes of the partitions of the request; false where one cannot be.
func (v *View) partitions(changes []metadata.Change, q *kmsg.UpdateMetadataRequest) ([]metadata.Change, bool) {
	ok := true
	add := func(topic string, id P.TopicID, p *kmsg.UpdateMetadataRequestTopicPartition) {
		tp := P.TopicPartition{Topic: topic, Partition: p.Partition}
		switch {
		case P.ValidateTopicName(topic) != nil || p.Partition < 0 || p.Partition >= metadata.MaxPartitions:
			ok = false
		case p.Leader != leaderDuringDelete:
			changes = append(changes, metadata.PutPartition{TopicPartition: tp, TopicID: id, State: &metadata.Partition{
				Leader: P.BrokerID(p.Leader), LeaderEpoch: P.LeaderEpoch(p.LeaderEpoch), Epoch: P.PartitionEpoch(p.ZKVersion),
				ControllerEpoch: P.ControllerEpoch(p.ControllerEpoch), Replicas: ids(p.Replicas), ISR: ids(p.ISR), Offline: ids(p.OfflineReplicas),
			}})
		default:
			changes = append(changes, metadata.DropPartition{TopicPartition: tp, TopicID: id})
		}
	}
	for i := range q.PartitionStates {
		add(q.PartitionStates[i].Topic, P.TopicID{}, &q.PartitionStates[i])
	}
	for _, topic := range q.TopicStates {
		for i := range topic.PartitionStates {
			add(topic.Topic, topic.TopicID, &topic.PartitionStates[i])
		}
	}
	return changes, ok
}
