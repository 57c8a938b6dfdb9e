package controller

import (
	"cmp"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The versions of the requests to brokers: those of Kafka 3.9 at its own inter-broker protocol.
const (
	leaderAndISRVersion   = 7
	updateMetadataVersion = 8
	stopReplicaVersion    = 4
)

// sender is what stands in every request of a controller to one life of one broker.
type sender struct {
	controller P.BrokerID
	epoch      P.ControllerEpoch
	// broker is the epoch of the broker that is told: it refuses what is meant for an earlier life.
	broker P.BrokerEpoch
	// listener is the one that brokers use among each other.
	listener string
}

// leaderAndISR builds LeaderAndIsr 7 from a round.
func (s sender) leaderAndISR(r *round) *kmsg.LeaderAndISRRequest {
	request := kmsg.NewPtrLeaderAndISRRequest()
	request.Version = leaderAndISRVersion
	request.ControllerID, request.ControllerEpoch, request.BrokerEpoch = int32(s.controller), int32(s.epoch), int64(s.broker)
	leaders := map[P.BrokerID]bool{}
	for _, tp := range sorted(r.lead) {
		t := r.lead[tp]
		if n := len(request.TopicStates); n == 0 || request.TopicStates[n-1].Topic != tp.Topic {
			request.TopicStates = append(request.TopicStates, kmsg.LeaderAndISRRequestTopicState{Topic: tp.Topic, TopicID: t.topicID})
		}
		states := &request.TopicStates[len(request.TopicStates)-1].PartitionStates
		*states = append(*states, kmsg.LeaderAndISRRequestTopicPartition{
			Partition: tp.Partition, ControllerEpoch: int32(t.state.ControllerEpoch), Leader: int32(t.state.Leader),
			LeaderEpoch: int32(t.state.LeaderEpoch), ISR: numbers(t.state.ISR), ZKVersion: int32(t.state.Epoch),
			Replicas: numbers(t.state.Replicas), AddingReplicas: numbers(t.state.Adding),
			RemovingReplicas: numbers(t.state.Removing), IsNew: t.fresh, LeaderRecoveryState: recovery(t.state),
		})
		tags := &(*states)[len(*states)-1].UnknownTags
		peer.SetEligible(tags, t.state.Eligible)
		peer.SetUncleanEpoch(tags, t.state.UncleanEpoch)
		leaders[t.state.Leader] = true
	}
	for _, id := range slices.Sorted(maps.Keys(leaders)) {
		if b := r.image.Broker(id); b != nil {
			e, _ := b.Endpoint(s.listener)
			request.LiveLeaders = append(request.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: int32(id), Host: e.Host, Port: e.Port})
		}
	}
	return request
}

// updateMetadata builds UpdateMetadata 8 from a round.
func (s sender) updateMetadata(r *round) *kmsg.UpdateMetadataRequest {
	request := kmsg.NewPtrUpdateMetadataRequest()
	request.Version = updateMetadataVersion
	request.ControllerID, request.ControllerEpoch, request.BrokerEpoch = int32(s.controller), int32(s.epoch), int64(s.broker)
	if r.full {
		request.UnknownTags.Set(peer.FullMetadataTag, []byte{1})
	}
	for _, tp := range sorted(r.show) {
		t := r.show[tp]
		if n := len(request.TopicStates); n == 0 || request.TopicStates[n-1].Topic != tp.Topic {
			request.TopicStates = append(request.TopicStates, kmsg.UpdateMetadataRequestTopicState{Topic: tp.Topic, TopicID: t.topicID})
		}
		state := t.state
		var leader P.BrokerID
		if state == nil {
			state, leader = t.old, leaderDuringDelete
		} else {
			leader = state.Leader
		}
		states := &request.TopicStates[len(request.TopicStates)-1].PartitionStates
		*states = append(*states, kmsg.UpdateMetadataRequestTopicPartition{
			Partition: tp.Partition, ControllerEpoch: int32(state.ControllerEpoch), Leader: int32(leader),
			LeaderEpoch: int32(state.LeaderEpoch), ISR: numbers(state.ISR), ZKVersion: int32(state.Epoch),
			Replicas: numbers(state.Replicas), OfflineReplicas: numbers(offline(r.image, state)),
		})
	}
	for _, b := range r.image.Brokers() {
		live := kmsg.UpdateMetadataRequestLiveBroker{ID: int32(b.ID), Rack: b.Rack}
		for _, e := range b.Endpoints {
			live.Endpoints = append(live.Endpoints, kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
				Port: e.Port, Host: e.Host, ListenerName: e.Listener, SecurityProtocol: int16(e.Protocol),
			})
		}
		request.LiveBrokers = append(request.LiveBrokers, live)
	}
	return request
}

// stopReplica builds StopReplica 4.
func (s sender) stopReplica(stops map[P.TopicPartition]P.LeaderEpoch, erase bool) *peer.StopReplica {
	request := peer.NewStopReplica(stopReplicaVersion)
	request.ControllerID, request.ControllerEpoch, request.BrokerEpoch = int32(s.controller), int32(s.epoch), int64(s.broker)
	for _, tp := range sorted(stops) {
		if n := len(request.Topics); n == 0 || request.Topics[n-1].Topic != tp.Topic {
			request.Topics = append(request.Topics, kmsg.StopReplicaRequestTopic{Topic: tp.Topic})
		}
		states := &request.Topics[len(request.Topics)-1].PartitionStates
		*states = append(*states, kmsg.StopReplicaRequestTopicPartitionState{
			Partition: tp.Partition, LeaderEpoch: int32(stops[tp]), Delete: erase,
		})
	}
	return request
}

// sorted lists partitions by topic and number.
func sorted[V any](m map[P.TopicPartition]V) []P.TopicPartition {
	return slices.SortedFunc(maps.Keys(m), comparePartitions)
}

func comparePartitions(a, b P.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// numbers turns ids into what a message holds.
func numbers(ids []P.BrokerID) []int32 {
	n := make([]int32, len(ids))
	for i, id := range ids {
		n[i] = int32(id)
	}
	return n
}

func recovery(p *metadata.Partition) int8 {
	if p.Recovering {
		return 1
	}
	return 0
}

// offline lists the replicas that are on dead brokers, or were said to be offline.
func offline(image *metadata.Image, p *metadata.Partition) []P.BrokerID {
	var ids []P.BrokerID
	for _, id := range p.Replicas {
		if !image.Alive(id) || slices.Contains(p.Offline, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
