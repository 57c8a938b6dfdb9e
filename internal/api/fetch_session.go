package api

import (
	"container/list"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/server"
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
//
// Locks: mu guards the cache and each session's epoch, ended, lastUsed and place; busy guards what is in
// a session and is held for all of a request, waits included. mu is never held while busy is waited for:
// TryLock only.
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
//
// Its life:
//
//	request epoch 0 → begin → answered → keep: it has an id now, if there is room
//	request epoch e → find: busy taken, epoch + 1 → update → answered → release
//	ended by a client, evicted, or without an id → close, at once or when its request is answered
//
// A client that counts wrongly, or whose answer was lost, gets INVALID_FETCH_SESSION_EPOCH and begins a new
// one; a broker without room answers with session 0, and the client names all its partitions every time.
type session struct {
	id       int32
	epoch    int32 // that the next request must carry
	byID     bool  // names topics by id
	follower bool  // of a broker that follows
	speaker  speaker
	lastUsed time.Time
	ended    bool // taken out of the cache, whose lock guards this

	// busy is held while a request works on the session.
	busy sync.Mutex
	// parts is indexed by the watcher's keys. free lists those that were forgotten: a client that holds
	// records of a partition back forgets it, and asks again.
	parts   []fetchPart
	free    []int
	keys    map[fetchKey]int
	watcher *replica.Watcher // nil until something is watched
	// asleep is the request that waits; nil for none. Who wakes it looks here without busy.
	asleep atomic.Pointer[server.Sleep]
	// unwatched says that a partition that was found may have no watch yet.
	unwatched bool
	// queue lists the keys to look at, first come first served; a part's queued marks that it is there.
	// spare is room for the next one.
	queue, spare []int
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
	start     protocol.Offset // a follower's log start offset
	reported  bool            // this request says so: for a follower it is a position
	used      bool            // false for one that was forgotten

	partition *replica.Partition // nil until found
	watch     *replica.Watch     // nil until the session is kept or something waits
	queued    bool
	result    int // index of this request's result, -1 none

	// What the client was told last, in a session.
	toldWatermark, toldStart protocol.Offset
}

// find gives the session that a request names, its lock taken, or the error for the whole answer; nil where
// it is to be a new one.
func (s *sessions) find(q *fetchRequest) (*session, error) {
	byID := q.version >= 13
	if q.epoch == sessionEpochInitial || q.epoch == sessionEpochFinal {
		s.end(q.session)
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.byID[q.session]
	if element == nil {
		return nil, protocol.FetchSessionIDNotFound
	}
	found := element.Value.(*session)
	switch { // in Kafka's order
	case found.epoch != q.epoch:
		return nil, protocol.InvalidFetchSessionEpoch
	case found.byID != byID:
		return nil, protocol.FetchSessionTopicIDError
	case !found.busy.TryLock(): // the request before this one still waits, on another connection
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
	if len(s.byID) >= s.slots && !s.evict() && !(fresh.follower && s.evictConsumer()) {
		return
	}
	for fresh.id == 0 || s.byID[fresh.id] != nil {
		fresh.id = rand.Int32()
	}
	fresh.epoch, fresh.lastUsed = nextEpoch(sessionEpochInitial), s.now()
	s.byID[fresh.id] = s.order.PushBack(fresh)
}

// evict makes room by ending the session that was idle longest, if it was idle for long enough.
//
// Kafka also lets followers push consumers out and large sessions small ones; here age alone counts.
func (s *sessions) evict() bool {
	oldest := s.order.Front()
	if oldest == nil {
		return false
	}
	victim := oldest.Value.(*session)
	if s.now().Sub(victim.lastUsed) < sessionIdle || !victim.busy.TryLock() {
		return false
	}
	victim.busy.Unlock() // nobody takes it meanwhile: that needs mu
	s.remove(oldest)
	return true
}

// evictConsumer makes room by ending the session of a consumer, that which was idle longest of those that no
// request works on. Followers come first, as in Kafka: there are few of them, and each names many partitions.
func (s *sessions) evictConsumer() bool {
	for at := s.order.Front(); at != nil; at = at.Next() {
		victim := at.Value.(*session)
		if victim.follower || !victim.busy.TryLock() {
			continue
		}
		victim.busy.Unlock()
		s.remove(at)
		return true
	}
	return false
}

// end forgets a session, also while a request works on it; 0 and unknown ids are none.
func (s *sessions) end(id int32) {
	if id == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if element := s.byID[id]; element != nil {
		s.remove(element)
	}
}

// remove takes a session out of the cache. Where a request works on it, [sessions.release] does the rest.
func (s *sessions) remove(element *list.Element) {
	gone := element.Value.(*session)
	s.order.Remove(element)
	delete(s.byID, gone.id)
	gone.ended = true
	if gone.busy.TryLock() {
		gone.close()
		gone.busy.Unlock()
	}
}

// release gives back the session of a request that is answered. One that is not in the cache ends here.
func (s *sessions) release(used *session) {
	if used.id != 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	if used.id == 0 || used.ended {
		used.close()
	}
	used.busy.Unlock()
}

func nextEpoch(epoch int32) int32 {
	if epoch == 1<<31-1 {
		return 1
	}
	return epoch + 1
}

// close ends the session's watches.
func (s *session) close() {
	for i := range s.parts {
		s.parts[i].unwatch()
	}
}

// begin makes an empty session one of a request, its lock taken.
func (s *session) begin(byID, follower bool) {
	s.busy.Lock()
	s.byID, s.follower = byID, follower
	if s.keys == nil {
		s.keys = map[fetchKey]int{}
	}
}

// reset makes a session without an id ready for another request.
func (s *session) reset() {
	clear(s.keys)
	clear(s.parts)
	s.unwatched = false
	s.parts, s.free, s.queue, s.spare = s.parts[:0], s.free[:0], s.queue[:0], s.spare[:0]
	s.watcher = nil
}

// speaker is who fetches as a follower, as far as positions are good for no other one: the life of a broker, which
// begins with its registration, and how often it has left the cluster as seen from here.
type speaker struct {
	life protocol.BrokerEpoch
	left int64
}

// hear takes over who speaks. Leaders know the positions of another one only, or none; and who waits at the log end
// names its partitions no more. So all of them are reported again, as this speaker's.
func (s *session) hear(from speaker) {
	if s.speaker == from {
		return
	}
	s.speaker = from
	for key := range s.parts {
		if part := &s.parts[key]; part.used {
			part.reported = true
			s.enqueue(key)
		}
	}
}

// update takes over what a request says about its partitions: new ones, new offsets, forgotten ones.
func (s *session) update(a *API, q *fetchRequest) {
	topics := q.topics
	q.eachPartition(&topics, func(topic fetchTopic, asked fetchAsked) { s.put(a, topic, asked) })
	if q.version >= 7 {
		forgotten := q.forgotten
		q.eachForgotten(&forgotten, s.forget)
	}
}

func (s *session) put(a *API, topic fetchTopic, asked fetchAsked) {
	at, known := s.keys[fetchKey{string(topic.name), topic.id, asked.number}]
	if !known {
		at = s.add(fetchKey{a.nameInFrame(topic.name), topic.id, asked.number})
	}
	part := &s.parts[at]
	part.offset, part.maxBytes, part.lastEpoch = asked.offset, asked.maxBytes, asked.lastEpoch
	part.epoch, part.start, part.reported = max(asked.epoch, protocol.NoLeaderEpoch), asked.start, true
	if part.name == "" {
		part.name, _ = a.topicName(true, "", topic.id)
	}
	s.enqueue(at)
}

// add gives a partition a place.
func (s *session) add(key fetchKey) int {
	at := len(s.parts)
	if last := len(s.free) - 1; last >= 0 {
		at, s.free = s.free[last], s.free[:last]
	} else {
		s.parts = append(s.parts, fetchPart{})
	}
	queued := s.parts[at].queued // of the one that was forgotten: the queue has the key already
	s.parts[at] = fetchPart{fetchKey: key, name: key.topic, used: true, queued: queued, result: -1, toldWatermark: -1, toldStart: -1}
	s.keys[key] = at
	return at
}

// ownName is a topic's name in memory that does not go with the frame.
func (a *API) ownName(name string) string {
	if topic := a.View.Image().Topic(name); topic != nil {
		return topic.Name
	}
	return strings.Clone(name)
}

// nameInFrame is ownName for a name that is read in place; that of a topic that is known costs no allocation.
func (a *API) nameInFrame(name []byte) string {
	if topic := a.View.Image().TopicInFrame(name); topic != nil {
		return topic.Name
	}
	return string(name)
}

func (s *session) forget(topic fetchTopic, number int32) {
	key := fetchKey{string(topic.name), topic.id, number}
	at, ok := s.keys[key]
	if !ok {
		return
	}
	part := &s.parts[at]
	part.unwatch()
	*part = fetchPart{queued: part.queued, result: -1}
	delete(s.keys, key)
	s.free = append(s.free, at)
}

// enqueue asks for a look at a partition.
func (s *session) enqueue(key int) {
	if part := &s.parts[key]; !part.queued {
		part.queued = true
		s.queue = append(s.queue, key)
	}
}

// collect puts the partitions that became dirty into the queue. A key may be of a partition that has been
// forgotten since, or of the next one in its place: a look too many does no harm.
//
// Looking at a partition costs a lock and a read of its bounds; a session over thousands of quiet ones does
// neither.
func (s *session) collect() {
	if s.watcher == nil {
		return
	}
	var buffer [16]int
	for _, key := range s.watcher.Take(buffer[:0]) {
		if watch := s.parts[key].watch; watch != nil {
			watch.Arm()
			s.enqueue(key)
		}
	}
}

// watchAll begins to watch the partitions that are not watched yet. Each of them is dirty at first, so that
// what came since the look at it is not lost.
func (s *session) watchAll() {
	if s.watcher == nil {
		s.watcher = replica.NewWatcher(s.wake)
	}
	if !s.unwatched {
		return
	}
	s.unwatched = false
	for key := range s.parts {
		if part := &s.parts[key]; part.watch == nil && part.partition != nil {
			part.watch = part.partition.Watch(s.watcher, key, s.follower)
		}
	}
}

// wake runs the request that waits, if there is one: what has become dirty before that began it finds by itself.
func (s *session) wake() {
	if waiting := s.asleep.Load(); waiting != nil {
		waiting.Wake()
	}
}

func (p *fetchPart) unwatch() {
	if p.watch != nil {
		p.watch.Close()
		p.watch = nil
	}
}
