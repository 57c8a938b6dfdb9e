package controller

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// goldenRequests reads the frames in which controllers of Kafka 3.9 told their brokers something.
func goldenRequests(t *testing.T) map[string]kmsg.Request {
	t.Helper()
	f, err := os.Open("testdata/frames/pushes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	requests := map[string]kmsg.Request{}
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var line struct{ Name, Request string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		frame, err := hex.DecodeString(line.Request)
		if err != nil {
			t.Fatal(err)
		}
		header, body, err := wire.ParseRequestHeader(frame)
		if err != nil {
			t.Fatal(err)
		}
		request := requestFor(header.Key, header.Version)
		if err := request.ReadFrom(body); err != nil {
			t.Fatalf("%s: %v", line.Name, err)
		}
		if again := request.AppendTo(nil); !bytes.Equal(again, body) {
			t.Errorf("%s: encodes to other bytes than Kafka's", line.Name)
		}
		requests[line.Name] = request
	}
	return requests
}

// What Kafka's controller sends is what ours would send from the same state: the same bytes, once both are
// in the same order.
func TestRequestsAreThoseOfKafka(t *testing.T) {
	requests := goldenRequests(t)
	if len(requests) < 15 {
		t.Fatalf("only %d frames", len(requests))
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		var got kmsg.Request
		switch r := requests[name].(type) {
		case *kmsg.LeaderAndISRRequest:
			got = rebuildLeaderAndISR(r)
		case *kmsg.UpdateMetadataRequest:
			got = rebuildUpdateMetadata(r)
		case *peer.StopReplica:
			got = rebuildStopReplica(r)
		}
		want := inOrder(requests[name])
		if got.GetVersion() != want.GetVersion() || !bytes.Equal(got.AppendTo(nil), want.AppendTo(nil)) {
			t.Errorf("%s:\n got %s\nwant %s", name, asJSON(got), asJSON(want))
		}
	}
}

func rebuildLeaderAndISR(r *kmsg.LeaderAndISRRequest) kmsg.Request {
	s := sender{controller: P.BrokerID(r.ControllerID), epoch: P.ControllerEpoch(r.ControllerEpoch), broker: P.BrokerEpoch(r.BrokerEpoch), listener: "INTERNAL"}
	out := &round{lead: map[P.TopicPartition]told{}, image: metadata.Empty()}
	for _, l := range r.LiveLeaders {
		b := &metadata.Broker{ID: P.BrokerID(l.BrokerID), Endpoints: []metadata.Endpoint{{Listener: "INTERNAL", Host: l.Host, Port: l.Port}}}
		out.image, _ = out.image.With(metadata.PutBroker{Broker: b})
	}
	for _, topic := range r.TopicStates {
		for _, p := range topic.PartitionStates {
			out.lead[P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = told{
				topicID: topic.TopicID, fresh: p.IsNew, state: &metadata.Partition{
					Leader: P.BrokerID(p.Leader), LeaderEpoch: P.LeaderEpoch(p.LeaderEpoch), Epoch: P.PartitionEpoch(p.ZKVersion),
					ControllerEpoch: P.ControllerEpoch(p.ControllerEpoch), ISR: brokerIDs(p.ISR), Replicas: brokerIDs(p.Replicas),
					Adding: brokerIDs(p.AddingReplicas), Removing: brokerIDs(p.RemovingReplicas), Recovering: p.LeaderRecoveryState == 1,
				},
			}
		}
	}
	return s.leaderAndISR(out)
}

func rebuildUpdateMetadata(r *kmsg.UpdateMetadataRequest) kmsg.Request {
	s := sender{controller: P.BrokerID(r.ControllerID), epoch: P.ControllerEpoch(r.ControllerEpoch), broker: P.BrokerEpoch(r.BrokerEpoch)}
	out := &round{show: map[P.TopicPartition]told{}, image: metadata.Empty()}
	for _, l := range r.LiveBrokers {
		b := &metadata.Broker{ID: P.BrokerID(l.ID), Rack: l.Rack}
		for _, e := range l.Endpoints {
			b.Endpoints = append(b.Endpoints, metadata.Endpoint{Listener: e.ListenerName, Host: e.Host, Port: e.Port, Protocol: metadata.SecurityProtocol(e.SecurityProtocol)})
		}
		out.image, _ = out.image.With(metadata.PutBroker{Broker: b})
	}
	for _, topic := range r.TopicStates {
		for _, p := range topic.PartitionStates {
			state := &metadata.Partition{
				Leader: P.BrokerID(p.Leader), LeaderEpoch: P.LeaderEpoch(p.LeaderEpoch), Epoch: P.PartitionEpoch(p.ZKVersion),
				ControllerEpoch: P.ControllerEpoch(p.ControllerEpoch), ISR: brokerIDs(p.ISR), Replicas: brokerIDs(p.Replicas), Offline: brokerIDs(p.OfflineReplicas),
			}
			what := told{topicID: topic.TopicID, state: state}
			if state.Leader == leaderDuringDelete {
				what.state, what.old = nil, state
			}
			out.show[P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = what
		}
	}
	return s.updateMetadata(out)
}

func rebuildStopReplica(r *peer.StopReplica) kmsg.Request {
	s := sender{controller: P.BrokerID(r.ControllerID), epoch: P.ControllerEpoch(r.ControllerEpoch), broker: P.BrokerEpoch(r.BrokerEpoch)}
	stops, erase := map[P.TopicPartition]P.LeaderEpoch{}, false
	for _, topic := range r.Topics {
		for _, p := range topic.PartitionStates {
			stops[P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = P.LeaderEpoch(p.LeaderEpoch)
			erase = p.Delete
		}
	}
	return s.stopReplica(stops, erase)
}

func brokerIDs(numbers []int32) []P.BrokerID {
	ids := make([]P.BrokerID, len(numbers))
	for i, n := range numbers {
		ids[i] = P.BrokerID(n)
	}
	return ids
}

// inOrder sorts what Kafka sends in the order of its hash maps.
func inOrder(request kmsg.Request) kmsg.Request {
	switch r := request.(type) {
	case *kmsg.LeaderAndISRRequest:
		slices.SortFunc(r.TopicStates, func(a, b kmsg.LeaderAndISRRequestTopicState) int { return strings.Compare(a.Topic, b.Topic) })
		for _, topic := range r.TopicStates {
			slices.SortFunc(topic.PartitionStates, func(a, b kmsg.LeaderAndISRRequestTopicPartition) int { return int(a.Partition - b.Partition) })
		}
		slices.SortFunc(r.LiveLeaders, func(a, b kmsg.LeaderAndISRRequestLiveLeader) int { return int(a.BrokerID - b.BrokerID) })
	case *kmsg.UpdateMetadataRequest:
		slices.SortFunc(r.TopicStates, func(a, b kmsg.UpdateMetadataRequestTopicState) int { return strings.Compare(a.Topic, b.Topic) })
		for _, topic := range r.TopicStates {
			slices.SortFunc(topic.PartitionStates, func(a, b kmsg.UpdateMetadataRequestTopicPartition) int { return int(a.Partition - b.Partition) })
		}
		slices.SortFunc(r.LiveBrokers, func(a, b kmsg.UpdateMetadataRequestLiveBroker) int { return int(a.ID - b.ID) })
	case *peer.StopReplica:
		slices.SortFunc(r.Topics, func(a, b kmsg.StopReplicaRequestTopic) int { return strings.Compare(a.Topic, b.Topic) })
		for _, topic := range r.Topics {
			slices.SortFunc(topic.PartitionStates, func(a, b kmsg.StopReplicaRequestTopicPartitionState) int { return int(a.Partition - b.Partition) })
		}
	}
	return request
}

func asJSON(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// requestFor is an empty request of a key.
func requestFor(key, version int16) kmsg.Request {
	if key == 5 {
		return peer.NewStopReplica(version)
	}
	request := kmsg.RequestForKey(key)
	request.SetVersion(version)
	return request
}
