package api

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// allocateProducerIDs gives a broker a block of producer ids (KIP-730, version 0).
//
// A block is stored before it is answered, so that one whose answer is lost is lost too, and never given twice.
func (a *API) allocateProducerIDs(ctx context.Context, r *Request, q *kmsg.AllocateProducerIDsRequest) *kmsg.AllocateProducerIDsResponse {
	response := respondTo(r, kmsg.NewPtrAllocateProducerIDsResponse())
	first, count, err := a.Controller.AllocateProducerIDsFor(ctx, protocol.BrokerID(q.BrokerID), protocol.BrokerEpoch(q.BrokerEpoch))
	if err != nil {
		response.ErrorCode = int16(protocol.CodeOf(err))
		return response
	}
	response.ProducerIDStart, response.ProducerIDLen = int64(first), count
	return response
}

// askForProducerIDs gets a block of producer ids from the controller, be it this broker or another one.
func (a *API) askForProducerIDs(ctx context.Context) (protocol.ProducerID, int32, error) {
	if _, active := a.Controller.Epoch(); active || !a.Clustered {
		return a.Controller.AllocateProducerIDs(ctx, a.Self)
	}
	q := kmsg.NewPtrAllocateProducerIDsRequest()
	q.BrokerID, q.BrokerEpoch = int32(a.Self), int64(a.View.BrokerEpoch())
	answer, err := a.Forward(ctx, q)
	if err != nil {
		return protocol.NoProducerID, 0, err
	}
	response := answer.(*kmsg.AllocateProducerIDsResponse) // which is what the request makes
	if code := protocol.Code(response.ErrorCode); code != protocol.None {
		return protocol.NoProducerID, 0, fmt.Errorf("the controller gives no producer ids: %w", code)
	}
	return protocol.ProducerID(response.ProducerIDStart), response.ProducerIDLen, nil
}
