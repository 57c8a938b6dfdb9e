package api

import (
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// A Fetch response is framed by hand, since its records are not copied: between the bytes of the fields
// stand ranges of segment files.
//
//	header  throttle_ms i32  error i16 (7)  session i32 (7)
//	topics [ name | id (13)
//	  partitions [ number i32  error i16  high_watermark i64  last_stable i64  log_start i64 (5)
//	    aborted [ producer i64  first i64 ]  preferred_replica i32 (11)  records bytes
//	    tag 0: diverging epoch { epoch i32  end i64 } (12) ] ]
//
// From version 12 on lengths are compact and each struct ends with its tags. Records are never null, only
// empty: old versions of librdkafka stumble over null.

// fetchAnswer is a response with all its parts, pooled.
type fetchAnswer struct {
	server.Response
	buffer []byte
	cuts   []fetchCut
	pieces []server.Piece
	slices []log.Slice
}

// fetchCut says that a slice stands behind the first at bytes of the buffer.
type fetchCut struct {
	at    int
	slice int
}

// clear gives the slices back and makes the answer ready for another request.
func (a *fetchAnswer) clear() {
	for i := range a.slices {
		a.slices[i].Release()
		a.slices[i] = log.Slice{}
	}
	clear(a.pieces)
	if cap(a.buffer) > answerKept {
		a.buffer = nil
	}
	a.slices, a.cuts, a.pieces, a.Pieces = a.slices[:0], a.cuts[:0], a.pieces[:0], nil
}

// frameFetch takes over the slices of results.
func frameFetch(r *Request, code protocol.Code, session int32, byID bool, results []fetchResult) *server.Response {
	a := r.pools.fetchAnswers.Get().(*fetchAnswer)
	flexible := r.Version >= 12
	b := wire.AppendResponseHeader(a.buffer[:0], r.Key, r.Version, r.CorrelationID)
	b = wire.AppendInt32(b, 0)
	if r.Version >= 7 {
		b = wire.AppendInt16(b, int16(code))
		b = wire.AppendInt32(b, session)
	}
	b = appendLen(b, countTopics(results), flexible)
	for at := 0; at < len(results); {
		n := sameTopic(results[at:])
		if results[at].part != nil {
			b = a.appendTopic(b, r.Version, byID, results[at:at+n])
		}
		at += n
	}
	if flexible {
		b = wire.AppendNoTags(b)
	}
	a.buffer = b
	return a.assemble()
}

func appendLen(b []byte, n int, flexible bool) []byte {
	if flexible {
		return wire.AppendCompactLen(b, n)
	}
	return wire.AppendArrayLen(b, n)
}

// sameTopic is how many results at the beginning belong to one topic entry; dropped results count as one
// of their own.
func sameTopic(results []fetchResult) int {
	first := results[0].part
	n := 1
	for first != nil && n < len(results) && results[n].part != nil &&
		results[n].part.topic == first.topic && results[n].part.id == first.id {
		n++
	}
	return n
}

func countTopics(results []fetchResult) int {
	topics := 0
	for at := 0; at < len(results); at += sameTopic(results[at:]) {
		if results[at].part != nil {
			topics++
		}
	}
	return topics
}

func (a *fetchAnswer) appendTopic(b []byte, version int16, byID bool, results []fetchResult) []byte {
	flexible := version >= 12
	switch {
	case byID:
		b = append(b, results[0].part.id[:]...)
	case flexible:
		b = wire.AppendCompactString(b, results[0].part.topic)
	default:
		b = wire.AppendString(b, results[0].part.topic)
	}
	b = appendLen(b, len(results), flexible)
	for i := range results {
		b = a.appendPartition(b, version, &results[i])
	}
	if flexible {
		b = wire.AppendNoTags(b)
	}
	return b
}

func (a *fetchAnswer) appendPartition(b []byte, version int16, result *fetchResult) []byte {
	flexible := version >= 12
	b = wire.AppendInt32(b, result.part.number)
	b = wire.AppendInt16(b, int16(protocol.CodeOf(result.err)))
	b = wire.AppendInt64(b, int64(result.watermark))
	b = wire.AppendInt64(b, int64(result.stable))
	if version >= 5 {
		b = wire.AppendInt64(b, int64(result.start))
	}
	b = appendAborted(b, result.aborted, flexible)
	if version >= 11 {
		b = wire.AppendInt32(b, int32(result.preferred))
	}
	if flexible {
		b = wire.AppendCompactLen(b, result.slice.Length)
	} else {
		b = wire.AppendInt32(b, int32(result.slice.Length))
	}
	if result.slice.Length > 0 {
		a.cuts = append(a.cuts, fetchCut{at: len(b), slice: len(a.slices)})
		a.slices = append(a.slices, result.slice)
	}
	switch {
	case flexible && result.diverging != nil:
		b = append(b, 1, 0, 13) // one tag, its number, its length: diverging epoch
		b = wire.AppendInt32(b, int32(result.diverging.epoch))
		b = wire.AppendInt64(b, int64(result.diverging.end))
		b = wire.AppendNoTags(b) // of the epoch, the last of the 13 bytes
	case flexible:
		b = wire.AppendNoTags(b)
	}
	return b
}

// appendAborted writes the aborted transactions; nil, for read_uncommitted, is null.
func appendAborted(b []byte, aborted []log.AbortedTransaction, flexible bool) []byte {
	if aborted == nil {
		return appendLen(b, -1, flexible)
	}
	b = appendLen(b, len(aborted), flexible)
	for _, one := range aborted {
		b = wire.AppendInt64(b, int64(one.ProducerID))
		b = wire.AppendInt64(b, int64(one.First))
		if flexible {
			b = wire.AppendNoTags(b)
		}
	}
	return b
}

// assemble cuts the finished buffer into pieces with the slices between them.
func (a *fetchAnswer) assemble() *server.Response {
	from := 0
	for _, cut := range a.cuts {
		slice := &a.slices[cut.slice]
		a.pieces = append(a.pieces, server.Piece{Bytes: a.buffer[from:cut.at]},
			server.Piece{File: slice.File, Offset: slice.Position, Length: slice.Length})
		from = cut.at
	}
	if rest := a.buffer[from:]; len(a.cuts) > 0 && zeros(rest) && len(rest) <= a.slices[len(a.slices)-1].Zeros {
		// The tags behind the last records, which are empty: the file has the same bytes there, and a range
		// that is a little longer saves a write.
		a.pieces[len(a.pieces)-1].Length += len(rest)
	} else {
		a.pieces = append(a.pieces, server.Piece{Bytes: rest})
	}
	a.Pieces = a.pieces
	return &a.Response
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
