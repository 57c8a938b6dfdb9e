package api

import (
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// A Fetch request is read in place, so that a consumer that catches up costs no allocation by the
// partition.
//
//	replica i32 (to 14)  max_wait_ms i32  min_bytes i32  max_bytes i32  isolation i8
//	session i32 (7)  session_epoch i32 (7)
//	topics [ name (to 12) | id (13)
//	  partitions [ number i32  current_leader_epoch i32 (9)  offset i64  last_fetched_epoch i32 (12)
//	    log_start i64 (5)  max_bytes i32 ] ]
//	forgotten (7) [ name (to 12) | id (13)  partitions [ i32 ] ]
//	rack (11)  tags: 1 replica_state (15)
//
// From version 12 on lengths are compact and each struct ends with its tags.

// fetchRequest is a request that has been found to be whole. It aliases the request's frame.
//
//	4   isolation level, aborted transactions in the answer        12  last fetched epoch: the leader finds divergence
//	5   log start offset of followers                              13  topics by id (KIP-516)
//	7   sessions (KIP-227)                                         15  the follower's id and epoch as a tag (KIP-903)
//	9   leader epoch: old leaders are found out (KIP-320)          16  leaders' addresses in the answer (KIP-951)
//	11  rack: a closer replica may be named (KIP-392)              17  directory ids, 18 watermark of followers
type fetchRequest struct {
	version            int16
	maxWait            time.Duration
	minBytes, maxBytes int
	isolation          int8 // 1 is read_committed
	// replica is the broker that follows, below 0 for a consumer; brokerEpoch is its registration's, where it
	// tells. rack is where a consumer is.
	replica           protocol.BrokerID
	brokerEpoch       protocol.BrokerEpoch
	rack              []byte
	session, epoch    int32
	topics, forgotten wire.Reader // at the arrays
}

// fetchTopic is how a request names a topic.
type fetchTopic struct {
	name []byte // of the frame; empty where topics go by id
	id   protocol.TopicID
}

// fetchAsked is what a request asks of one partition.
type fetchAsked struct {
	number    int32
	epoch     protocol.LeaderEpoch // as the client knows it; below 0 it does not
	lastEpoch protocol.LeaderEpoch // of the last record that the client has; below 0 it does not say
	offset    protocol.Offset
	start     protocol.Offset // a follower's log start offset
	maxBytes  int32
}

// decodeFetch reads a request and checks all of it.
func decodeFetch(version int16, body []byte) (fetchRequest, error) {
	q := fetchRequest{version: version, epoch: sessionEpochFinal, replica: protocol.NoBroker, brokerEpoch: protocol.NoBrokerEpoch}
	r := wire.NewReader(body)
	if version <= 14 {
		q.replica = protocol.BrokerID(r.Int32())
	}
	q.maxWait = time.Duration(max(r.Int32(), 0)) * time.Millisecond
	q.minBytes, q.maxBytes = int(r.Int32()), int(r.Int32())
	q.isolation = r.Int8()
	if version >= 7 {
		q.session, q.epoch = r.Int32(), r.Int32()
	}
	q.topics = r
	q.eachPartition(&r, func(fetchTopic, fetchAsked) {})
	if version >= 7 {
		q.forgotten = r
		q.eachForgotten(&r, func(fetchTopic, int32) {})
	}
	q.trailer(&r)
	return q, r.Err()
}

// trailer reads what follows the lists.
func (q *fetchRequest) trailer(r *wire.Reader) {
	switch {
	case q.version >= 12:
		q.rack = r.NullableCompactBytes()
	case q.version >= 11:
		q.rack = r.NullableBytes16()
	}
	if q.version < 12 {
		return
	}
	for n := r.Uvarint(); n > 0 && r.Err() == nil; n-- {
		tag, value := r.NextTag()
		if tag == 1 && q.version >= 15 {
			state := wire.NewReader(value)
			q.replica, q.brokerEpoch = protocol.BrokerID(state.Int32()), protocol.BrokerEpoch(state.Int64())
		}
	}
}

// eachPartition hands over what the topics that r stands before ask for.
func (q *fetchRequest) eachPartition(r *wire.Reader, f func(fetchTopic, fetchAsked)) {
	for range q.arrayLen(r) {
		topic := q.topic(r)
		for range q.arrayLen(r) {
			asked := fetchAsked{number: r.Int32(), epoch: protocol.NoLeaderEpoch, lastEpoch: protocol.NoLeaderEpoch, start: protocol.NoOffset}
			if q.version >= 9 {
				asked.epoch = protocol.LeaderEpoch(r.Int32())
			}
			asked.offset = protocol.Offset(r.Int64())
			if q.version >= 12 {
				asked.lastEpoch = protocol.LeaderEpoch(r.Int32())
			}
			if q.version >= 5 {
				asked.start = protocol.Offset(r.Int64())
			}
			asked.maxBytes = r.Int32()
			q.skipTags(r)
			if r.Err() != nil {
				return
			}
			f(topic, asked)
		}
		q.skipTags(r)
	}
}

// eachForgotten hands over the partitions that the session shall forget.
func (q *fetchRequest) eachForgotten(r *wire.Reader, f func(topic fetchTopic, number int32)) {
	for range q.arrayLen(r) {
		topic := q.topic(r)
		for range q.arrayLen(r) {
			number := r.Int32()
			if r.Err() != nil {
				return
			}
			f(topic, number)
		}
		q.skipTags(r)
	}
}

// arrayLen reads the length of an array; no element here has less than two bytes.
func (q *fetchRequest) arrayLen(r *wire.Reader) int {
	if q.version >= 12 {
		return r.CompactArrayLen(2)
	}
	return r.ArrayLen(2)
}

func (q *fetchRequest) topic(r *wire.Reader) (t fetchTopic) {
	switch {
	case q.version >= 13:
		t.id = r.UUID()
	case q.version >= 12:
		t.name = r.NullableCompactBytes()
	default:
		t.name = r.NullableBytes16()
	}
	return t
}

func (q *fetchRequest) skipTags(r *wire.Reader) {
	if q.version >= 12 {
		r.SkipTags()
	}
}
