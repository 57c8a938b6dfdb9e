package broker_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// FindCoordinator has one key up to version 3 and a list from 4 on; the first request makes the topic.
func TestFindCoordinator(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true, properties: map[string]string{"offsets.topic.num.partitions": "3"}}
	c := s.start().dial()
	for version := int16(0); version <= 6; version++ {
		q := kmsg.NewPtrFindCoordinatorRequest()
		q.Version = version
		q.CoordinatorKey, q.CoordinatorKeys = "group", []string{"group", "another", "group"}
		got := ask[*kmsg.FindCoordinatorResponse](c, q)
		if version < 4 {
			if got.ErrorCode != 0 || got.NodeID < 0 || got.Host != "127.0.0.1" || got.Port == 0 || len(got.Coordinators) != 0 {
				t.Errorf("version %d: %+v", version, got)
			}
			continue
		}
		if len(got.Coordinators) != 3 {
			t.Fatalf("version %d: %d answers for 3 keys", version, len(got.Coordinators))
		}
		for i, one := range got.Coordinators {
			if one.ErrorCode != 0 || one.Key != q.CoordinatorKeys[i] || one.Port == 0 {
				t.Errorf("version %d: %+v", version, one)
			}
		}
	}
	for kind, want := range map[int8]protocol.Code{1: protocol.InvalidRequest, 2: protocol.InvalidRequest, 9: protocol.InvalidRequest} {
		q := kmsg.NewPtrFindCoordinatorRequest()
		q.Version, q.CoordinatorType, q.CoordinatorKeys = 4, kind, []string{"x"}
		if got := ask[*kmsg.FindCoordinatorResponse](c, q).Coordinators[0]; protocol.Code(got.ErrorCode) != want || got.NodeID != -1 {
			t.Errorf("key type %d: %+v, want %v", kind, got, want.Name())
		}
	}
}

// With validate_only everything is checked and nothing is made.
func TestCreateTopicsValidateOnly(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	b := s.start()
	c := b.dial()
	c.create("there", 1)
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis, q.ValidateOnly = 7, 10_000, true
	wrong := "soon"
	q.Topics = []kmsg.CreateTopicsRequestTopic{
		{Topic: "good", NumPartitions: 3, ReplicationFactor: -1},
		{Topic: "there", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "many replicas", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "replicas", NumPartitions: 1, ReplicationFactor: 2},
		{Topic: "property", NumPartitions: 1, ReplicationFactor: 1, Configs: []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: &wrong}}},
	}
	want := map[string]protocol.Code{
		"good": protocol.None, "there": protocol.TopicAlreadyExists, "many replicas": protocol.InvalidTopic,
		"replicas": protocol.InvalidReplicationFactor, "property": protocol.InvalidConfig,
	}
	for _, got := range ask[*kmsg.CreateTopicsResponse](c, q).Topics {
		if protocol.Code(got.ErrorCode) != want[got.Topic] || got.TopicID != [16]byte{} {
			t.Errorf("%+v, want %v and no id", got, want[got.Topic].Name())
		}
		if got.Topic == "good" && (got.NumPartitions != 3 || got.ReplicationFactor != 1 || len(got.Configs) == 0) {
			t.Errorf("what would be made is not told: %+v", got)
		}
	}
	m := kmsg.NewPtrMetadataRequest()
	m.Version = 9
	for _, topic := range ask[*kmsg.MetadataResponse](c, m).Topics {
		if *topic.Topic != "there" {
			t.Errorf("topic %q was made", *topic.Topic)
		}
	}
}

// From version 10 on offsets are committed and fetched under topic ids; each partition that there is not is
// refused by itself.
func TestOffsetsByTopicID(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true, properties: map[string]string{"offsets.topic.num.partitions": "1"}}
	c := s.start().dial()
	id, unknown := c.create("orders", 2), protocol.NewTopicID()
	c.warm("group")
	commit := commitRequest("group", "", 0, 7)
	commit.Version = 10
	commit.Topics[0].TopicID = id
	missing := commit.Topics[0].Partitions[0]
	missing.Partition = 5
	commit.Topics[0].Partitions = append(commit.Topics[0].Partitions, missing)
	stranger := commit.Topics[0]
	stranger.TopicID, stranger.Partitions = unknown, stranger.Partitions[:1]
	commit.Topics = append(commit.Topics, stranger)
	codes := map[[16]byte]map[int32]protocol.Code{}
	for _, topic := range ask[*kmsg.OffsetCommitResponse](c, commit).Topics {
		for _, p := range topic.Partitions {
			if codes[topic.TopicID] == nil {
				codes[topic.TopicID] = map[int32]protocol.Code{}
			}
			codes[topic.TopicID][p.Partition] = protocol.Code(p.ErrorCode)
		}
	}
	if got := codes[id]; got[0] != protocol.None || got[5] != protocol.UnknownTopicOrPartition || codes[unknown][0] != protocol.UnknownTopicID {
		t.Errorf("committing: %v", codes)
	}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Version = 10
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group, group.MemberEpoch = "group", -1
	for _, topic := range []protocol.TopicID{id, unknown} {
		group.Topics = append(group.Topics, kmsg.OffsetFetchRequestGroupTopic{TopicID: topic, Partitions: []int32{0, 1}})
	}
	fetch.Groups = append(fetch.Groups, group)
	for _, topic := range ask[*kmsg.OffsetFetchResponse](c, fetch).Groups[0].Topics {
		for _, p := range topic.Partitions {
			wantOffset, wantCode := int64(-1), protocol.None
			switch {
			case topic.TopicID == unknown:
				wantCode = protocol.UnknownTopicID
			case p.Partition == 0:
				wantOffset = 7
			}
			if p.Offset != wantOffset || protocol.Code(p.ErrorCode) != wantCode {
				t.Errorf("fetching %v-%d: %+v, want %d and %v", protocol.TopicID(topic.TopicID), p.Partition, p, wantOffset, wantCode.Name())
			}
		}
	}
	fetch.Groups[0].Topics = nil // all that the group has
	all := ask[*kmsg.OffsetFetchResponse](c, fetch).Groups[0].Topics
	if len(all) != 1 || all[0].TopicID != id || len(all[0].Partitions) != 1 || all[0].Partitions[0].Offset != 7 {
		t.Errorf("all of the group: %+v", all)
	}
}
