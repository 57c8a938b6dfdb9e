package api

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// answerKept is the largest buffer that is used again.
const answerKept = 256 << 10

// answer is a response in one buffer, pooled with everything that it is made of.
type answer struct {
	server.Response
	piece  [1]server.Piece
	buffer []byte
}

// pools keep the parts of answers for the next requests.
//
// Objects return by Release, which the server calls when the last byte of an answer is on its way. A panic in
// between loses them to the collector, which is all right.
type pools struct {
	requests, answers, fetches, fetchAnswers, produces sync.Pool
}

func newPools() *pools {
	p := new(pools)
	p.answers.New = func() any {
		a := new(answer)
		a.Release = func() { p.answers.Put(a) }
		return a
	}
	p.fetchAnswers.New = func() any {
		a := new(fetchAnswer)
		a.Release = func() {
			a.clear()
			p.fetchAnswers.Put(a)
		}
		return a
	}
	p.requests.New = func() any { return new(Request) }
	p.fetches.New = func() any { return new(fetch) }
	p.produces.New = func() any { return new(produce) }
	return p
}

// encode writes header and body of a response.
func encode(r *Request, response kmsg.Response) *server.Response {
	return finish(newAnswer(r), response)
}

// newAnswer begins an answer with its header.
func newAnswer(r *Request) *answer {
	a := r.pools.answers.Get().(*answer)
	if cap(a.buffer) > answerKept {
		a.buffer = nil
	}
	a.buffer = wire.AppendResponseHeader(a.buffer[:0], r.Key, r.Version, r.CorrelationID)
	a.Throttle, a.Close = 0, false
	return a
}

func finish(a *answer, response kmsg.Response) *server.Response {
	a.buffer = response.AppendTo(a.buffer)
	if throttled, ok := response.(kmsg.ThrottleResponse); ok {
		millis, _ := throttled.Throttle()
		a.Throttle = time.Duration(millis) * time.Millisecond
	}
	return a.seal()
}

// seal makes the buffer the answer's only piece.
func (a *answer) seal() *server.Response {
	a.piece[0] = server.Piece{Bytes: a.buffer}
	a.Pieces = a.piece[:]
	return &a.Response
}

// respondTo makes the response of a request, with the version set and defaults filled in.
func respondTo[R interface{ SetVersion(int16) }](r *Request, response R) R {
	response.SetVersion(r.Version)
	return response
}
