package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// envelope answers a client's request that another broker passes on to the controller, with the principal
// and the address of the client (KIP-590, version 0). What the inner answer says is the client's; the code
// of the envelope itself is for the broker, which tries another controller at NOT_CONTROLLER. Requests behind
// it begin while it waits, since all clients of the other broker share its connection.
func (a *API) envelope(_ context.Context, r *Request, q *kmsg.EnvelopeRequest) func(context.Context) *kmsg.EnvelopeResponse {
	return func(ctx context.Context) *kmsg.EnvelopeResponse { return a.enclosed(ctx, r, q) }
}

// enclosed answers the request in an envelope.
//
// Only rows that are marked as forwarded may be inside: a broker must not do by another's hand what it could
// ask for itself, and an envelope within one has no meaning.
func (a *API) enclosed(ctx context.Context, r *Request, q *kmsg.EnvelopeRequest) *kmsg.EnvelopeResponse {
	response := respondTo(r, kmsg.NewPtrEnvelopeResponse())
	inner := &Request{Conn: r.Conn, frame: r.frame, pools: r.pools, forwarded: true}
	body, err := inner.Parse(q.RequestData)
	if err != nil {
		response.ErrorCode = int16(protocol.InvalidRequest)
		return response
	}
	route := a.routes.find(inner.Key)
	switch {
	case route == nil || !route.forwarded:
		response.ErrorCode = int16(protocol.InvalidRequest)
		return response
	case !route.serves(inner.Version):
		response.ErrorCode = int16(protocol.UnsupportedVersion)
		return response
	}
	if _, leads := a.Controller.Epoch(); !leads {
		response.ErrorCode = int16(protocol.NotController)
		return response
	}
	reply := route.handle(a, ctx, inner, body)
	answer := reply.Response
	if reply.Wait != nil {
		answer = reply.Wait(ctx)
	}
	if response.ResponseData = contents(answer); response.ResponseData == nil {
		response.ErrorCode = int16(protocol.UnknownServerError)
	}
	return response
}

// contents copies header and body of an answer; nil where there are none.
func contents(answer *server.Response) []byte {
	if answer == nil {
		return nil
	}
	var data []byte
	for _, p := range answer.Pieces {
		data = append(data, p.Bytes...)
	}
	if answer.Release != nil {
		answer.Release()
	}
	return data
}
