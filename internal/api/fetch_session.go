package api

import (
	"container/list"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
)

// Fetch sessions (KIP-227): a client names its partitions once, and from then on only what changes. The
// session keeps a watch on each partition, so that a fetch over a thousand of them looks only at those that
// may have something new.
//
//	session id  epoch  means
//	0           0      begin a session
//	0           -1     no session, a fetch by itself
//	n           0      end session n, begin another
//	n           -1     end session n
//	n           e      the next fetch of session n; e counts from 1
const (
	sessionEpochInitial = 0
	sessionEpochFinal   = -1
)

// sessionIdle is how long a session must have been idle before a new one may take its place.
const sessionIdle = 2 * time.Minute

// sessions is the bounded cache of the broker's sessions.
type sessions struct {
	slots int
	now   func() time.Time

	mu    sync.Mutex
	byID  map[int32]*list.Element // of *session
	order *list.List              // least recently used first
}

func newSessions(slots int, now func() time.Time) *sessions {
	return &sessions{slots: slots, now: now, byID: map[int32]*list.Element{}, order: list.New()}
}

// session is a set of partitions that one client fetches. Without an id it lives for one request.
type session struct {
	id       int32
	epoch    int32 // that the next request must carry
	byID     bool  // names topics by id
	lastUsed time.Time

	// busy is held while a request works on the session.
	busy sync.Mutex
	// parts is indexed by the watcher's keys; nil where a partition was forgotten.
	parts   []*fetchPart
	keys    map[fetchKey]int
	watcher *replica.Watcher // nil until something waits
	// queue lists the keys to look at, first come first served; queued marks what is in it.
	queue []int
}

// fetchKey names a partition within a session; the name is empty where topics go by id.
type fetchKey struct {
	topic  string
	id     protocol.TopicID
	number int32
}

// fetchPart is one partition of a session.
type fetchPart struct {
	fetchKey
	name     string // of the topic, also where it goes by id
	offset   protocol.Offset
	maxBytes int32
	epoch    protocol.LeaderEpoch // as the client knows it; below 0 it does not
	// lastEpoch is the epoch of the last record that the client has; below 0 it does not say.
	lastEpoch protocol.LeaderEpoch
	limit     protocol.Offset // unused for consumers

	partition *replica.Partition // nil until found
	watch     *replica.Watch     // nil until something waits
	queued    bool
	result    int // index of this request's result, -1 none

	// What the client was told last, in a session.
	toldWatermark, toldStart protocol.Offset
}

// find gives the session that a request names, its lock taken, or the error for the whole answer. The
// session of a full fetch is new and has no id yet.
func (s *sessions) find(q *kmsg.FetchRequest) (*session, error) {
	byID := q.Version >= 13
	if q.SessionEpoch == sessionEpochInitial || q.SessionEpoch == sessionEpochFinal {
		s.end(q.SessionID)
		fresh := &session{byID: byID, keys: map[fetchKey]int{}}
		fresh.busy.Lock()
		return fresh, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.byID[q.SessionID]
	if element == nil {
		return nil, protocol.FetchSessionIDNotFound
	}
	found := element.Value.(*session)
	switch {
	case found.byID != byID:
		return nil, protocol.FetchSessionTopicIDError
	case found.epoch != q.SessionEpoch, !found.busy.TryLock():
		return nil, protocol.InvalidFetchSessionEpoch
	}
	found.epoch = nextEpoch(found.epoch)
	found.lastUsed = s.now()
	s.order.MoveToBack(element)
	return found, nil
}

// keep gives a new session an id, unless the cache is full of sessions that are in use.
func (s *sessions) keep(fresh *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= s.slots && !s.evict() {
		return
	}
	for fresh.id == 0 || s.byID[fresh.id] != nil {
		fresh.id = rand.Int32()
	}
	fresh.epoch, fresh.lastUsed = nextEpoch(sessionEpochInitial), s.now()
	s.byID[fresh.id] = s.order.PushBack(fresh)
}

// evict makes room by ending the session that was idle longest, if it was idle for long enough.
func (s *sessions) evict() bool {
	oldest := s.order.Front()
	if oldest == nil {
		return false
	}
	victim := oldest.Value.(*session)
	if s.now().Sub(victim.lastUsed) < sessionIdle || !victim.busy.TryLock() {
		return false
	}
	defer victim.busy.Unlock()
	s.remove(oldest)
	return true
}

// end forgets a session; 0 and unknown ids are none.
func (s *sessions) end(id int32) {
	if id == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.byID[id]
	if element == nil || !element.Value.(*session).busy.TryLock() {
		return
	}
	defer element.Value.(*session).busy.Unlock()
	s.remove(element)
}

func (s *sessions) remove(element *list.Element) {
	gone := element.Value.(*session)
	s.order.Remove(element)
	delete(s.byID, gone.id)
	gone.close()
}

// count is how many sessions are kept, and how many partitions they hold.
func (s *sessions) count() (sessions, partitions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.order.Front(); e != nil; e = e.Next() {
		partitions += len(e.Value.(*session).keys)
	}
	return len(s.byID), partitions
}

func nextEpoch(epoch int32) int32 {
	if epoch == 1<<31-1 {
		return 1
	}
	return epoch + 1
}

// close ends the session's watches.
func (s *session) close() {
	for _, part := range s.parts {
		part.unwatch()
	}
}

// update takes over what a request says about its partitions: new ones, new offsets, forgotten ones.
func (s *session) update(a *API, q *kmsg.FetchRequest) {
	for i := range q.Topics {
		t := &q.Topics[i]
		for j := range t.Partitions {
			s.put(a, fetchKey{t.Topic, t.TopicID, t.Partitions[j].Partition}, &t.Partitions[j])
		}
	}
	for _, t := range q.ForgottenTopics {
		for _, number := range t.Partitions {
			s.forget(fetchKey{t.Topic, t.TopicID, number})
		}
	}
}

func (s *session) put(a *API, key fetchKey, asked *kmsg.FetchRequestTopicPartition) {
	at, known := s.keys[key]
	if !known {
		at = len(s.parts)
		s.keys[key] = at
		s.parts = append(s.parts, &fetchPart{fetchKey: key, name: key.topic, result: -1, toldWatermark: -1, toldStart: -1})
	}
	part := s.parts[at]
	part.offset, part.maxBytes = protocol.Offset(asked.FetchOffset), asked.PartitionMaxBytes
	part.epoch = max(protocol.LeaderEpoch(asked.CurrentLeaderEpoch), protocol.NoLeaderEpoch)
	part.lastEpoch = protocol.LeaderEpoch(asked.LastFetchedEpoch)
	if part.name == "" {
		part.name, _ = a.topicName(true, "", key.id)
	}
	s.enqueue(at)
}

func (s *session) forget(key fetchKey) {
	if at, ok := s.keys[key]; ok {
		s.parts[at].unwatch()
		s.parts[at] = nil
		delete(s.keys, key)
	}
}

// enqueue asks for a look at a partition.
func (s *session) enqueue(key int) {
	if part := s.parts[key]; part != nil && !part.queued {
		part.queued = true
		s.queue = append(s.queue, key)
	}
}

// collect puts the partitions that became dirty into the queue.
func (s *session) collect() {
	if s.watcher == nil {
		return
	}
	var buffer [16]int
	for _, key := range s.watcher.Take(buffer[:0]) {
		if part := s.parts[key]; part != nil {
			part.watch.Arm()
			s.enqueue(key)
		}
	}
}

// watchAll begins to watch the partitions that are not watched yet. Each of them is dirty at first.
func (s *session) watchAll() {
	if s.watcher == nil {
		s.watcher = replica.NewWatcher()
	}
	for key, part := range s.parts {
		if part != nil && part.watch == nil && part.partition != nil {
			part.watch = part.partition.Watch(s.watcher, key)
		}
	}
}

func (p *fetchPart) unwatch() {
	if p != nil && p.watch != nil {
		p.watch.Close()
		p.watch = nil
	}
}
