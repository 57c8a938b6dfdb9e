package group

import "github.com/barnabas-mq/barnabas/internal/protocol"

// coordinatorCode is the code that a client of a coordinator understands for an error of the log behind it:
// those that mean "elsewhere" make it look for the coordinator again, those that mean "not now" retry.
//
//	of the log                                            of the coordinator         what clients do
//	UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS,
//	REQUEST_TIMED_OUT                                     COORDINATOR_NOT_AVAILABLE  wait, look for it, retry
//	NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR,
//	FENCED_LEADER_EPOCH                                   NOT_COORDINATOR            look for it, retry
//	MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE,
//	INVALID_FETCH_SIZE                                    UNKNOWN_SERVER_ERROR       give up: no retry can help
//
// The codes of the log must not get through: to a consumer UNKNOWN_TOPIC_OR_PARTITION would speak of its own
// topics.
func coordinatorCode(err error) protocol.Code {
	switch code := protocol.CodeOf(err); code {
	case protocol.UnknownTopicOrPartition, protocol.NotEnoughReplicas, protocol.RequestTimedOut:
		return protocol.CoordinatorNotAvailable
	case protocol.NotLeaderOrFollower, protocol.KafkaStorageError, protocol.FencedLeaderEpoch:
		return protocol.NotCoordinator
	case protocol.MessageTooLarge, protocol.RecordListTooLarge, protocol.InvalidFetchSize:
		return protocol.UnknownServerError
	default:
		return code
	}
}

// fetchCode is coordinatorCode for OffsetFetch, whose older clients know less.
func fetchCode(err error) protocol.Code {
	if code := coordinatorCode(err); code != protocol.CoordinatorNotAvailable {
		return code
	}
	return protocol.NotCoordinator
}
