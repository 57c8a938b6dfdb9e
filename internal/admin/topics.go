package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicID is a topic's id in Kafka's form: 22 letters of URL-safe base64.
func TopicID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// Topic is one topic as a broker sees it.
type Topic struct {
	Name     string
	ID       [16]byte
	Internal bool
	// Partitions are sorted by number.
	Partitions []Partition
	// Err says why the rest is empty.
	Err error
}

// ReplicationFactor is the number of replicas of the first partition.
func (t Topic) ReplicationFactor() int {
	if len(t.Partitions) == 0 {
		return 0
	}
	return len(t.Partitions[0].Replicas)
}

// Partition is one partition as a broker sees it.
type Partition struct {
	Number int32
	// Leader is -1 where there is none.
	Leader      int32
	LeaderEpoch int32
	Replicas    []int32
	ISR         []int32
	Offline     []int32
	// Eligible and LastEligible are the eligible leader replicas and the last ones known; nil where the
	// broker does not tell.
	Eligible, LastEligible []int32
	Err                    error
}

// Topics are the named topics in the order of their names, or all of the cluster where none is named.
// A topic that does not exist is in the result with its error; that it does not is the controller's word.
func (c *Client) Topics(ctx context.Context, names ...string) ([]Topic, error) {
	metadata, err := c.metadata(ctx, names)
	if err == nil && slices.ContainsFunc(metadata.Topics, unknown) {
		metadata, err = c.newestMetadata(ctx, names)
	}
	if err != nil {
		return nil, err
	}
	topics := make([]Topic, 0, len(metadata.Topics))
	for i := range metadata.Topics {
		topics = append(topics, topicOf(&metadata.Topics[i]))
	}
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics, nil
}

// unknown reports whether a broker has not heard of a topic.
func unknown(t kmsg.MetadataResponseTopic) bool {
	return t.ErrorCode == kerr.UnknownTopicOrPartition.Code
}

// metadata asks any broker for the named topics; nil names are all topics, empty ones none.
func (c *Client) metadata(ctx context.Context, names []string) (*kmsg.MetadataResponse, error) {
	return request[*kmsg.MetadataResponse](ctx, c, metadataRequest(names))
}

// metadataRequest has auto-creation switched off (version 4 and up): asking about a topic must not make it.
func metadataRequest(names []string) *kmsg.MetadataRequest {
	r := kmsg.NewPtrMetadataRequest()
	r.AllowAutoTopicCreation = false
	if names != nil {
		r.Topics = make([]kmsg.MetadataRequestTopic, 0, len(names))
	}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		r.Topics = append(r.Topics, t)
	}
	return r
}

func topicOf(t *kmsg.MetadataResponseTopic) Topic {
	topic := Topic{ID: t.TopicID, Internal: t.IsInternal, Err: codeError(t.ErrorCode, nil)}
	if t.Topic != nil {
		topic.Name = *t.Topic
	}
	for _, p := range t.Partitions {
		topic.Partitions = append(topic.Partitions, Partition{
			Number: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
			Replicas: p.Replicas, ISR: p.ISR, Offline: p.OfflineReplicas, Err: codeError(p.ErrorCode, nil),
		})
	}
	slices.SortFunc(topic.Partitions, func(a, b Partition) int { return cmp.Compare(a.Number, b.Number) })
	return topic
}

// NewTopic is a topic to create.
type NewTopic struct {
	Name string
	// Partitions and ReplicationFactor are -1 for the broker's default.
	Partitions        int32
	ReplicationFactor int16
	// Assignment are the replicas of each partition, the preferred leader first; the two fields above must
	// be -1 with it.
	Assignment [][]int32
	Configs    map[string]string
}

// CreatedTopic is what became of a topic to create.
type CreatedTopic struct {
	Name              string
	ID                [16]byte
	Partitions        int32
	ReplicationFactor int16
	Err               error
}

// CreateTopics creates topics, or only says whether it could where validateOnly is set. The results are
// in the order of the topics.
func (c *Client) CreateTopics(ctx context.Context, topics []NewTopic, validateOnly bool) ([]CreatedTopic, error) {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.ValidateOnly = validateOnly
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	for _, topic := range topics {
		r.Topics = append(r.Topics, createRequest(topic))
	}
	response, err := request[*kmsg.CreateTopicsResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	created := make([]CreatedTopic, 0, len(topics))
	for _, topic := range topics {
		i := slices.IndexFunc(response.Topics, func(t kmsg.CreateTopicsResponseTopic) bool { return t.Topic == topic.Name })
		if i < 0 {
			created = append(created, CreatedTopic{Name: topic.Name, Err: errNoAnswer})
			continue
		}
		t := &response.Topics[i]
		created = append(created, CreatedTopic{
			Name: t.Topic, ID: t.TopicID, Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor,
			Err: codeError(t.ErrorCode, t.ErrorMessage),
		})
	}
	return created, nil
}

func createRequest(topic NewTopic) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic.Name, topic.Partitions, topic.ReplicationFactor
	for number, replicas := range topic.Assignment {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(number), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for _, key := range slices.Sorted(maps.Keys(topic.Configs)) {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, kmsg.StringPtr(topic.Configs[key])
		t.Configs = append(t.Configs, config)
	}
	return t
}

// Result is what became of one named thing.
type Result struct {
	Name string
	Err  error
}

// DeleteTopics deletes topics with their records. The results are in the order of the names.
func (c *Client) DeleteTopics(ctx context.Context, names []string) ([]Result, error) {
	r := kmsg.NewPtrDeleteTopicsRequest()
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	r.TopicNames = names
	for _, name := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		r.Topics = append(r.Topics, t)
	}
	response, err := request[*kmsg.DeleteTopicsResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	outcome := make(map[string]error, len(names))
	for _, t := range response.Topics {
		if t.Topic != nil {
			outcome[*t.Topic] = codeError(t.ErrorCode, t.ErrorMessage)
		}
	}
	return resultsOf(names, outcome), nil
}

// resultsOf orders outcomes by the names that were asked about.
func resultsOf(names []string, outcome map[string]error) []Result {
	results := make([]Result, 0, len(names))
	for _, name := range names {
		err, ok := outcome[name]
		if !ok {
			err = errNoAnswer
		}
		results = append(results, Result{Name: name, Err: err})
	}
	return results
}
