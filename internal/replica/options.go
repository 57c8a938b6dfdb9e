package replica

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Options is what a broker's replicas need.
type Options struct {
	// Self is this broker.
	Self protocol.BrokerID
	// Dirs holds the logs.
	Dirs *logdir.Set
	// Config is the broker's configuration as it is now; nil means the defaults.
	Config func() *config.Broker
	// Topic resolves the settings of a topic from what was set on it.
	Topic func(overrides map[string]string) (config.Topic, error)
	// BrokerEpoch is the epoch of this broker's registration; nil where there is none.
	BrokerEpoch func() protocol.BrokerEpoch
	// Dial connects to the inter-broker listener of a broker, as the present image has it.
	Dial func(ctx context.Context, leader protocol.BrokerID) (net.Conn, error)
	// Controller sends a request to the active controller and returns its answer. It fails where none is known
	// or it does not answer; NOT_CONTROLLER in an answer means that it has just moved. Both are tried again.
	Controller func(ctx context.Context, request kmsg.Request) (kmsg.Response, error)
	// Draining is closed when the broker begins to stop and hears its followers no more; nil for never.
	Draining func() <-chan struct{}
	// Logger gets what an operator should know.
	Logger *slog.Logger
}

// shared is what all partitions of a broker share.
type shared struct {
	Options
	began     time.Time
	heard     heard
	proposals proposals
	sending   quota // to followers
	fetching  quota // from leaders

	shrinks, expands, refused atomic.Int64 // see Stats
}

func newShared(o Options) *shared {
	if o.Config == nil {
		c := config.Default()
		o.Config = func() *config.Broker { return c }
	}
	if o.BrokerEpoch == nil {
		o.BrokerEpoch = func() protocol.BrokerEpoch { return protocol.NoBrokerEpoch }
	}
	if o.Draining == nil {
		o.Draining = func() <-chan struct{} { return nil }
	}
	c := &shared{Options: o, began: time.Now()}
	// Config by way of c: tests replace it.
	settings := func() *config.Broker { return c.Config() }
	c.sending = quota{config: settings, property: config.ThrottledRates[0], clock: c.clock}
	c.fetching = quota{config: settings, property: config.ThrottledRates[1], clock: c.clock}
	c.heard.of = map[protocol.BrokerID]*caller{}
	c.proposals.wake = make(chan struct{}, 1)
	return c
}

// clock is the time since the replicas were made. It is monotonic: a step of the wall clock must not make
// followers look late.
func (c *shared) clock() time.Duration { return time.Since(c.began) }
