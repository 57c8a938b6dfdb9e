package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// An admin request that comes to a broker that is not the controller is sent on in an Envelope (KIP-590), with
// who asked and from where, and its answer comes back in one:
//
//	client ── CreateTopics ──▶ broker ── Envelope{CreateTopics} ──▶ controller
//	client ◀── answer ── broker, once its image shows it ◀── Envelope{answer} ──┘

// forwardRetry is how long a broker waits before it looks for the controller again.
const forwardRetry = 50 * time.Millisecond

// forwardGrace is what a request that was sent on may take longer than its client asked for: the controller
// itself answers when that time is up.
const forwardGrace = time.Second

// forward has the active controller carry out a request, and tries again for as long as limit while there is
// none. It returns nil where this broker is the controller, where the request has been sent on once, and where
// no controller answered: this broker then answers by itself, in the last two cases with NOT_CONTROLLER.
//
// A request that was sent on may have been carried out although its answer was lost. It is tried again all the
// same, as the client itself would: the second answer then says TOPIC_ALREADY_EXISTS or the like.
func (a *API) forward(ctx context.Context, r *Request, q kmsg.Request, limit time.Duration) kmsg.Response {
	if !a.Clustered || r.forwarded {
		return nil
	}
	ctx, cancel := a.within(ctx, limit+forwardGrace)
	defer cancel()
	for {
		if _, active := a.Controller.Epoch(); active {
			return nil
		}
		response, err := a.enveloped(ctx, r, q)
		if err == nil {
			return response
		}
		if a.ForeignController != nil && a.ForeignController(ctx) {
			return a.unwrapped(ctx, r, q)
		}
		select {
		case <-time.After(forwardRetry):
		case <-a.draining():
			return nil
		case <-ctx.Done():
			a.Logger.Warn("a request could not be sent on to the controller", "api", kmsg.NameForKey(q.Key()), "error", err)
			return nil
		}
	}
}

// enveloped sends a request on once.
func (a *API) enveloped(ctx context.Context, r *Request, q kmsg.Request) (kmsg.Response, error) {
	envelope := kmsg.NewPtrEnvelopeRequest()
	envelope.RequestData = q.AppendTo(wire.AppendRequestHeader(nil, wire.RequestHeader{
		Key: q.Key(), Version: q.GetVersion(), CorrelationID: r.CorrelationID, ClientID: r.ClientID,
	}))
	envelope.RequestPrincipal, envelope.ClientHostAddress = principalOf(r), addressOf(r)
	// The end of a client's patience is no sign that the controller hangs: it gives up this request alone.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	answer, err := a.Forward(sending, envelope)
	if err != nil {
		return nil, err
	}
	got := answer.(*kmsg.EnvelopeResponse) // which is what the envelope makes
	if code := protocol.Code(got.ErrorCode); code != protocol.None {
		return nil, fmt.Errorf("the controller answers an envelope with %w", code)
	}
	_, body, err := wire.ParseResponseHeader(got.ResponseData, q.Key(), q.GetVersion())
	if err != nil {
		return nil, err
	}
	response := q.ResponseKind()
	return response, response.ReadFrom(body)
}

// unwrapped does what can be done where the controller is a broker of Kafka 3.9, which closes the connection on an
// Envelope: what this broker wants by itself it asks for as itself. A client gets NOT_CONTROLLER, and asks the
// controller, which Metadata names: asked in its place, the controller would take this broker for who wants it.
func (a *API) unwrapped(ctx context.Context, r *Request, q kmsg.Request) kmsg.Response {
	if r.Conn != nil {
		return nil
	}
	response, err := a.Forward(ctx, q)
	if err != nil {
		a.Logger.Warn("the controller did not answer", "api", kmsg.NameForKey(q.Key()), "error", err)
		return nil
	}
	return response
}

// principalVersion is the version of a serialised principal.
const principalVersion = 0

// principalOf is who asked, as Kafka serialises it: a version, the two halves of User:name, and whether a
// delegation token proved it.
//
//	version int16 (0) | type compact string | name compact string | token authenticated bool | tags
//
// as DefaultKafkaPrincipalBuilder of Kafka writes it, so that controllers of both kinds read it.
func principalOf(r *Request) []byte {
	kind, name := "User", "ANONYMOUS"
	if r.Conn != nil {
		if k, n, ok := strings.Cut(r.Conn.Principal(), ":"); ok {
			kind, name = k, n
		}
	}
	b := wire.AppendInt16(nil, principalVersion)
	b = wire.AppendCompactString(wire.AppendCompactString(b, kind), name)
	return wire.AppendNoTags(wire.AppendBool(b, false))
}

// addressOf is where the request came from, in 4 or 16 bytes.
func addressOf(r *Request) []byte {
	if r.Conn == nil {
		return net.IPv4(127, 0, 0, 1).To4()
	}
	ip := net.ParseIP(r.Conn.Host)
	if short := ip.To4(); short != nil {
		return short
	}
	if ip == nil {
		return net.IPv4(127, 0, 0, 1).To4()
	}
	return ip
}

// onBehalf is a request of this broker's own.
func (a *API) onBehalf() *Request {
	return &Request{RequestHeader: wire.RequestHeader{ClientID: fmt.Sprintf("broker-%d", a.Self)}}
}

// createElsewhere has the controller make topics that this broker wants, and waits for them like create; false
// where this broker is the controller.
func (a *API) createElsewhere(ctx context.Context, topics []controller.NewTopic) ([]controller.TopicResult, bool) {
	if !a.Clustered {
		return nil, false
	}
	limit := autoCreateTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	answer, ok := a.forward(ctx, a.onBehalf(), creation(topics, limit), limit).(*kmsg.CreateTopicsResponse)
	if !ok {
		return nil, false
	}
	a.awaitCreated(ctx, answer)
	results := make([]controller.TopicResult, 0, len(answer.Topics))
	for _, t := range answer.Topics {
		result := controller.TopicResult{Name: t.Topic, ID: t.TopicID, Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
		if code := protocol.Code(t.ErrorCode); code != protocol.None {
			result.Err = code
			if t.ErrorMessage != nil {
				result.Err = protocol.Errorf(code, "%s", *t.ErrorMessage)
			}
		}
		results = append(results, result)
	}
	return results, true
}

// creation is the request that makes topics of this broker's own.
func creation(topics []controller.NewTopic, limit time.Duration) *kmsg.CreateTopicsRequest {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, int32(limit.Milliseconds())
	for _, t := range topics {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.Name, t.Partitions, t.ReplicationFactor
		for name, value := range t.Configs {
			topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: value})
		}
		q.Topics = append(q.Topics, topic)
	}
	return q
}

// awaitCreated waits until this broker's image shows topics that the controller has made.
func (a *API) awaitCreated(ctx context.Context, response *kmsg.CreateTopicsResponse) {
	for i := range response.Topics {
		t := &response.Topics[i]
		if t.ErrorCode != 0 {
			continue
		}
		made := controller.TopicResult{Name: t.Topic, Partitions: t.NumPartitions}
		a.await(ctx, &t.ErrorCode, func(image *metadata.Image) bool { return shown(image, &made) })
	}
}

// awaitDeleted waits until this broker's image does not show topics any more.
func (a *API) awaitDeleted(ctx context.Context, response *kmsg.DeleteTopicsResponse) {
	for i := range response.Topics {
		t := &response.Topics[i]
		if t.ErrorCode != 0 || t.Topic == nil {
			continue
		}
		a.await(ctx, &t.ErrorCode, func(image *metadata.Image) bool {
			topic := image.Topic(*t.Topic)
			return topic == nil || t.TopicID != [16]byte{} && topic.ID != t.TopicID
		})
		a.traffic.Forget(*t.Topic)
	}
}

// awaitGrown waits until this broker's image shows the new partitions of topics.
func (a *API) awaitGrown(ctx context.Context, q *kmsg.CreatePartitionsRequest, response *kmsg.CreatePartitionsResponse) {
	counts := map[string]int32{}
	for _, t := range q.Topics {
		counts[t.Topic] = t.Count
	}
	for i := range response.Topics {
		if t := &response.Topics[i]; t.ErrorCode == 0 {
			grown := controller.TopicResult{Name: t.Topic, Partitions: counts[t.Topic]}
			a.await(ctx, &t.ErrorCode, func(image *metadata.Image) bool { return shown(image, &grown) })
		}
	}
}

// awaitElected waits until this broker's image shows the leaders that an election has made.
func (a *API) awaitElected(ctx context.Context, kind int8, response *kmsg.ElectLeadersResponse) {
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			p := &response.Topics[i].Partitions[j]
			if p.ErrorCode != 0 {
				continue
			}
			a.await(ctx, &p.ErrorCode, func(image *metadata.Image) bool {
				topic := image.Topic(response.Topics[i].Topic)
				if topic == nil || topic.Partition(p.Partition) == nil {
					return true // deleted meanwhile
				}
				state := topic.Partition(p.Partition)
				return state.Leader != protocol.NoBroker && (kind != int8(controller.PreferredElection) || state.Leader == state.Preferred())
			})
		}
	}
}

// await waits for this broker's image. Where the time is up before, it is so all the same: the code says that
// nobody has seen it yet.
func (a *API) await(ctx context.Context, code *int16, seen func(*metadata.Image) bool) {
	if err := a.View.Wait(ctx, seen); errors.Is(err, context.DeadlineExceeded) {
		*code = int16(protocol.RequestTimedOut)
	}
}
