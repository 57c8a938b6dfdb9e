package main

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// base is a request that makes sense, and from which cases are made. build may make topics and groups.
//
// Ranges stand here and are not asked of the broker: a version that is dropped by mistake must be seen.
type base struct {
	name     string
	key      kmsg.Key
	min, max int16
	build    func(s *side, version int16) kmsg.Request
}

// bases lists the requests by key, with the versions that Barnabas advertises.
func bases() []base {
	return slices.Concat(recordBases(), groupBases(), adminBases())
}

func recordBases() []base {
	return []base{
		{"Produce", kmsg.Produce, 3, 13, func(s *side, v int16) kmsg.Request {
			return s.produce(v, s.data, 1, batch(3, record.BuilderOptions{}))
		}},
		{"Fetch", kmsg.Fetch, 4, 18, func(s *side, v int16) kmsg.Request { return s.fetch(v, 0, -1) }},
		{"ListOffsets", kmsg.ListOffsets, 1, 11, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrListOffsetsRequest()
			q.ReplicaID = -1
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.CurrentLeaderEpoch, p.Timestamp = -1, -1
			q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: s.data, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
			return q
		}},
		{"OffsetForLeaderEpoch", kmsg.OffsetForLeaderEpoch, 2, 4, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrOffsetForLeaderEpochRequest()
			q.ReplicaID = -1
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.CurrentLeaderEpoch = -1
			q.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: s.data, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
			return q
		}},
		{"InitProducerId", kmsg.InitProducerID, 0, 5, func(_ *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrInitProducerIDRequest()
			q.TransactionTimeoutMillis, q.ProducerID, q.ProducerEpoch = 1000, -1, -1
			return q
		}},
		{"DeleteRecords", kmsg.DeleteRecords, 0, 2, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDeleteRecordsRequest()
			q.TimeoutMillis = 1000
			q.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: s.data, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 1, Offset: 0}}}}
			return q
		}},
		{"DescribeProducers", kmsg.DescribeProducers, 0, 0, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDescribeProducersRequest()
			q.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: s.data, Partitions: []int32{0}}}
			return q
		}},
	}
}

func (s *side) produce(v int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks, q.TimeoutMillis = v, -1, 1000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	q.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, TopicID: s.ids[topic], Partitions: []kmsg.ProduceRequestTopicPartition{p}}}
	return q
}

func (s *side) fetch(v int16, session, epoch int32) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version, q.SessionID, q.SessionEpoch = v, session, epoch
	q.ReplicaID, q.MaxWaitMillis, q.MinBytes, q.MaxBytes = -1, 0, 1, 1<<20
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = 1<<20, -1, -1, -1
	q.Topics = []kmsg.FetchRequestTopic{{Topic: s.data, TopicID: s.ids[s.data], Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return q
}

func groupBases() []base {
	return slices.Concat(offsetBases(), memberBases(), groupAdminBases())
}

// offsetBases find a group's coordinator, and commit and fetch its offsets.
func offsetBases() []base {
	return []base{
		{"OffsetCommit", kmsg.OffsetCommit, 2, 10, func(s *side, v int16) kmsg.Request { return s.commit(v, s.newGroup()) }},
		{"OffsetCommit/member", kmsg.OffsetCommit, 2, 10, func(s *side, v int16) kmsg.Request {
			group, member, generation := s.newMember()
			q := s.commit(v, group)
			q.MemberID, q.Generation = member, generation
			return q
		}},
		{"OffsetFetch", kmsg.OffsetFetch, 1, 10, func(s *side, _ int16) kmsg.Request { return s.fetchOffsets(s.newGroup()) }},
		{"FindCoordinator", kmsg.FindCoordinator, 0, 6, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrFindCoordinatorRequest()
			q.CoordinatorKey, q.CoordinatorKeys = "group", []string{"group"}
			return q
		}},
	}
}

// memberBases are what members of a classic group say.
func memberBases() []base {
	return []base{
		{"JoinGroup", kmsg.JoinGroup, 0, 9, func(s *side, v int16) kmsg.Request { return s.join(v, s.fresh("group")) }},
		{"JoinGroup/member", kmsg.JoinGroup, 0, 9, func(s *side, v int16) kmsg.Request {
			group, member, _ := s.newMember()
			q := s.join(v, group)
			q.MemberID = member
			return q
		}},
		{"SyncGroup", kmsg.SyncGroup, 0, 5, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrSyncGroupRequest()
			q.Group, q.MemberID, q.Generation = s.newMember()
			kind, protocol := "consumer", "range"
			q.ProtocolType, q.Protocol = &kind, &protocol
			q.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: q.MemberID, MemberAssignment: []byte("mine")}}
			return q
		}},
		{"Heartbeat", kmsg.Heartbeat, 0, 4, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrHeartbeatRequest()
			q.Group, q.MemberID, q.Generation = s.newMember()
			return q
		}},
		{"LeaveGroup", kmsg.LeaveGroup, 0, 5, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrLeaveGroupRequest()
			q.Group, q.MemberID, _ = s.newMember()
			q.Members = []kmsg.LeaveGroupRequestMember{{MemberID: q.MemberID}}
			return q
		}},
	}
}

// groupAdminBases look at groups from outside, and delete them and their offsets.
func groupAdminBases() []base {
	return []base{
		{"DescribeGroups", kmsg.DescribeGroups, 0, 6, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDescribeGroupsRequest()
			q.Groups = []string{s.newGroup()}
			return q
		}},
		{"DescribeGroups/member", kmsg.DescribeGroups, 0, 6, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDescribeGroupsRequest()
			group, _, _ := s.newMember()
			q.Groups = []string{group}
			return q
		}},
		{"ListGroups", kmsg.ListGroups, 0, 5, func(_ *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrListGroupsRequest()
			q.StatesFilter, q.TypesFilter = []string{"empty"}, []string{"Classic"}
			return q
		}},
		{"DeleteGroups", kmsg.DeleteGroups, 0, 3, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDeleteGroupsRequest()
			q.Groups = []string{s.newGroup()}
			return q
		}},
		{"DeleteGroups/member", kmsg.DeleteGroups, 0, 3, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDeleteGroupsRequest()
			group, _, _ := s.newMember()
			q.Groups = []string{group}
			return q
		}},
		{"OffsetDelete", kmsg.OffsetDelete, 0, 0, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrOffsetDeleteRequest()
			q.Group = s.newGroup()
			q.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: s.data, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}}}
			return q
		}},
	}
}

func (s *side) commit(v int16, group string) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation = v, group, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	text := "about it"
	p.Offset, p.LeaderEpoch, p.Metadata = 5, -1, &text
	q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: s.data, TopicID: s.ids[s.data], Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return q
}

func (s *side) fetchOffsets(group string) *kmsg.OffsetFetchRequest {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Group = group
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: s.data, Partitions: []int32{0, 1}}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: s.data, TopicID: s.ids[s.data], Partitions: []int32{0, 1}}}
	q.Groups = append(q.Groups, g)
	return q
}

func (s *side) join(v int16, group string) *kmsg.JoinGroupRequest {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version, q.Group, q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = v, group, 30_000, 2_000
	q.ProtocolType = "consumer"
	q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("wanted")}}
	return q
}
