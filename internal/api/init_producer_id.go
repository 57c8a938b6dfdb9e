package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// initProducerID gives an idempotent producer its id (versions 0 to 5). Transactional ids are refused with
// a final error until there are transactions.
//
// Ids are unique in the cluster by blocks of 1000 (KIP-730). A client that asks again after a lost answer gets
// another id, which is harmless: it has not written with the first.
func (a *API) initProducerID(ctx context.Context, r *Request, q *kmsg.InitProducerIDRequest) *kmsg.InitProducerIDResponse {
	response := respondTo(r, kmsg.NewPtrInitProducerIDResponse())
	response.ProducerID, response.ProducerEpoch = -1, -1
	if q.TransactionalID != nil {
		a.Logger.Warn("a client wants transactions, which are not supported yet", "transactional_id", *q.TransactionalID)
		response.ErrorCode = int16(protocol.InvalidRequest)
		return response
	}
	if q.ProducerID != -1 || q.ProducerEpoch != -1 { // only a transactional producer has an epoch to raise
		response.ErrorCode = int16(protocol.InvalidRequest)
		return response
	}
	// Ids come from blocks of the controller's, stored before they are handed out: one that was given away is
	// never given again, also after a crash. What is left of a block is then lost, which costs nothing.
	id, err := a.producers.next(ctx, a.askForProducerIDs)
	if err != nil {
		a.Logger.Error("no producer ids can be had", "error", err)
		response.ErrorCode = int16(protocol.CoordinatorLoadInProgress)
		return response
	}
	response.ProducerID, response.ProducerEpoch = int64(id), 0
	return response
}

// producerIDs hands out ids from the block that the controller gave this broker.
type producerIDs struct {
	// turn is one slot for whoever takes an id: it may be held while the controller is asked, for which a
	// mutex would stop the virtual clock of tests.
	turn chan struct{}
	at   protocol.ProducerID
	left int32
}

// next takes one id; where the block is used up, allocate gets another.
func (p *producerIDs) next(ctx context.Context, allocate func(context.Context) (protocol.ProducerID, int32, error)) (protocol.ProducerID, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return protocol.NoProducerID, ctx.Err()
	}
	defer func() { <-p.turn }()
	if p.left == 0 {
		first, count, err := allocate(ctx)
		if err != nil {
			return protocol.NoProducerID, err
		}
		p.at, p.left = first, count
	}
	id := p.at
	p.at++
	p.left--
	return id, nil
}
