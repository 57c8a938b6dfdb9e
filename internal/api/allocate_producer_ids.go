package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// allocateProducerIDs gives a broker a block of producer ids (KIP-730, version 0).
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
