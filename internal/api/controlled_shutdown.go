package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// controlledShutdown lets a broker stop in order (versions 0 to 3; the broker's epoch from 2 on, and before 1
// a request header without a client id). What is listed as remaining has no other leader; that is no error.
//
// The broker asks again until nothing remains or its patience ends: see handOver in package broker. Brokers of
// Kafka 3.9 send version 3.
func (a *API) controlledShutdown(ctx context.Context, r *Request, q *kmsg.ControlledShutdownRequest) *kmsg.ControlledShutdownResponse {
	response := respondTo(r, kmsg.NewPtrControlledShutdownResponse())
	epoch := protocol.NoBrokerEpoch
	if r.Version >= 2 {
		epoch = protocol.BrokerEpoch(q.BrokerEpoch)
	}
	remaining, err := a.Controller.ControlledShutdown(ctx, protocol.BrokerID(q.BrokerID), epoch)
	response.ErrorCode = int16(protocol.CodeOf(err))
	for _, tp := range remaining {
		p := kmsg.NewControlledShutdownResponsePartitionsRemaining()
		p.Topic, p.Partition = tp.Topic, tp.Partition
		response.PartitionsRemaining = append(response.PartitionsRemaining, p)
	}
	return response
}
