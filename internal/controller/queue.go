package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How long a queue waits before it repeats a request that got no answer: it doubles from the first to the
// second.
const (
	backoffMin = 20 * time.Millisecond
	backoffMax = 2 * time.Second
)

// queue tells one life of one broker what it has to know, in order and one request at a time. It repeats a
// request until it is answered: a broker that has seen it says so without harm.
type queue struct {
	broker  P.BrokerID
	sender  sender
	channel *peer.Channel
	// foreign is true for a broker of Kafka's.
	foreign bool
	// timeout bounds the wait for one answer (controller.socket.timeout.ms).
	timeout time.Duration
	// certain says whether this controller leads for certain; while it does not, nothing is sent.
	certain func() bool
	// answers gets what the broker answered.
	answers chan<- answer
	logger  *slog.Logger

	mu struct {
		sync.Mutex
		backlog backlog
	}
	// wake has a value whenever the backlog may not be empty.
	wake chan struct{}
}

// answer is what a broker said to a request.
type answer struct {
	broker   P.BrokerID
	epoch    P.BrokerEpoch
	request  kmsg.Request
	response kmsg.Response
}

// add changes the backlog; it never waits for the broker.
func (q *queue) add(change func(*backlog)) {
	q.mu.Lock()
	change(&q.mu.backlog)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) take() *round {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.backlog.take()
}

// run sends until ctx ends, or until the broker says that this life of it is over.
func (q *queue) run(ctx context.Context) {
	defer q.channel.Close()
	for {
		select {
		case <-q.wake:
		case <-ctx.Done():
			return
		}
		for r := q.take(); r != nil; r = q.take() {
			if !q.send(ctx, r) {
				return
			}
		}
	}
}

// send tells the broker one round; false where there is no use in telling more.
func (q *queue) send(ctx context.Context, r *round) bool {
	// A broker of Kafka's follows only a leader that it has been told of.
	if q.foreign && len(r.lead) > 0 && (r.refresh || r.full) && !q.ask(ctx, q.sender.updateMetadata(&round{image: r.image})) {
		return false
	}
	if len(r.lead) > 0 && !q.ask(ctx, q.sender.leaderAndISR(r)) {
		return false
	}
	if (len(r.show) > 0 || r.refresh || r.full) && !q.ask(ctx, q.sender.updateMetadata(r)) {
		return false
	}
	if len(r.stop) > 0 && !q.ask(ctx, q.sender.stopReplica(r.stop, false)) {
		return false
	}
	return len(r.erase) == 0 || q.ask(ctx, q.sender.stopReplica(r.erase, true))
}

// ask repeats a request until it is answered, and hands the answer on.
func (q *queue) ask(ctx context.Context, request kmsg.Request) bool {
	for backoff := backoffMin; ; backoff = min(2*backoff, backoffMax) {
		if !q.certain() { // nothing is said until the store has answered again
			select {
			case <-time.After(backoff):
				continue
			case <-ctx.Done():
				return false
			}
		}
		limited, cancel := context.WithTimeout(ctx, q.timeout)
		response, err := q.channel.Do(limited, request)
		cancel()
		if err == nil {
			select {
			case q.answers <- answer{broker: q.broker, epoch: q.sender.broker, request: request, response: response}:
			case <-ctx.Done():
				return false
			}
			return errorOf(response) != P.StaleBrokerEpoch
		}
		if ctx.Err() != nil {
			return false
		}
		q.logger.Warn("a broker does not answer the controller, trying again",
			"broker", q.broker, "request", kmsg.NameForKey(request.Key()), "after", backoff, "error", err)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
			return false
		}
	}
}

// errorOf is the code of the answer as a whole.
func errorOf(response kmsg.Response) P.Code {
	switch r := response.(type) {
	case *kmsg.LeaderAndISRResponse:
		return P.Code(r.ErrorCode)
	case *kmsg.UpdateMetadataResponse:
		return P.Code(r.ErrorCode)
	case *kmsg.StopReplicaResponse:
		return P.Code(r.ErrorCode)
	}
	return P.None
}
