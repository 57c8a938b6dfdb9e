package group

import "github.com/barnabas-mq/barnabas/internal/protocol"

// coordinatorCode is the code that a client of a coordinator understands for an error of the log behind it:
// those that mean "elsewhere" make it look for the coordinator again, those that mean "not now" retry.
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
