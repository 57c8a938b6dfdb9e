package api

import (
	"context"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// createTopics makes topics, each with its own result (versions 0 to 7). It answers when this broker's
// image shows them, so that a client may use them at once.
//
//	1  validate only                   5  partitions, replication factor and properties in the answer (KIP-525)
//	2  throttle time                   6  THROTTLING_QUOTA_EXCEEDED
//	4  -1 for the broker's defaults    7  topic id (KIP-516)
//	   (KIP-464)
//
// A timeout is no failure of the creation: the topic exists, REQUEST_TIMED_OUT says that nobody has seen it
// yet, and trying again says TOPIC_ALREADY_EXISTS. One bad topic of a request leaves the others alone
// (KAFKA-13490).
func (a *API) createTopics(ctx context.Context, r *Request, q *kmsg.CreateTopicsRequest) *kmsg.CreateTopicsResponse {
	response := respondTo(r, kmsg.NewPtrCreateTopicsResponse())
	elsewhere := a.forward(ctx, r, q, millis(q.TimeoutMillis))
	ctx, cancel := a.within(ctx, millis(q.TimeoutMillis))
	defer cancel()
	if answer, ok := elsewhere.(*kmsg.CreateTopicsResponse); ok {
		if !q.ValidateOnly {
			a.awaitCreated(ctx, answer)
		}
		return answer
	}
	topics := make([]controller.NewTopic, 0, len(q.Topics))
	for i := range q.Topics {
		topics = append(topics, newTopic(&q.Topics[i]))
	}
	answered := map[string]bool{}
	for _, result := range a.create(ctx, topics, q.ValidateOnly) {
		if answered[result.Name] {
			continue // a name that stands there twice gets one answer
		}
		answered[result.Name] = true
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic, t.TopicID = result.Name, result.ID
		t.ErrorCode, t.ErrorMessage = int16(protocol.CodeOf(result.Err)), protocol.MessageOf(result.Err)
		t.NumPartitions, t.ReplicationFactor = -1, -1
		if result.Err == nil {
			t.NumPartitions, t.ReplicationFactor = result.Partitions, result.ReplicationFactor
			t.Configs = a.createdConfigs(result.Configs)
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}

// create makes topics and waits until this broker's image shows them with their leaders. Where the time is up
// before that, the topics exist all the same.
func (a *API) create(ctx context.Context, topics []controller.NewTopic, validateOnly bool) []controller.TopicResult {
	results := a.Controller.CreateTopics(ctx, topics, validateOnly)
	if validateOnly {
		return results
	}
	// A client uses a topic right after the answer; the controller's push to this broker is under way.
	for i := range results {
		if results[i].Err == nil {
			results[i].Err = a.View.Wait(ctx, func(image *metadata.Image) bool { return shown(image, &results[i]) })
		}
	}
	return results
}

// createOwn makes topics that this broker wants by itself.
func (a *API) createOwn(ctx context.Context, topics []controller.NewTopic) []controller.TopicResult {
	if results, ok := a.createElsewhere(ctx, topics); ok {
		return results
	}
	return a.create(ctx, topics, false)
}

// shown reports whether an image has a new topic with all its partitions and their states. One that somebody
// deletes in the meantime is waited for until the time is up.
func shown(image *metadata.Image, created *controller.TopicResult) bool {
	topic := image.Topic(created.Name)
	if topic == nil || len(topic.Partitions) < int(created.Partitions) {
		return false
	}
	for _, p := range topic.Partitions {
		if !p.Known() {
			return false
		}
	}
	return true
}

// millis is a time of a request, which may be below zero.
func millis(n int32) time.Duration { return time.Duration(max(n, 0)) * time.Millisecond }

func newTopic(q *kmsg.CreateTopicsRequestTopic) controller.NewTopic {
	t := controller.NewTopic{Name: q.Topic, Partitions: q.NumPartitions, ReplicationFactor: q.ReplicationFactor}
	for _, assigned := range q.ReplicaAssignment {
		replicas := make([]protocol.BrokerID, len(assigned.Replicas))
		for i, id := range assigned.Replicas {
			replicas[i] = protocol.BrokerID(id)
		}
		t.Assignment = append(t.Assignment, controller.Assignment{Partition: assigned.Partition, Replicas: replicas})
	}
	for _, c := range q.Configs {
		if t.Configs == nil {
			t.Configs = map[string]*string{}
		}
		t.Configs[c.Name] = c.Value
	}
	return t
}

// automatic is a topic that a broker makes by itself, with its defaults; internal ones with theirs.
//
// The replication factor of __consumer_offsets is cut down to the brokers that live: Kafka refuses to create it
// on fewer, and its default of 3 then keeps a single broker without groups for good.
func (a *API) automatic(name string) controller.NewTopic {
	t := controller.NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1}
	if name != protocol.GroupMetadataTopic {
		return t
	}
	settings := a.Config()
	t.Partitions = int32(a.GroupPartitions)
	t.ReplicationFactor = int16(min(settings.Int("offsets.topic.replication.factor"), int32(len(a.View.Image().Brokers()))))
	policy, codec := "compact", "producer"
	segment := strconv.Itoa(int(settings.Int("offsets.topic.segment.bytes")))
	t.Configs = map[string]*string{"cleanup.policy": &policy, "compression.type": &codec, "segment.bytes": &segment}
	return t
}

// createdConfigs lists the properties of a new topic, as DescribeConfigs would.
func (a *API) createdConfigs(overrides map[string]string) []kmsg.CreateTopicsResponseTopicConfig {
	var configs []kmsg.CreateTopicsResponseTopicConfig
	for _, entry := range a.Config().DescribeTopic(overrides, nil) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.ReadOnly, c.IsSensitive = entry.Name, entry.Value, entry.ReadOnly, entry.Sensitive
		c.Source = int8(entry.Source)
		configs = append(configs, c)
	}
	return configs
}
