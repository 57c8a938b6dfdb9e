package replica

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// fetchSession is the follower's side of a fetch session (KIP-227): the leader remembers the partitions and their
// positions, and a request names only what is new.
type fetchSession struct {
	id    int32
	epoch int32 // of the next request; 0 begins a session, and names everything
	byID  bool  // topics go by id, and not by name
	// forgotten are partitions that the leader is still to be told to forget.
	forgotten map[protocol.TopicPartition]protocol.TopicID
	// names finds the topics of ids, as answers have no names.
	names map[protocol.TopicID]string
}

func newFetchSession() fetchSession {
	return fetchSession{forgotten: map[protocol.TopicPartition]protocol.TopicID{}, names: map[protocol.TopicID]string{}}
}

// reset makes the next request begin a session.
func (s *fetchSession) reset() {
	s.id, s.epoch = 0, 0
	clear(s.forgotten)
}

// forget takes a partition out of the session with the next request, unless that names it again.
func (s *fetchSession) forget(part *following) {
	if part.named {
		part.named = false
		s.forgotten[part.partition.tp] = part.partition.id
	}
}

// answered goes on after an answer; false where the session is not what the leader remembers, and the next
// request has to begin another.
func (s *fetchSession) answered(response *kmsg.FetchResponse) bool {
	switch protocol.Code(response.ErrorCode) {
	case protocol.FetchSessionIDNotFound, protocol.FetchSessionTopicIDError:
		s.reset()
		return false
	case protocol.InvalidFetchSessionEpoch:
		id := s.id
		s.reset()
		s.id = id // so that the leader drops it
		return false
	}
	if s.id = response.SessionID; s.id == 0 {
		s.epoch = 0 // the leader has no room for another session
		return true
	}
	if s.epoch++; s.epoch <= 0 {
		s.epoch = 1
	}
	return true
}
