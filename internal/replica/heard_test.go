package replica

import (
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// A client may name any number of brokers that there are not; nothing is kept of them.
func TestHeardOfNobodyElse(t *testing.T) {
	s := newStage(t)
	const other = protocol.BrokerID(2)
	for id := range protocol.BrokerID(100) {
		s.Heard(other + id)
	}
	if n := len(s.options.heard.of); n != 0 {
		t.Errorf("%d brokers are remembered that there are not", n)
	}
	next, joined := s.image.With(metadata.PutBroker{Broker: &metadata.Broker{ID: other}})
	s.Apply(joined, next)
	s.Heard(other)
	if s.options.heard.last(other) == 0 {
		t.Error("a broker of the cluster was not heard")
	}
	without, left := next.With(metadata.DropBroker{ID: other})
	s.Apply(left, without)
	if n := s.Heard(other); n != 1 {
		t.Errorf("it has left %d times, want 1", n)
	}
}
