package api

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// autoCreateTimeout bounds how long a Metadata request waits for the topics that it creates.
const autoCreateTimeout = 5 * time.Second

// metadata tells of brokers and topics (versions 0 to 13), each broker by the address of the listener that
// the client uses. In version 0 an empty list of topics means all, later null does. Topics that are asked
// for by name and do not exist are created where the broker's and the request's settings allow it.
//
//	0  all topics by an empty list          8  authorised operations (KIP-430)
//	1  null for all; racks, the controller  9  flexible
//	2  cluster id                          10  topic ids (KIP-516)
//	4  auto-creation is the client's wish  12  topics by id alone
//	5  offline replicas                    13  an error above all (REBOOTSTRAP_REQUIRED)
//	7  leader epochs (KIP-320)
//
// Only brokers that live are listed; partitions may name others among their replicas. A partition whose leader is not
// among the brokers of the same answer has LEADER_NOT_AVAILABLE and leader -1, so that no client looks for a broker
// that it was not told of.
func (a *API) metadata(_ context.Context, r *Request, body []byte) server.Reply {
	q, err := decode[kmsg.MetadataRequest](r, body)
	if err != nil {
		return a.malformed(r, err)
	}
	if r.Version < 12 && slices.ContainsFunc(q.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.Topic == nil || t.TopicID != [16]byte{} }) {
		return server.Reply{Response: encode(r, metadataRefused(r, q))}
	}
	q.Topics = askedOnce(q.Topics)
	missing := a.toCreate(r, q)
	if len(missing) == 0 {
		return server.Reply{Response: encode(r, a.metadataNow(r, q, nil))}
	}
	return server.Reply{Hold: true, Wait: func(ctx context.Context) (response *server.Response) {
		defer a.recovered(r, &response)
		return encode(r, a.metadataNow(r, q, a.autoCreate(ctx, missing)))
	}}
}

// askedOnce drops topics that a request names again.
func askedOnce(topics []kmsg.MetadataRequestTopic) []kmsg.MetadataRequestTopic {
	if len(topics) < 2 {
		return topics
	}
	type key struct {
		name string
		id   protocol.TopicID
	}
	seen := make(map[key]bool, len(topics))
	return slices.DeleteFunc(topics, func(t kmsg.MetadataRequestTopic) bool {
		k := key{id: t.TopicID}
		if t.Topic != nil {
			k.name = *t.Topic
		}
		again := seen[k]
		seen[k] = true
		return again
	})
}

// metadataRefused answers a request that names topics by id in a version that cannot: 10 and 11 have the
// field already (KIP-516).
func metadataRefused(r *Request, q *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	response := respondTo(r, kmsg.NewPtrMetadataResponse())
	response.AuthorizedOperations = notAsked
	for _, asked := range q.Topics {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode, t.Topic, t.TopicID, t.AuthorizedOperations = int16(protocol.InvalidRequest), asked.Topic, asked.TopicID, notAsked
		if t.Topic == nil {
			t.Topic = new(string)
		}
		response.Topics = append(response.Topics, t)
	}
	return response
}

// toCreate lists the topics that the request creates.
func (a *API) toCreate(r *Request, q *kmsg.MetadataRequest) []string {
	if r.Version >= 4 && !q.AllowAutoTopicCreation || !a.Config().Bool("auto.create.topics.enable") {
		return nil
	}
	var missing []string
	image := a.View.Image()
	for _, t := range q.Topics {
		if t.Topic != nil && *t.Topic != "" && t.TopicID == [16]byte{} && image.Topic(*t.Topic) == nil && protocol.ValidateTopicName(*t.Topic) == nil {
			missing = append(missing, *t.Topic)
		}
	}
	return missing
}

// autoCreate creates topics with the broker's defaults and returns why some could not be.
func (a *API) autoCreate(ctx context.Context, names []string) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, autoCreateTimeout)
	defer cancel()
	topics := make([]controller.NewTopic, 0, len(names))
	for _, name := range names {
		topics = append(topics, a.automatic(name))
	}
	failed := map[string]error{}
	for _, result := range a.createOwn(ctx, topics) {
		if result.Err != nil && protocol.CodeOf(result.Err) != protocol.TopicAlreadyExists {
			failed[result.Name] = result.Err
		}
	}
	return failed
}

// metadataNow answers from the present image.
func (a *API) metadataNow(r *Request, q *kmsg.MetadataRequest, failed map[string]error) *kmsg.MetadataResponse {
	image := a.View.Image()
	response := respondTo(r, kmsg.NewPtrMetadataResponse())
	for _, b := range image.Brokers() {
		if e, ok := b.Endpoint(r.Conn.Listener); ok {
			broker := kmsg.NewMetadataResponseBroker()
			broker.NodeID, broker.Host, broker.Port, broker.Rack = int32(b.ID), e.Host, e.Port, b.Rack
			response.Brokers = append(response.Brokers, broker)
		}
	}
	// Everything comes from one image, so that no leader is missing among the brokers of the same answer.
	response.ClusterID = &image.ClusterID
	response.ControllerID = int32(image.Controller)
	response.AuthorizedOperations = operations(q.IncludeClusterAuthorizedOperations, clusterOperations)
	if q.Topics == nil || r.Version == 0 && len(q.Topics) == 0 {
		for _, name := range image.Topics() {
			response.Topics = append(response.Topics, metadataTopic(r, q, image, image.Topic(name)))
		}
		return response
	}
	for _, asked := range q.Topics {
		response.Topics = append(response.Topics, a.metadataAsked(r, q, image, asked, failed))
	}
	return response
}

// metadataAsked answers for one topic of the request, by its id where it has one, otherwise by its name.
func (a *API) metadataAsked(r *Request, q *kmsg.MetadataRequest, image *metadata.Image, asked kmsg.MetadataRequestTopic, failed map[string]error) kmsg.MetadataResponseTopic {
	var found *metadata.Topic
	err := error(protocol.UnknownTopicOrPartition)
	switch {
	case asked.Topic != nil && asked.TopicID == [16]byte{}:
		found = image.Topic(*asked.Topic)
		if protocol.ValidateTopicName(*asked.Topic) != nil {
			err = protocol.InvalidTopic
		} else if failure := failed[*asked.Topic]; failure != nil {
			err = failure
		}
	default:
		found = image.TopicByID(asked.TopicID)
		err = protocol.UnknownTopicID
	}
	if found != nil {
		return metadataTopic(r, q, image, found)
	}
	t := kmsg.NewMetadataResponseTopic()
	t.ErrorCode, t.Topic, t.TopicID = int16(protocol.CodeOf(err)), asked.Topic, asked.TopicID
	if t.Topic == nil && r.Version < 12 {
		t.Topic = new(string)
	}
	if t.Topic != nil {
		t.IsInternal = protocol.IsInternalTopic(*t.Topic)
	}
	t.AuthorizedOperations = notAsked
	return t
}

func metadataTopic(r *Request, q *kmsg.MetadataRequest, image *metadata.Image, topic *metadata.Topic) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID, t.IsInternal = &topic.Name, topic.ID, protocol.IsInternalTopic(topic.Name)
	t.AuthorizedOperations = operations(q.IncludeTopicAuthorizedOperations, topicOperations)
	for number, state := range topic.Partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = int32(number), int32(state.Leader), int32(state.LeaderEpoch)
		p.Replicas, p.ISR, p.OfflineReplicas = ids(state.Replicas), ids(state.ISR), ids(state.Offline)
		if code := unreachable(r, image, state.Leader); code != protocol.None {
			p.ErrorCode, p.Leader = int16(code), int32(protocol.NoBroker)
		}
		t.Partitions = append(t.Partitions, p)
	}
	return t
}

// unreachable says why a client cannot reach a leader: it does not live, or it has no listener of the name by
// which the client came, which versions before 6 cannot tell apart.
func unreachable(r *Request, image *metadata.Image, leader protocol.BrokerID) protocol.Code {
	broker := image.Broker(leader)
	if broker == nil {
		return protocol.LeaderNotAvailable
	}
	if _, ok := broker.Endpoint(r.Conn.Listener); ok {
		return protocol.None
	}
	if r.Version < 6 {
		return protocol.LeaderNotAvailable
	}
	return protocol.ListenerNotFound
}

// ids turns broker ids into what kmsg takes; never nil, which some versions would write as null.
func ids(brokers []protocol.BrokerID) []int32 {
	out := make([]int32, len(brokers))
	for i, b := range brokers {
		out[i] = int32(b)
	}
	return out
}
