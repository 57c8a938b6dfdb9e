package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A controller of Kafka 3.9 closes the connection on an Envelope. A client hears at once that it has to ask the
// controller; what the broker wants by itself it asks for without one.
func TestControllerThatTakesNoEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.lead("other", 1, true) // nobody is answered before the first image
		s.Clustered = true
		s.Controller = controller.New(controller.Options{BrokerID: self, Config: config.Default})
		s.ForeignController = func(context.Context) bool { return true }
		var sent []kmsg.Request
		s.Forward = func(_ context.Context, q kmsg.Request) (kmsg.Response, error) {
			sent = append(sent, q)
			if _, envelope := q.(*kmsg.EnvelopeRequest); envelope {
				return nil, errors.New("the other side closed the connection")
			}
			return q.ResponseKind(), nil
		}
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 1, 1
		q := kmsg.NewPtrCreateTopicsRequest()
		q.Version, q.TimeoutMillis, q.Topics = 7, 30_000, append(q.Topics, topic)
		began := time.Now()
		got := ask[*kmsg.CreateTopicsResponse](s, q)
		if code := protocol.Code(got.Topics[0].ErrorCode); code != protocol.NotController || time.Since(began) > time.Second {
			t.Errorf("a client hears %v after %v, want NOT_CONTROLLER at once", code, time.Since(began))
		}
		if len(sent) != 1 {
			t.Errorf("%d requests were sent on for a client, want the envelope only", len(sent))
		}
		if _, ok := s.createElsewhere(t.Context(), nil); !ok {
			t.Error("the broker's own request was not answered")
		}
		if _, plain := sent[len(sent)-1].(*kmsg.CreateTopicsRequest); !plain {
			t.Errorf("the broker's own request was sent on as %T", sent[len(sent)-1])
		}
	})
}
