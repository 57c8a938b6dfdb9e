package main

import "github.com/twmb/franz-go/pkg/kmsg"

func adminBases() []base {
	return append(clusterBases(), append(topicBases(), configBases()...)...)
}

func clusterBases() []base {
	return []base{
		{"ApiVersions", kmsg.ApiVersions, 0, 5, func(_ *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrApiVersionsRequest()
			q.ClientSoftwareName, q.ClientSoftwareVersion = "differential", "1.0"
			return q
		}},
		{"Metadata", kmsg.Metadata, 0, 13, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrMetadataRequest()
			q.Topics = []kmsg.MetadataRequestTopic{{Topic: &s.data}}
			return q
		}},
		{"Metadata/id", kmsg.Metadata, 12, 13, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrMetadataRequest()
			q.Topics = []kmsg.MetadataRequestTopic{{TopicID: s.ids[s.data]}}
			return q
		}},
		{"DescribeCluster", kmsg.DescribeCluster, 0, 2, func(_ *side, _ int16) kmsg.Request {
			return kmsg.NewPtrDescribeClusterRequest()
		}},
		{"DescribeTopicPartitions", kmsg.DescribeTopicPartitions, 0, 0, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDescribeTopicPartitionsRequest()
			q.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: s.data}}
			q.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: s.data, Partition: 1}
			return q
		}},
		{"DescribeLogDirs", kmsg.DescribeLogDirs, 1, 5, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDescribeLogDirsRequest()
			q.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: s.data, Partitions: []int32{0, 1}}}
			return q
		}},
		{"AlterReplicaLogDirs", kmsg.AlterReplicaLogDirs, 1, 2, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrAlterReplicaLogDirsRequest()
			q.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: "/nowhere", Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: s.data, Partitions: []int32{0}}}}}
			return q
		}},
	}
}

func topicBases() []base {
	return []base{
		{"ElectLeaders", kmsg.ElectLeaders, 0, 2, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrElectLeadersRequest()
			q.TimeoutMillis = 5000
			q.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: s.data, Partitions: []int32{0}}}
			return q
		}},
		{"CreateTopics", kmsg.CreateTopics, 2, 7, func(s *side, _ int16) kmsg.Request {
			t := kmsg.NewCreateTopicsRequestTopic()
			value := "1000"
			t.Topic, t.NumPartitions, t.ReplicationFactor = s.fresh("topic"), 1, 1
			t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: &value}}
			return createTopics(t)
		}},
		{"CreateTopics/assigned", kmsg.CreateTopics, 2, 7, func(s *side, _ int16) kmsg.Request {
			t := kmsg.NewCreateTopicsRequestTopic()
			t.Topic, t.NumPartitions, t.ReplicationFactor = s.fresh("topic"), -1, -1
			t.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
			return createTopics(t)
		}},
		{"CreateTopics/again", kmsg.CreateTopics, 2, 7, func(s *side, _ int16) kmsg.Request {
			t := kmsg.NewCreateTopicsRequestTopic()
			t.Topic, t.NumPartitions, t.ReplicationFactor = s.data, 1, 1
			return createTopics(t)
		}},
		{"DeleteTopics", kmsg.DeleteTopics, 1, 6, func(s *side, v int16) kmsg.Request {
			q := kmsg.NewPtrDeleteTopicsRequest()
			name := s.newTopic(1, nil)
			q.TimeoutMillis, q.TopicNames = 5000, []string{name}
			q.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
			return q
		}},
		{"DeleteTopics/id", kmsg.DeleteTopics, 6, 6, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrDeleteTopicsRequest()
			q.TimeoutMillis = 5000
			q.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: s.ids[s.newTopic(1, nil)]}}
			return q
		}},
		{"CreatePartitions", kmsg.CreatePartitions, 0, 3, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrCreatePartitionsRequest()
			q.TimeoutMillis = 5000
			q.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: s.newTopic(1, nil), Count: 2}}
			return q
		}},
		{"CreatePartitions/assigned", kmsg.CreatePartitions, 0, 3, func(s *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrCreatePartitionsRequest()
			q.TimeoutMillis = 5000
			q.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: s.newTopic(1, nil), Count: 2,
				Assignment: []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{1}}}}}
			return q
		}},
	}
}

func createTopics(t kmsg.CreateTopicsRequestTopic) kmsg.Request {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = 5000
	q.Topics = []kmsg.CreateTopicsRequestTopic{t}
	return q
}

// target is a resource whose properties are asked for and changed.
type target struct {
	name       string
	kind       kmsg.ConfigResourceType
	resource   func(s *side) string
	key, value string
}

func targets() []target {
	return []target{
		{"topic", kmsg.ConfigResourceTypeTopic, func(s *side) string { return s.compact }, "segment.ms", "100000"},
		{"broker", kmsg.ConfigResourceTypeBroker, func(*side) string { return "1" }, "log.cleaner.threads", "1"},
		{"brokers", kmsg.ConfigResourceTypeBroker, func(*side) string { return "" }, "log.retention.ms", "100000000"},
		{"static", kmsg.ConfigResourceTypeBroker, func(*side) string { return "1" }, "broker.id", "7"},
		{"logger", kmsg.ConfigResourceTypeBrokerLogger, func(*side) string { return "1" }, "root", "INFO"},
		{"group", kmsg.ConfigResourceType(32), func(s *side) string { return s.fresh("group") }, "consumer.session.timeout.ms", "50000"},
		{"metrics", kmsg.ConfigResourceType(16), func(s *side) string { return s.fresh("subscription") }, "interval.ms", "50000"},
	}
}

func configBases() []base {
	all := []base{
		{"ListConfigResources", kmsg.ListConfigResources, 0, 1, func(_ *side, _ int16) kmsg.Request {
			q := kmsg.NewPtrListConfigResourcesRequest()
			q.ResourceTypes = []int8{2}
			return q
		}},
	}
	for _, t := range targets() {
		all = append(all, describeBase(t), alterBase(t), incrementalBase(t))
	}
	return all
}

func describeBase(t target) base {
	return base{"DescribeConfigs/" + t.name, kmsg.DescribeConfigs, 1, 4, func(s *side, _ int16) kmsg.Request {
		q := kmsg.NewPtrDescribeConfigsRequest()
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = t.kind, t.resource(s), []string{t.key}
		q.Resources, q.IncludeSynonyms, q.IncludeDocumentation = append(q.Resources, r), true, true
		return q
	}}
}

func alterBase(t target) base {
	return base{"AlterConfigs/" + t.name, kmsg.AlterConfigs, 0, 2, func(s *side, _ int16) kmsg.Request {
		q := kmsg.NewPtrAlterConfigsRequest()
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = t.kind, t.resource(s)
		r.Configs = []kmsg.AlterConfigsRequestResourceConfig{{Name: t.key, Value: &t.value}}
		q.Resources = append(q.Resources, r)
		return q
	}}
}

func incrementalBase(t target) base {
	return base{"IncrementalAlterConfigs/" + t.name, kmsg.IncrementalAlterConfigs, 0, 1, func(s *side, _ int16) kmsg.Request {
		q := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = t.kind, t.resource(s)
		r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: t.key, Value: &t.value}}
		q.Resources = append(q.Resources, r)
		return q
	}}
}
