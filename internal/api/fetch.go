package api

import (
	"context"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// fetch reads from many partitions (versions 4 to 18; sessions from 7, topic ids from 13 on).
//
// The first look runs in the connection's reader. Where it finds fewer than min_bytes, the request sleeps:
// appends mark the partitions that it watches, and only those are looked at again, by whoever has appended.
func (a *API) fetch(ctx context.Context, r *Request, body []byte) server.Reply {
	q, err := decodeFetch(r.Version, body)
	if err != nil {
		return a.malformed(r, err)
	}
	if q.isolation < 0 || q.isolation > 1 {
		return server.Reply{Response: a.fetchImpossible(r, &q, protocol.UnknownServerError)} // Kafka's answer too
	}
	s, err := a.sessions.find(&q)
	if err != nil {
		return server.Reply{Response: a.fetchRefused(r, err)}
	}
	f := r.pools.fetches.Get().(*fetch)
	f.begin(a, r, &q, s)
	f.ctx = ctx
	defer f.leave()
	if f.follower {
		f.session.hear(speaker{q.brokerEpoch, a.Replicas.Heard(f.replica)})
	}
	f.session.update(a, &q)
	f.look()
	wait := q.maxWait
	if f.enough() || wait <= 0 || len(f.session.keys) == 0 {
		return server.Reply{Response: f.answer()}
	}
	f.phase = waiting
	return server.Reply{Phase: f, Timeout: wait, Yields: f.follower}
}

// fetch is one request in work, pooled; it holds the session's lock until it is answered.
type fetch struct {
	api     *API
	request *Request
	ctx     context.Context // of the connection
	session *session
	own     session // for a request without a session

	minBytes int
	left     int // bytes that the answer may still grow by
	found    int // bytes found
	// committed is read_committed. full answers with every partition, final keeps no session.
	committed, full, final bool
	// follower says that a broker fetches what it follows: replica, in the life of brokerEpoch.
	follower    bool
	replica     protocol.BrokerID
	brokerEpoch protocol.BrokerEpoch
	// rack is where a consumer is that may be sent to a follower there.
	rack string
	// failed is set where a partition has an error, diverges or is to be read elsewhere, which the client should
	// learn at once.
	failed bool
	// held is when more may be sent to a follower of what is throttled.
	held    time.Duration
	results []fetchResult
	again   []int // keys that go to the end of the queue
	phase   fetchPhase
}

// fetchPhase says where a fetch stands, and thereby who gives back what it holds.
type fetchPhase int8

const (
	looking  fetchPhase = iota // session and slices are the running function's to give back
	waiting                    // they are those of the next run
	answered                   // the session is given back, the slices are the response's
)

// begin takes over a request; s is nil where it has no session yet.
func (f *fetch) begin(a *API, r *Request, q *fetchRequest, s *session) {
	f.api, f.request, f.session = a, r, s
	f.follower, f.replica, f.brokerEpoch = q.replica >= 0, q.replica, q.brokerEpoch
	f.rack = a.rackOf(q)
	f.left = q.maxBytes
	if !f.follower {
		f.left = min(f.left, int(a.Config().Int("fetch.max.bytes")))
	}
	f.minBytes = min(q.minBytes, f.left) // more than fits would never come
	f.found, f.failed, f.phase = 0, false, looking
	f.committed, f.full, f.final = q.isolation == 1 && !f.follower, s == nil, q.epoch == sessionEpochFinal
	if s == nil && f.final {
		f.session = &f.own
	} else if s == nil {
		f.session = new(session)
	}
	if s == nil {
		f.session.begin(q.version >= 13, f.follower)
	}
}

// leave is called deferred at the end of each function that works on a request. Where a bug has cut it short
// the session ends, as nobody knows what state it is in; neither its lock nor a pinned file stays behind.
func (f *fetch) leave() {
	switch f.phase {
	case answered:
		f.end()
	case looking:
		f.session.asleep.Store(nil)
		for i := range f.results {
			f.results[i].slice.Release()
		}
		f.api.sessions.end(f.session.id)
		f.api.sessions.release(f.session)
	}
}

// partsKept is for how many partitions memory is kept for the next request.
const partsKept = 1024

// end gives the parts back for another request.
func (f *fetch) end() {
	clear(f.results)
	f.results, f.again = f.results[:0], f.again[:0]
	if cap(f.results) > partsKept {
		f.results = nil
	}
	if cap(f.own.parts) > partsKept {
		f.own.keys, f.own.parts = nil, nil
	}
	f.own.reset()
	pools := f.request.pools
	f.api, f.request, f.session, f.ctx = nil, nil, nil, nil
	pools.fetches.Put(f)
}

// fetchResult is what one partition answers.
type fetchResult struct {
	key     int
	part    *fetchPart
	err     error
	slice   log.Slice
	aborted []log.AbortedTransaction
	// diverging says where the client's last epoch ended here, where that is before what it has fetched.
	diverging *epochEnd
	// watermark, stable and start are -1 where the partition cannot tell.
	watermark, stable, start protocol.Offset
	// limit is up to where the client may read.
	limit protocol.Offset
	// throttled says that what a follower gets counts for leader.replication.throttled.rate.
	throttled bool
	// preferred is the replica that the client should read from instead; NoBroker for this one.
	preferred protocol.BrokerID
}

// epochEnd is the end of a leader epoch: the offset behind its last record.
type epochEnd struct {
	epoch protocol.LeaderEpoch
	end   protocol.Offset
}

func (f *fetch) enough() bool { return f.found >= f.minBytes || f.failed }

// look reads the queued partitions. Those whose records do not fit any more, and those that records of are
// sent, stay in the queue: the former come first in the next request, the latter last.
func (f *fetch) look() {
	s := f.session
	f.held = forever
	s.collect()
	queue := s.queue
	s.queue, s.spare = s.spare[:0], queue
	f.again = f.again[:0]
	for _, key := range queue {
		part := &s.parts[key]
		if f.left <= 0 && f.found > 0 && !f.full && !(f.follower && part.reported) {
			s.queue = append(s.queue, key)
			continue
		}
		part.queued = false
		if !part.used {
			continue
		}
		f.forgetResult(part)
		result := f.read(part)
		result.key = key
		kept := f.keepResult(result)
		switch {
		case kept && (result.slice.Length > 0 || result.err != nil):
			f.again = append(f.again, key)
		case f.behind(&result):
			s.enqueue(key)
		}
	}
	for _, key := range f.again {
		s.enqueue(key)
	}
}

// behind reports whether a partition has records that did not fit into the answer.
func (f *fetch) behind(result *fetchResult) bool {
	return result.err == nil && result.diverging == nil && result.slice.Length == 0 && result.part.offset < result.limit
}

// keepResult adds a result where the client has to learn of it.
func (f *fetch) keepResult(result fetchResult) bool {
	part := result.part
	news := f.full || result.err != nil || result.slice.Length > 0 || result.diverging != nil || result.preferred != protocol.NoBroker ||
		result.watermark != part.toldWatermark || result.start != part.toldStart
	if !news {
		return false
	}
	if f.follower && part.toldStart >= 0 && result.start != part.toldStart {
		f.failed = true // who deletes records waits until the followers have heard of it
	}
	f.failed = f.failed || result.err != nil || result.diverging != nil || result.preferred != protocol.NoBroker
	f.found += result.slice.Length
	f.left -= result.slice.Length
	part.result = len(f.results)
	f.results = append(f.results, result)
	return true
}

// forgetResult drops what an earlier look of this request found in a partition.
func (f *fetch) forgetResult(part *fetchPart) {
	if part.result < 0 {
		return
	}
	old := &f.results[part.result]
	f.found -= old.slice.Length
	f.left += old.slice.Length
	old.slice.Release()
	*old = fetchResult{}
	part.result = -1
}

// read looks at one partition. With an error its offsets are not told, as in Kafka.
func (f *fetch) read(part *fetchPart) fetchResult {
	result := f.readPart(part)
	if result.err != nil {
		result.watermark, result.stable, result.start = -1, -1, -1
	}
	return result
}

func (f *fetch) readPart(part *fetchPart) fetchResult {
	result := fetchResult{part: part, watermark: -1, stable: -1, start: -1, preferred: protocol.NoBroker}
	if result.err = f.locate(part); result.err != nil {
		part.unwatch()
		part.partition = nil
		return result
	}
	f.session.unwatched = f.session.unwatched || part.watch == nil
	epoch, _ := part.partition.Leader()
	bounds := part.partition.Bounds()
	result.watermark, result.stable, result.start = bounds.HighWatermark, bounds.LastStable, bounds.Start
	if result.diverging, result.err = divergence(part); result.err != nil || result.diverging != nil {
		return result
	}
	if result.preferred = f.preferred(part); result.preferred != protocol.NoBroker {
		return result
	}
	if result.limit = bounds.Limit(f.committed); f.follower {
		result.limit = bounds.End
	}
	if f.mayRead(&result) {
		f.readRecords(&result)
	}
	if f.follower && result.err == nil {
		f.report(&result, epoch)
	}
	return result
}

// mayRead reports whether records may be sent: not to a follower that is to be throttled, for now.
func (f *fetch) mayRead(result *fetchResult) bool {
	if !f.follower {
		return true
	}
	counts, held := result.part.partition.Throttled(f.ctx, f.replica)
	if held > 0 {
		f.held = min(f.held, held)
		return false
	}
	result.throttled = counts
	return true
}

// readRecords finds the records that the answer has room for.
func (f *fetch) readRecords(result *fetchResult) {
	part, limit := result.part, result.limit
	size := min(int(part.maxBytes), max(f.left, 0))
	slice, err := part.partition.Read(part.offset, size, limit, f.found == 0)
	if err != nil {
		result.err = err
		return
	}
	result.slice = slice
	if f.committed {
		result.aborted = []log.AbortedTransaction{}
	}
	if f.committed && slice.Length > 0 {
		// Up to the limit, not the slice's end: an entry too many does no harm, one too few does.
		aborted, err := part.partition.Log().Aborted(part.offset, limit)
		if err != nil {
			slice.Release()
			result.slice, result.err = log.Slice{}, err
		}
		result.aborted = append(result.aborted, aborted...) // none is not null, which is for read_uncommitted
	}
}

// report tells the leader how far a follower is, once for each time that the follower says so. It has all that is
// before the offset that it fetches from: its log agrees with this one up to there, in the given leader epoch.
func (f *fetch) report(result *fetchResult, epoch protocol.LeaderEpoch) {
	part := result.part
	if !part.reported {
		return
	}
	part.reported = false
	q := partition.Fetch{Replica: f.replica, Epoch: f.brokerEpoch, Offset: part.offset, Start: part.start}
	if err := part.partition.Followed(f.ctx, q, epoch); err != nil {
		if part.epoch < 0 && protocol.CodeOf(err) == protocol.UnknownLeaderEpoch {
			// A broker that names no epoch cannot know a newer one.
			err = protocol.NotLeaderOrFollower
		}
		result.slice.Release()
		result.slice, result.err = log.Slice{}, err
	}
}

// divergence compares the epoch of the last record that a client has with this log (KIP-595): nil where the
// client's records are a part of it. An epoch that this log never had leaves nothing to compare.
func divergence(part *fetchPart) (*epochEnd, error) {
	l := part.partition.Log()
	if part.lastEpoch < 0 || l == nil || part.offset < l.StartOffset() { // BR-031: that is out of range first
		return nil, nil
	}
	epoch, end := l.EndOffsetForEpoch(part.lastEpoch)
	switch {
	case epoch < 0 || end < 0:
		return nil, protocol.OffsetOutOfRange
	case epoch < part.lastEpoch || end < part.offset:
		return &epochEnd{epoch, end}, nil
	}
	return nil, nil
}

// locate finds the partition behind a part and checks that it may be read here.
func (f *fetch) locate(part *fetchPart) error {
	if part.name == "" && f.session.byID {
		name, err := f.api.topicName(true, "", part.id)
		if err != nil {
			return err
		}
		part.name = name
	}
	p := part.partition
	if p == nil {
		found, err := f.api.Replicas.Partition(protocol.TopicPartition{Topic: part.name, Partition: part.number})
		if err != nil {
			if f.session.byID {
				part.name = ""
			}
			return err
		}
		p = found
	}
	if f.session.byID && p.TopicID() != part.id {
		part.name = ""
		return protocol.UnknownTopicID
	}
	check := p.CheckLeader
	if !f.follower && f.request.Version >= 11 { // KIP-392
		check = p.CheckReplica
	}
	if err := check(part.epoch); err != nil {
		return err
	}
	part.partition = p
	return nil
}

// forever is longer than any request waits.
const forever = time.Duration(1<<63 - 1)

// Run is the second phase: it looks again, and answers when there is enough or the time is up.
//
// It looks at what became dirty only: over a thousand quiet partitions an append costs one look. What comes between the
// first look and this one is dirty from the start, see [session.watchAll].
func (f *fetch) Run(s *server.Sleep, why server.Why) *server.Response {
	f.phase = looking
	defer f.leave()
	switch {
	case why&server.Ended != 0: // nobody reads it, or the broker stops and waits for this answer
		return f.answer()
	case why&(server.TimeUp|server.Overtaken) != 0: // overtaken: there are other partitions to follow
		f.lookAgain()
		return f.answer()
	case why&server.Begun != 0:
		f.session.asleep.Store(s)
		f.session.watchAll()
	}
	f.look()
	if f.enough() {
		return f.answer()
	}
	if f.held < forever {
		s.WakeAfter(f.held)
	}
	f.phase = waiting
	return nil
}

// lookAgain finds out what a follower is to learn although it does not wait for it: what is committed.
func (f *fetch) lookAgain() {
	if f.follower {
		f.look()
	}
}

// answer frames the results and gives the session back.
func (f *fetch) answer() *server.Response {
	s := f.session
	s.asleep.Store(nil)
	switch {
	case len(s.keys) == 0:
		f.api.sessions.end(s.id) // nothing is left in it
	case f.full && !f.final:
		f.api.sessions.keep(s)
	}
	for i := range f.results {
		result := &f.results[i]
		if part := result.part; part != nil {
			part.toldWatermark, part.toldStart, part.result = result.watermark, result.start, -1
			if result.err != nil {
				part.toldWatermark, part.toldStart = -1, -1
			}
			f.count(result)
		}
	}
	id := s.id
	if len(s.keys) == 0 {
		id = 0
	}
	if id != 0 {
		// Now, and not when a request waits: while one partition has enough for every answer none does, and
		// nobody would look at the others.
		s.watchAll()
	}
	response := frameFetch(f.request, protocol.None, id, s.byID, f.results)
	f.phase = answered
	f.api.sessions.release(s)
	return response
}

// count adds a result to the topic's traffic.
func (f *fetch) count(result *fetchResult) {
	if result.throttled {
		f.api.Replicas.Sent(result.slice.Length)
	}
	if result.err == nil && result.slice.Length == 0 {
		return
	}
	if f.api.View.Image().Topic(result.part.name) == nil {
		return
	}
	counters := f.api.traffic.Topic(result.part.name)
	counters.BytesOut.Add(int64(result.slice.Length))
	if result.err != nil {
		counters.FailedFetches.Add(1)
	}
}

// fetchRefused answers a request whose session is not what it says.
func (a *API) fetchRefused(r *Request, err error) *server.Response {
	return frameFetch(r, protocol.CodeOf(err), 0, false, nil)
}

// fetchImpossible answers a request that cannot be carried out: for the request as a whole from version 7 on,
// and up to version 12 for each partition.
func (a *API) fetchImpossible(r *Request, q *fetchRequest, err error) *server.Response {
	var results []fetchResult
	topics := q.topics
	q.eachPartition(&topics, func(topic fetchTopic, asked fetchAsked) {
		if r.Version < 13 {
			part := &fetchPart{fetchKey: fetchKey{topic: string(topic.name), number: asked.number}}
			results = append(results, fetchResult{part: part, err: err, watermark: -1, stable: -1, start: -1, preferred: protocol.NoBroker})
		}
	})
	return frameFetch(r, protocol.CodeOf(err), 0, r.Version >= 13, results)
}
