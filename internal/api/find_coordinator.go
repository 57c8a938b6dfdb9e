package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The types of keys that FindCoordinator knows.
const (
	groupKey       = 0
	transactionKey = 1
	shareKey       = 2
)

// findCoordinator tells which broker leads the internal partition that a group belongs to (versions 0 to 6;
// many keys at once from 4 on). The first request for a group makes __consumer_offsets.
//
//	1  type of the key, throttle time, messages    3  flexible
//	2  quotas first, then muting (KIP-219)         4  many keys, each with its error; 6 share groups
//
// A client that gets COORDINATOR_NOT_AVAILABLE asks again; it is what the moment between creating the topic and
// its first leader looks like. INVALID_REQUEST is final, for what will not come.
func (a *API) findCoordinator(ctx context.Context, r *Request, q *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	response := respondTo(r, kmsg.NewPtrFindCoordinatorResponse())
	keys := q.CoordinatorKeys
	if r.Version < 4 {
		keys = []string{q.CoordinatorKey}
	}
	for _, key := range keys {
		response.Coordinators = append(response.Coordinators, a.coordinator(ctx, r, q.CoordinatorType, key))
	}
	if r.Version < 4 {
		only := response.Coordinators[0]
		response.ErrorCode, response.ErrorMessage = only.ErrorCode, only.ErrorMessage
		response.NodeID, response.Host, response.Port = only.NodeID, only.Host, only.Port
		response.Coordinators = nil
	}
	return response
}

// coordinator answers for one key, with the leader's address on the client's own listener.
func (a *API) coordinator(ctx context.Context, r *Request, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	answer := kmsg.NewFindCoordinatorResponseCoordinator()
	answer.Key, answer.NodeID, answer.Port = key, -1, -1
	leader, err := a.coordinatorOf(ctx, kind, key)
	if err == nil {
		broker := a.View.Image().Broker(leader)
		err = protocol.CoordinatorNotAvailable
		if broker != nil {
			if e, ok := broker.Endpoint(r.Conn.Listener); ok {
				answer.NodeID, answer.Host, answer.Port = int32(leader), e.Host, e.Port
				answer.ErrorMessage = new(string) // Kafka says "", not null
				return answer
			}
		}
	}
	answer.ErrorCode, answer.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
	return answer
}

// coordinatorOf finds the leader of a key's partition.
func (a *API) coordinatorOf(ctx context.Context, kind int8, key string) (protocol.BrokerID, error) {
	switch kind {
	case groupKey:
	case transactionKey:
		a.Logger.Warn("a client asks for a transaction coordinator: transactions are not supported yet", "transactional_id", key)
		return protocol.NoBroker, protocol.Errorf(protocol.InvalidRequest, "Transactions are not supported yet.")
	case shareKey:
		return protocol.NoBroker, protocol.Errorf(protocol.InvalidRequest, "Share groups are not supported yet.")
	default:
		return protocol.NoBroker, protocol.Errorf(protocol.InvalidRequest, "Coordinator key type %d is not known.", kind)
	}
	topic := a.View.Image().Topic(protocol.GroupMetadataTopic)
	if topic == nil {
		if err := a.createInternal(ctx, protocol.GroupMetadataTopic); err != nil {
			a.Logger.Error("an internal topic cannot be created", "topic", protocol.GroupMetadataTopic, "error", err)
			return protocol.NoBroker, protocol.CoordinatorNotAvailable
		}
		topic = a.View.Image().Topic(protocol.GroupMetadataTopic)
	}
	// The topic may have been made by hand, with fewer partitions than this broker was started with.
	if number := a.Groups.PartitionFor(key); topic != nil && int(number) < len(topic.Partitions) {
		return topic.Partitions[number].Leader, nil
	}
	return protocol.NoBroker, protocol.CoordinatorNotAvailable
}

// createInternal makes an internal topic; another request may have done so first.
func (a *API) createInternal(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, autoCreateTimeout)
	defer cancel()
	err := a.createOwn(ctx, []controller.NewTopic{a.automatic(name)})[0].Err
	if protocol.CodeOf(err) == protocol.TopicAlreadyExists {
		return nil
	}
	return err
}
