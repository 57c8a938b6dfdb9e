package broker

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// dial connects to the inter-broker listener of a broker; to this one in memory, which no network can cut.
//
// The connection in memory carries frames like any other, so that requests to oneself take the same way as
// those to others.
func (b *Broker) dial(ctx context.Context, to *metadata.Broker) (net.Conn, error) {
	if to.ID == b.id {
		return b.server.Pipe(), nil
	}
	listener := b.Config().InterBrokerListener()
	e, ok := to.Endpoint(listener)
	if !ok {
		return nil, fmt.Errorf("broker %d has no listener %s, which brokers use among each other (inter.broker.listener.name)", to.ID, listener)
	}
	conn, err := b.options.Dial(ctx, "tcp", net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
	if err != nil {
		return nil, fmt.Errorf("connecting to broker %d: %w", to.ID, err)
	}
	return conn, nil
}

// dialLeader connects to a broker as the present image has it.
func (b *Broker) dialLeader(ctx context.Context, leader protocol.BrokerID) (net.Conn, error) {
	to := b.view.Image().Broker(leader)
	if to == nil {
		return nil, protocol.Errorf(protocol.BrokerNotAvailable, "broker %d is not alive", leader)
	}
	return b.dial(ctx, to)
}
